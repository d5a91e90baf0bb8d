// NvjpegHardware and NvjpegHybrid: the two ways of nvJPEG, each whole or absent.
//
//   absl::StatusOr<NvjpegHardware> engines = NvjpegHardware::Create(functions, device, 3, 2);
//   if (engines.ok() && engines->Takes(image)) batch.push_back(&image);
//   absl::Status status = engines->Decode(batch, stream);   // of all or of none
//
// Lifetime: the functions, the device's `self` and the stream outlive them; destruction waits for
// what is under way. Thread-safety: one thread at a time. Errors: Internal when the device fails;
// every other code is a refusal, after which nothing of the image is to be relied on and another
// way may be tried on the same stream. Units: pixels; bytes in names.
#ifndef SHARDPACK_CUDA_NVJPEG_BACKENDS_H_
#define SHARDPACK_CUDA_NVJPEG_BACKENDS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/jpeg_decoder.h"
#include "cuda/nvjpeg_functions.h"

namespace shardpack {

// "nvjpegDecodeJpegHost: bad JPEG".
absl::Status NvjpegRefusal(const char* call, int status);
// "copying to the device: CUDA error 700".
absl::Status DeviceFailure(const char* what, int error);

template <typename Object>
struct NvjpegDeleter {
  int (*destroy)(Object) = nullptr;
  using pointer = Object;
  void operator()(Object object) const { destroy(object); }
};
template <typename Object>
using NvjpegOwned = std::unique_ptr<std::remove_pointer_t<Object>, NvjpegDeleter<Object>>;

// An event, and whether something was recorded in it that was not waited for.
class JpegEvent {
 public:
  explicit JpegEvent(const DeviceApi* device) : device_(device) {}
  JpegEvent(JpegEvent&& other) noexcept
      : device_(other.device_),
        event_(std::exchange(other.event_, nullptr)),
        pending_(std::exchange(other.pending_, false)) {}
  JpegEvent& operator=(JpegEvent&& other) = delete;
  ~JpegEvent();

  absl::Status Create();
  absl::Status Record(Stream stream);
  absl::Status Wait();

 private:
  const DeviceApi* device_;
  Event event_ = nullptr;
  bool pending_ = false;
};

class NvjpegHardware {
 public:
  static absl::StatusOr<NvjpegHardware> Create(const NvjpegFunctions& functions,
                                               const DeviceApi& device, uint8_t channels,
                                               uint32_t batches);
  unsigned engines() const { return engines_; }
  bool Takes(const JpegImage& image);
  absl::Status Decode(std::span<const JpegImage* const> images, Stream stream);

 private:
  struct Slot {
    NvjpegOwned<NvjpegState> state;
    std::vector<const unsigned char*> files;
    std::vector<size_t> sizes_bytes;
    std::vector<NvjpegImage> outs;
    // Last: waited for before the others go.
    JpegEvent done;
  };

  NvjpegHardware(const NvjpegFunctions& functions, int format)
      : functions_(&functions), format_(format) {}

  const NvjpegFunctions* functions_;
  int format_;
  unsigned engines_ = 0;
  NvjpegOwned<NvjpegHandle> handle_;
  NvjpegOwned<NvjpegStream> headers_;
  std::vector<Slot> slots_;
  size_t next_ = 0;
};

class NvjpegHybrid {
 public:
  static absl::StatusOr<NvjpegHybrid> Create(const NvjpegFunctions& functions,
                                             const DeviceApi& device, uint8_t channels,
                                             uint32_t pages);
  absl::Status Decode(const JpegImage& image, Stream stream);

 private:
  // What one image occupies until the device has it.
  struct Page {
    NvjpegOwned<NvjpegPinned> pinned;
    NvjpegOwned<NvjpegDevice> memory;
    NvjpegOwned<NvjpegStream> headers;
    NvjpegOwned<NvjpegState> state;
    JpegEvent done;
  };

  explicit NvjpegHybrid(const NvjpegFunctions& functions) : functions_(&functions) {}
  absl::Status AddPage(const DeviceApi& device);

  const NvjpegFunctions* functions_;
  NvjpegOwned<NvjpegHandle> handle_;
  NvjpegOwned<NvjpegDecoder> decoder_;
  NvjpegOwned<NvjpegParams> params_;
  std::vector<Page> pages_;
  size_t next_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_NVJPEG_BACKENDS_H_
