// JpegLane: one thread's share of a JpegDecoder: nvJPEG's hybrid decoder, the CPU's, and
// page-locked memory between the CPU's and the device.
//
//   JpegLane lane(functions, device, options);
//   absl::Status status = lane.Decode(image, true, stream, &result);
//
// Lifetime, errors, units: as JpegDecoder. Thread-safety: one thread at a time; lanes share
// nothing.
#ifndef SHARDPACK_CUDA_JPEG_LANE_H_
#define SHARDPACK_CUDA_JPEG_LANE_H_

#include <array>
#include <optional>
#include <string>

#include "cuda/device_event.h"
#include "cuda/jpeg_decoder.h"
#include "cuda/nvjpeg_backends.h"
#include "images/decode.h"

namespace shardpack {

// Page-locked memory that copies to the device read from, a few images' by turns.
class JpegStaging {
 public:
  JpegStaging(const DeviceApi& device, const std::atomic<bool>* stop)
      : device_(device), pages_{Page(device, stop), Page(device, stop), Page(device, stop)} {}
  ~JpegStaging();

  // Memory that no copy reads any more, until the next call after Close.
  absl::StatusOr<uint8_t*> Open(size_t bytes);
  // Behind the copies from what Open gave.
  absl::Status Close(Stream stream);

 private:
  struct Page {
    Page(const DeviceApi& device, const std::atomic<bool>* stop) : done(device, stop) {}
    void* memory = nullptr;
    size_t bytes = 0;
    DeviceEvent done;
  };

  const DeviceApi& device_;
  std::array<Page, 3> pages_;
  size_t next_ = 0;
};

class JpegLane {
 public:
  JpegLane(const NvjpegFunctions* functions, const DeviceApi& device,
           const JpegDecoderOptions& options);

  absl::Status Decode(const JpegImage& image, bool for_nvjpeg, Stream stream, JpegResult* result);
  bool has_hybrid() const { return hybrid_.has_value(); }
  const std::string& why_no_hybrid() const { return why_no_hybrid_; }
  const JpegDecoderStats& stats() const { return stats_; }

 private:
  absl::Status DecodeOnCpu(const JpegImage& image, Stream stream, JpegResult* result);

  const DeviceApi& device_;
  const JpegDecoderOptions options_;
  std::optional<NvjpegHybrid> hybrid_;
  std::string why_no_hybrid_;
  ImageDecoder decoder_;
  JpegStaging staging_;
  JpegDecoderStats stats_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_LANE_H_
