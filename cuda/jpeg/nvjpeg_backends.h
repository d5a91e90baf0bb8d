// NvjpegHardware and NvjpegHybrid: the two ways of nvJPEG, each complete or absent.
//
//   absl::StatusOr<NvjpegHardware> engines =
//       NvjpegHardware::Create(functions, device, options, memory);
//   if (engines.ok() && engines->Takes(image, 0)) batch.push_back(&image);
//   absl::Status status = engines->Decode(batch, stream);   // all of them or none
//
// The engines write their results when they are called, even if the stream still has work to do.
//
// Lifetime: functions, device and stream outlive them; destruction waits for what is under way,
// unless stopped.
// Thread-safety: one thread at a time, but NvjpegHardware::Takes.
// Errors: those of the device, or a refusal (IsRefusal), after which the image's output is
// undefined; what was begun may still write to it, so another way comes on the same stream, or
// after it.
// Units: pixels; bytes in names.
#ifndef SHARDPACK_CUDA_JPEG_NVJPEG_BACKENDS_H_
#define SHARDPACK_CUDA_JPEG_NVJPEG_BACKENDS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device/device_event.h"
#include "cuda/dynload/nvjpeg_functions.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/jpeg/nvjpeg_memory.h"

namespace shardpack {

// Whether nvJPEG refused the image; every other error is the device's.
bool IsRefusal(const absl::Status& status);

template <typename Object>
struct NvjpegDeleter {
  int (*destroy)(Object) = nullptr;
  using pointer = Object;
  void operator()(Object object) const { destroy(object); }
};
template <typename Object>
using NvjpegOwned = std::unique_ptr<std::remove_pointer_t<Object>, NvjpegDeleter<Object>>;

// Of any number of threads: what is of one are states, streams and buffers.
using NvjpegSharedHandle = std::shared_ptr<NvjpegHandleTag>;

class NvjpegHardware {
 public:
  static absl::StatusOr<NvjpegHardware> Create(const NvjpegFunctions& functions, Device& device,
                                               const JpegDecoderOptions& options,
                                               NvjpegMemory& memory);
  unsigned engines() const { return engines_; }
  // Whether it can be asked for parts of images: images with a room.
  const absl::Status& regions() const { return regions_; }
  // Callers at the same time have other `lane`s, of JpegDecoderOptions::threads.
  bool Takes(const JpegImage& image, size_t lane) const;
  absl::Status Decode(std::span<const JpegImage* const> images, Stream stream);
  // Until all that was decoded is there.
  absl::Status Wait();

 private:
  struct Slot {
    NvjpegOwned<NvjpegState> state;
    size_t reserved = 0;  // images
    std::vector<const unsigned char*> files;
    std::vector<size_t> sizes_bytes;
    std::vector<NvjpegImage> outs;
    std::vector<NvjpegOwned<NvjpegParams>> params;  // of the parts, one an image
    std::vector<NvjpegParams> parts;
    // Last, so that its destructor waits before the others are destroyed.
    DeviceEvent done;
  };

  NvjpegHardware(const NvjpegFunctions& functions, int format)
      : functions_(&functions), format_(format) {}

  absl::Status SetParts(std::span<const JpegImage* const> images, Slot& slot);

  const NvjpegFunctions* functions_;
  int format_;
  unsigned engines_ = 0;
  absl::Status regions_;
  NvjpegSharedHandle handle_;
  std::vector<NvjpegOwned<NvjpegStream>> headers_;  // one a lane
  std::vector<NvjpegOwned<NvjpegParams>> params_;   // likewise, if there are regions
  std::vector<Slot> slots_;
  size_t next_ = 0;
};

class NvjpegHybrid {
 public:
  // One for all threads.
  static absl::StatusOr<NvjpegSharedHandle> MakeHandle(const NvjpegFunctions& functions,
                                                       NvjpegMemory& memory);
  static absl::StatusOr<NvjpegHybrid> Create(const NvjpegFunctions& functions,
                                             NvjpegSharedHandle handle, NvjpegMemory& memory,
                                             Device& device, const JpegDecoderOptions& options);
  const absl::Status& regions() const { return regions_; }  // as NvjpegHardware::regions
  absl::Status Decode(const JpegImage& image, Stream stream);

 private:
  // What one image occupies until the device has decoded it.
  struct Page {
    NvjpegOwned<NvjpegPinned> pinned;
    NvjpegOwned<NvjpegDevice> memory;
    NvjpegOwned<NvjpegStream> headers;
    NvjpegOwned<NvjpegState> state;
    DeviceEvent done;
  };

  NvjpegHybrid(const NvjpegFunctions& functions, NvjpegSharedHandle handle)
      : functions_(&functions), handle_(std::move(handle)) {}
  absl::Status AddPage(NvjpegMemory& memory, Device& device, const std::atomic<bool>* stop);

  const NvjpegFunctions* functions_;
  NvjpegSharedHandle handle_;
  NvjpegOwned<NvjpegDecoder> decoder_;
  NvjpegOwned<NvjpegParams> params_;
  absl::Status regions_;
  bool params_have_part_ = false;
  std::vector<Page> pages_;
  size_t next_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_NVJPEG_BACKENDS_H_
