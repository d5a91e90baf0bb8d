// RegionTrial: whether nvJPEG gives the same pixels for a part of an image as for all of it.
//
//   RegionTrial trial(device, options, [&](const JpegImage& image) { ... });   // decodes it
//   for (const JpegImage& image : images) RETURN_IF_ERROR(trial.Try(image, stream));
//   trial.Judge(verdict);
//
// Each image is decoded twice, into memory of the trial: all of it, and what its room is for. The
// region has to be the same to the last bit, and nothing may be written beyond the room, for which
// the trial has memory if the part is ignored. Images without edges would show nothing: then others
// are tried later.
//
// Lifetime: device and stream outlive it.
// Thread-safety: one thread at a time.
// Errors: those of the device; Cancelled by JpegDecoderOptions::stop. All else is the verdict.
// Units: pixels; bytes in names.
#ifndef SHARDPACK_CUDA_JPEG_REGION_TRIAL_H_
#define SHARDPACK_CUDA_JPEG_REGION_TRIAL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "cuda/device/device.h"
#include "cuda/jpeg/jpeg_decoder.h"

namespace shardpack {

// Of a way of nvJPEG, about regions.
struct RegionVerdict {
  static constexpr uint32_t kTrials = 4;  // of images without edges

  bool known = false;
  std::string why_not;
  uint32_t trials = 0;

  bool usable() const { return known && why_not.empty(); }
  bool may_be_usable() const { return why_not.empty(); }
};

class RegionTrial {
 public:
  static constexpr size_t kImages = 8;  // that are tried

  RegionTrial(Device& device, const JpegDecoderOptions& options,
              std::function<absl::Status(const JpegImage&)> decode)
      : device_(device), options_(options), decode_(std::move(decode)) {}

  // An image with a room, which only matters if the way takes it whole; `out` is not used.
  absl::Status Try(const JpegImage& image, Stream stream);
  void Refuse(const std::string& why) { why_not_ = why_not_.empty() ? why : why_not_; }
  bool done() const { return tried_ == kImages || !why_not_.empty(); }
  // Nothing becomes known if no image was tried.
  void Judge(RegionVerdict& verdict) const;

 private:
  absl::Status Decode(const JpegImage& image, size_t whole_at_bytes, uint8_t* memory, size_t bytes,
                      Stream stream);
  void Compare(const JpegImage& image, const uint8_t* part, size_t bytes, const uint8_t* whole);

  Device& device_;
  const JpegDecoderOptions& options_;
  const std::function<absl::Status(const JpegImage&)> decode_;
  size_t tried_ = 0;
  bool has_edges_x_ = false, has_edges_y_ = false;
  std::string why_not_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_REGION_TRIAL_H_
