// ImageInspector: decodes an image to its last byte and says everything that is wrong with it.
//
//   ImageInspector inspector;   // one a thread
//   const ImageReport report = inspector.Inspect(file_bytes, ImageLimits());
//   for (const ImageNote& note : report.notes) Print(note.detail);
//
// In this order, and no further than the first trouble that forbids the next step: the structure
// (all markers, chunks and their checksums), the limits, the pixels. What is over a limit is not
// decoded, so that no file costs more than its structure and the pixels that the limits allow.
// Of an animation the first frame is decoded, of a TIFF the first page.
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: one thread at a time. The answer depends on the arguments alone.
// Errors: values; never throws or prints.
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
  // Cameras embed previews and profiles of some MB.
  uint64_t max_ancillary_bytes = 16 << 20;
};

enum class ImageTrouble : uint8_t {
  kNotAnImage,
  kDamaged,         // cut, a wrong checksum, or the codec found damage
  kUnsupported,     // a kind of image that is not decoded here
  kWarning,         // an oddity that does not touch the pixels
  kPixelLimit,      // of these three the image may be sound
  kAncillaryLimit,  // the only one of which the pixels are decoded all the same
  kScanLimit,
};

struct ImageNote {
  ImageTrouble trouble;
  std::optional<uint64_t> offset = std::nullopt;
  std::string detail = {}, expected = {}, actual = {};
};

struct ImageReport {
  ImageInfo info;        // of the headers; format kUnknown when there are none
  bool decoded = false;  // every pixel of the first frame
  std::vector<ImageNote> notes;
};

class ImageInspector {
 public:
  // Told what a decode may take before it starts, and that it is over.
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

// What decoding takes at most, to the next few hundred KB; `scans` of a JPEG.
uint64_t DecodeMemoryBytes(const ImageInfo& info, uint32_t scans);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_CODECS_INSPECT_H_
