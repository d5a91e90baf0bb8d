// DeviceDecoder: the encoded images of a host batch to pixels on the device, and which part of each
// the preprocessing takes.
//
//   auto decoder = DeviceDecoder::Create(api, decode, &stop);
//   absl::Status status = (*decoder)->Decode(batch, 0, stream, samples, why);
//   // PreprocessSample samples[slot] lead to the pixels until the next Decode on this stream
//
// Images are decoded whole by JpegDecoder (cuda/jpeg_decoder.h) into one piece of device memory,
// which grows when a batch needs more than any before; crops and flips are those that the Loader
// would choose (images/crop.h: a function of seed, epoch and id). Against the Loader's own decoding
// the result differs where that one decodes a JPEG at a smaller scale. Lifetime: the table outlives
// it; batch and samples live until the stream has run. Thread-safety: one thread at a time, always
// with the same stream. Errors: of an image in `why`, its sample without pixels; Decode fails with
// the device alone, ResourceExhausted before anything is enqueued. Units: bytes, pixels.
#ifndef SHARDPACK_CUDA_DEVICE_DECODER_H_
#define SHARDPACK_CUDA_DEVICE_DECODER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cuda/device_api.h"
#include "cuda/jpeg_decoder.h"
#include "cuda/nvjpeg_library.h"
#include "images/crop.h"
#include "readers/host_batch.h"

namespace shardpack {

struct DeviceDecode {
  CropOptions crop = {};
  uint64_t augment_seed = 0;  // of random crops and flips
  uint8_t channels = 3;       // 1: gray, 3: RGB
  bool orient = true;
  uint64_t max_pixels = JpegDecoderOptions().max_pixels;  // of an image
  int threads = 0;  // for what the GPU's engines do not take; 0: the cores this process may use
  bool use_hardware = true, use_hybrid = true;
  // nullptr: NvjpegLibrary::Open, where the device is a GPU.
  const NvjpegFunctions* nvjpeg = nullptr;
};

class DeviceDecoder {
 public:
  // `stop` ends waiting for the device.
  static absl::StatusOr<std::unique_ptr<DeviceDecoder>> Create(const DeviceApi& api,
                                                               const DeviceDecode& options,
                                                               const std::atomic<bool>* stop);
  ~DeviceDecoder();

  // `field` is the image's; `samples` and `why` have a slot's each. Padding has no pixels.
  absl::Status Decode(const HostBatch& batch, size_t field, Stream stream,
                      std::span<PreprocessSample> samples, std::span<absl::Status> why);

  JpegDecoderStats stats() const { return decoder_->stats(); }
  bool has_hardware() const { return decoder_->has_hardware(); }
  // JpegDecoder::backends, or why there is no nvJPEG.
  std::string backends() const;
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  DeviceDecoder(const DeviceApi& api, const DeviceDecode& options) : api_(api), options_(options) {}
  absl::Status Plan(Bytes file, const ImageInfo& info, size_t* bytes, JpegImage* image) const;
  absl::Status Reserve(size_t bytes);
  PreprocessSample SampleOf(const JpegImage& image, const SampleIdentity& identity) const;

  const DeviceApi& api_;
  const DeviceDecode options_;
  std::optional<NvjpegLibrary> library_;
  std::string why_no_library_;
  void* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  std::unique_ptr<JpegDecoder> decoder_;
  // Of one call.
  std::vector<JpegImage> images_;
  std::vector<size_t> slots_, places_;
  std::vector<JpegResult> results_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_DECODER_H_
