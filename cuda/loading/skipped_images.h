// SkippedImages: finds the images that the GPU's JPEG engines said they had decoded, and had not.
//
//   // `memory` is filled with kUnpainted, and images are decoded into it
//   absl::Status status = skipped.Look(memory, images, stream);
//   ...                                                    // the next batch is prepared meanwhile
//   absl::StatusOr<std::vector<SkippedImage>> found = skipped.Find();
//
// Some bytes of each image, from its first row to its last, are read back; one that is still
// kUnpainted there was skipped, or is of that colour (JpegDecoder::DecodeSkipped tells).
//
// Lifetime: the device outlives it; images are kept until Find.
// Thread-safety: one thread at a time.
// Errors: those of the device; Cancelled when stopped.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_SKIPPED_IMAGES_H_
#define SHARDPACK_CUDA_LOADING_SKIPPED_IMAGES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "cuda/device/device_event.h"
#include "cuda/jpeg/jpeg_decoder.h"

namespace shardpack {

// An image of a batch.
struct SlotImage {
  JpegImage image;
  size_t slot = 0;
};

struct SkippedImage {
  SlotImage at;
  std::vector<size_t> unpainted;  // offsets from its first byte
};

class SkippedImages {
 public:
  SkippedImages(Device& device, const std::atomic<bool>* stop)
      : device_(device), done_(device, stop) {}
  SkippedImages(const SkippedImages&) = delete;
  SkippedImages& operator=(const SkippedImages&) = delete;
  ~SkippedImages();

  // Room for so many images, which Look else makes.
  absl::Status Reserve(size_t images) { return MakeRoom(images * kRowsAnImage); }
  // Images lie within `memory`, which is aligned to kDeviceAlignment. After Find, if there was a
  // Look before.
  absl::Status Look(const void* memory, std::vector<SlotImage> images, Stream stream);
  absl::StatusOr<std::vector<SkippedImage>> Find();

 private:
  // Rows of `memory` of this size are gathered, some of each image.
  static constexpr size_t kRowBytes = 16, kRowsAnImage = 16;
  struct Witness {
    size_t image, offset;
  };

  absl::Status MakeRoom(size_t rows);
  void Drop();

  Device& device_;
  std::vector<SlotImage> images_;
  std::vector<Witness> witnesses_;
  size_t room_ = 0;  // rows
  // Numbers of rows, and then what they hold, on the host and on the device.
  void* host_ = nullptr;  // page-locked; nullptr: `pageable_` instead
  std::vector<std::byte> pageable_;
  void* on_device_ = nullptr;
  DeviceEvent done_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_SKIPPED_IMAGES_H_
