// ThumbnailMaker: small WebP pictures of images, as data URIs.
//
//   ThumbnailMaker maker;   // one per thread
//   absl::StatusOr<Thumbnail> picture = maker.Make(rows, row, 64);
//   page.Empty("img", {{"src", picture->uri}, ...});
//
// The longest side has the given length, at most; smaller images are not enlarged.
//
// Lifetime: a Thumbnail owns its text.
// Thread-safety: one thread at a time.
// Errors: those of decoding. What cannot be read is a Thumbnail that says so.
// Units: pixels.
#ifndef SHARDPACK_VALIDATORS_LOOKING_THUMBNAILS_H_
#define SHARDPACK_VALIDATORS_LOOKING_THUMBNAILS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "images/codecs/decode.h"
#include "images/codecs/encode.h"
#include "images/resize/resize.h"
#include "validators/looking/sample_rows.h"

namespace shardpack {

struct Thumbnail {
  std::string uri = {};  // "data:image/webp;base64,..."; empty if there is no picture
  uint32_t width = 0, height = 0;
  std::string why_none = {};  // if there is no picture
  bool unread = false;        // because the image could not be read, rather than decoded
  bool huge = false;          // because it is larger than kMaxImageFileBytes
  bool plain = false;         // of nearly one color
};

// Sums of images that were stretched to one size.
struct MeanImage {
  static constexpr uint32_t kSide = 64;
  uint64_t images = 0;
  std::vector<uint64_t> sums;  // kSide * kSide * 3

  void Merge(const MeanImage& other);
};

class ThumbnailMaker {
 public:
  // Adds the image to `mean`, if given.
  absl::StatusOr<Thumbnail> Make(const SampleRows& rows, uint64_t row, uint32_t side,
                                 MeanImage* mean = nullptr);
  absl::StatusOr<Thumbnail> OfMean(const MeanImage& mean);

 private:
  absl::StatusOr<Thumbnail> Encoded(const uint8_t* pixels, uint32_t width, uint32_t height);

  ImageDecoder decoder_;
  ImageEncoder encoder_;
  Resizer resizer_;
  std::vector<std::byte> file_;
  std::vector<uint8_t> pixels_;
};

std::string Base64(std::span<const std::byte> bytes);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_THUMBNAILS_H_
