// ImageInspector: decodes an image completely and reports everything that is wrong with it.
//
//   ImageInspector inspector;   // one per thread
//   const ImageReport report = inspector.Inspect(file_bytes, ImageLimits());
//   for (const ImageNote& note : report.notes) Print(note.detail);
//
// Checks in this order, stopping at the first problem that prevents the next step: the structure
// (all markers, chunks and their checksums), the limits, the pixels. An image above a limit is not
// decoded, so a file costs at most its structure and the pixels that the limits allow. Of an
// animation only the first frame is decoded, of a TIFF only the first page.
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: one thread at a time. The result depends only on the arguments.
// Errors: part of the report; never throws or prints.
// Units: pixels; offsets are bytes from the file's start.
#ifndef SHARDPACK_IMAGES_CODECS_INSPECT_H_
#define SHARDPACK_IMAGES_CODECS_INSPECT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/core/image_info.h"
#include "images/codecs/decode.h"

namespace shardpack {

struct ImageLimits {
  uint64_t max_pixels = DecodeOptions().max_pixels;
  uint32_t max_scans = DecodeOptions().max_scans;
  // Cameras embed previews and profiles of several MB.
  uint64_t max_ancillary_bytes = 16 << 20;
};

enum class ImageTrouble : uint8_t {
  kNotAnImage,
  kDamaged,         // truncated, a wrong checksum, or damage found by the codec
  kUnsupported,     // a kind of image that cannot be decoded here
  kWarning,         // an oddity that does not affect the pixels
  kPixelLimit,      // for this and the next two, the image may be valid
  kAncillaryLimit,  // the only limit after which pixels are still decoded
  kScanLimit,
};

struct ImageNote {
  ImageTrouble trouble;
  std::optional<uint64_t> offset = std::nullopt;
  std::string detail = {}, expected = {}, actual = {};
};

struct ImageReport {
  ImageInfo info;        // from the headers; kUnknown format if there are none
  bool decoded = false;  // every pixel of the first frame
  std::vector<ImageNote> notes;
};

class ImageInspector {
 public:
  // Called before a decode, with the memory it may need, and after it.
  struct Gate {
    virtual ~Gate() = default;
    virtual void Enter(uint64_t bytes) = 0;
    virtual void Leave(uint64_t bytes) = 0;
  };

  ImageReport Inspect(std::span<const std::byte> file, const ImageLimits& limits,
                      Gate* gate = nullptr);

 private:
  void Decode(std::span<const std::byte> file, const ImageLimits& limits, ImageReport* report);

  ImageDecoder decoder_;
};

// Upper bound of the memory for decoding, within a few hundred KB; `scans` is for JPEG.
uint64_t DecodeMemoryBytes(const ImageInfo& info, uint32_t scans);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_CODECS_INSPECT_H_
