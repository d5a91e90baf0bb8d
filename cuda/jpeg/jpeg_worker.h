// JpegWorker: one thread's share of a JpegDecoder: nvJPEG's hybrid decoder, the CPU's, and
// page-locked memory between the CPU and the device.
//
//   JpegWorker worker(functions, device, options);
//   absl::Status status = worker.Decode(image, true, stream, &result);
//
// Lifetime, errors, units: as JpegDecoder.
// Thread-safety: one thread at a time; workers share nothing.
#ifndef SHARDPACK_CUDA_JPEG_JPEG_WORKER_H_
#define SHARDPACK_CUDA_JPEG_JPEG_WORKER_H_

#include <array>
#include <optional>
#include <string>

#include "cuda/device/device_event.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/jpeg/nvjpeg_backends.h"
#include "cuda/jpeg/region_trial.h"
#include "images/codecs/decode.h"

namespace shardpack {

// Copies rows of pixels to the device through a little page-locked memory, in parts: the device
// reads one while the next is filled. Without such memory the rows are copied directly.
class JpegStaging {
 public:
  static constexpr size_t kPageBytes = size_t{512} << 10;

  JpegStaging(Device& device, const std::atomic<bool>* stop)
      : device_(device), pages_{Page(device, stop), Page(device, stop)} {}
  ~JpegStaging();

  // Rows lie `pitch_bytes` apart at `to`; the bytes between them are not touched.
  absl::Status Put(const PixelView& pixels, uint8_t* to, size_t pitch_bytes, Stream stream);
  // Whether no page-locked memory could be had for the first image.
  bool pageable() const { return allocated_ && pages_[0].memory == nullptr; }

 private:
  struct Page {
    Page(Device& device, const std::atomic<bool>* stop) : done(device, stop) {}
    std::byte* memory = nullptr;
    DeviceEvent done;
  };

  void Allocate();
  absl::Status Flush(Stream stream);

  Device& device_;
  std::array<Page, 2> pages_;
  bool allocated_ = false;
  size_t page_ = 0, used_ = 0;  // the page that is filled, and how far
  uint8_t* page_to_ = nullptr;  // where it goes
};

// What the hybrid decoders of all workers share; without a handle there are none.
struct HybridSource {
  const NvjpegFunctions* functions = nullptr;
  absl::StatusOr<NvjpegSharedHandle> handle;
  NvjpegMemory* memory = nullptr;
};

class JpegWorker {
 public:
  JpegWorker(const HybridSource& hybrid, Device& device, const JpegDecoderOptions& options);

  absl::Status Decode(const JpegImage& image, bool for_nvjpeg, Stream stream, JpegResult* result);
  // Else the hybrid decoder is made when it is first needed.
  void MakeHybrid();
  bool has_hybrid() const { return hybrid_.has_value(); }
  // Whether its hybrid decoder decodes parts of these images, which have rooms.
  absl::Status TryRegions(std::span<const JpegImage> images, Stream stream, RegionVerdict& verdict);
  const std::string& why_no_hybrid() const { return why_no_hybrid_; }
  const JpegDecoderStats& stats() const { return stats_; }
  // On the CPU, unless its pixels too are kUnpainted wherever `unpainted` says so (JpegDecoder).
  absl::Status DecodeSkipped(const JpegImage& image, std::span<const size_t> unpainted,
                             Stream stream, JpegResult* result, bool* skipped);

 private:
  // The region of the image, or all of it.
  absl::StatusOr<DecodedImage> Pixels(const JpegImage& image);
  absl::Status DecodeOnCpu(const JpegImage& image, Stream stream, JpegResult* result);
  absl::Status Fail(const absl::Status& why, JpegResult* result);
  absl::Status Put(const DecodedImage& pixels, const JpegImage& image, size_t pitch_bytes,
                   Stream stream, JpegResult* result);

  const HybridSource source_;
  Device& device_;
  const JpegDecoderOptions options_;
  bool tried_ = false;
  std::optional<NvjpegHybrid> hybrid_;
  std::string why_no_hybrid_;
  ImageDecoder decoder_;
  JpegStaging staging_;
  JpegDecoderStats stats_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_JPEG_WORKER_H_
