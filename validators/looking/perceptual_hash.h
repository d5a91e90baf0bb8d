// PerceptualHasher: the 64-bit pHash of an image, equal for copies that were scaled, re-encoded or
// slightly changed in brightness.
//
//   PerceptualHasher hasher;   // one per thread
//   absl::StatusOr<ImageHash> hash = hasher.Hash(file_bytes, info);
//   int distance = std::popcount(hash->value ^ other.value);
//
// That of the Python package imagehash (imagehash.phash with its defaults, after Zauner,
// "Implementation and Benchmarking of Perceptual Image Hash Functions", 2010): 32 x 32 gray pixels
// by Lanczos, the type-II DCT, of whose 8 x 8 lowest frequencies each gives one bit: whether it is
// above their median; row by row, the first is the highest bit. Differences here: gray is the
// image's luma as stored, the EXIF orientation is applied, and a JPEG is decoded at the smallest
// scale that is at least twice the 32 pixels.
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: one thread at a time.
// Errors: those of ImageDecoder.
#ifndef SHARDPACK_VALIDATORS_LOOKING_PERCEPTUAL_HASH_H_
#define SHARDPACK_VALIDATORS_LOOKING_PERCEPTUAL_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "images/codecs/decode.h"
#include "images/resize/resize.h"

namespace shardpack {

struct ImageHash {
  uint64_t value = 0;
  // All gray values are nearly the same, so that the bits are noise.
  bool flat = false;
};

inline constexpr uint32_t kHashSide = 32;

class PerceptualHasher {
 public:
  absl::StatusOr<ImageHash> Hash(std::span<const std::byte> file, const ImageInfo& info);

 private:
  ImageDecoder decoder_;
  Resizer resizer_;
  std::array<uint8_t, size_t{kHashSide}* kHashSide> gray_ = {};
};

// Of the gray pixels, row by row.
ImageHash HashOfGray(std::span<const uint8_t, size_t{kHashSide} * kHashSide> gray);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_PERCEPTUAL_HASH_H_
