// BatchShape: what all batches of a DeviceLoader have in common, as the first one shows.
//
//   ASSIGN_OR_RETURN(const BatchShape shape, BatchShape::Of(first_batch, options));
//   if (shape.pixel_bytes > 0) ...   // batches have pixels
//
// Thread-safety: a value.
// Errors: InvalidArgument if the options ask for what the Loader's batches do not allow;
// Unimplemented for what a batch on a device does not have: several views, mixed samples, masks and
// other decoded fields.
// Units: bytes, pixels.
#ifndef SHARDPACK_CUDA_LOADING_BATCH_SHAPE_H_
#define SHARDPACK_CUDA_LOADING_BATCH_SHAPE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "cuda/loading/device_buffers.h"
#include "cuda/loading/device_loader.h"

namespace shardpack {

struct BatchShape {
  static absl::StatusOr<BatchShape> Of(const HostBatch& batch, const DeviceOptions& options);

  uint32_t slots = 0;
  // Images before the preprocessing, if there is one, and as batches give them out.
  uint32_t width = 0, height = 0, channels = 0;
  uint32_t out_width = 0, out_height = 0;
  OutputFormat format;                // as batches give them out
  std::optional<PixelOutput> output;  // of the preprocessing
  ResizeFilter filter = ResizeFilter::kBilinear;
  size_t host_pixel_bytes = 0;          // a batch, as the Loader decodes it; 0 if it does not
  size_t pixel_bytes = 0;               // a batch, as it is given out; 0: no pixels
  bool has_raw = false;                 // slabs are copied, for their encoded bytes
  std::optional<size_t> decoded_field;  // with DeviceOptions::decode: of the images

  bool preprocesses() const { return output.has_value(); }
  // Room for the slabs of a batch.
  static size_t RawBytes(const HostBatch& batch);
  // One a slot: whole images without their pixels; empty ones if each image is decoded here.
  std::vector<PreprocessSample> Samples() const;
  PreprocessLaunch LaunchOf(const DeviceBuffer& buffer) const;
  DeviceTensor PixelsOf(const Device& device, const DeviceBuffer& buffer) const {
    return PixelTensor(device, buffer.output, format, slots, out_height, out_width, channels);
  }
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_BATCH_SHAPE_H_
