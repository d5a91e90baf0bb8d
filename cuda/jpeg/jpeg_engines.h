// JpegEngines: the GPU's JPEG engines, as far as they can be trusted.
//
//   JpegEngines engines(functions, device, options, memory);
//   if (engines.Takes(image, lane)) batch.push_back(&image);
//   absl::Status status = engines.Decode(batch, stream, decoded);   // decoded[i]: or elsewhere
//
// They decode a batch in one call, all of it or nothing, and do not say which image they refuse. A
// refused batch is halved until those images are found, which are not offered again; engines that
// refuse whole batches rest for a while. Their first images are compared with the CPU's: engines
// that decode wrongly, or that later skip many images, are not used any more. Images with a room
// are for them once a trial has shown that they decode parts rightly; engines that do not, or that
// refuse a batch of parts, are given whole images from then on.
//
// Lifetime: functions, device and memory outlive it.
// Thread-safety: one thread at a time, but Takes; all have entered the device.
// Errors: those of the device.
#ifndef SHARDPACK_CUDA_JPEG_JPEG_ENGINES_H_
#define SHARDPACK_CUDA_JPEG_JPEG_ENGINES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/jpeg/nvjpeg_backends.h"
#include "cuda/jpeg/nvjpeg_memory.h"
#include "cuda/jpeg/region_trial.h"

namespace shardpack {

class JpegEngines {
 public:
  JpegEngines(const NvjpegFunctions* functions, Device& device, const JpegDecoderOptions& options,
              NvjpegMemory& memory);

  // Whether they are asked now.
  bool usable() const { return hardware_.has_value() && rest_ == 0; }
  // "7 engines", or why they are not used.
  std::string Describe() const;
  // Once a batch, before Takes.
  void BeginBatch();
  // Until they are known: tries some of these images with a room, of the batch that begins.
  absl::Status TryRegions(std::span<const JpegImage> images, Stream stream);
  const RegionVerdict& regions() const { return regions_; }
  // Callers at the same time have other lanes (NvjpegHardware::Takes).
  bool Takes(const JpegImage& image, size_t lane) const;
  // Any part of the batch.
  absl::Status Decode(std::span<const JpegImage* const> images, Stream stream,
                      std::vector<bool>& decoded);
  // Until all that they were asked for is there.
  absl::Status Wait() { return hardware_ ? hardware_->Wait() : absl::OkStatus(); }
  // Whether they have decoded nothing of this batch, and enough was asked to say so.
  bool refuse_all() const { return batch_decoded_ == 0 && asked_ >= kEnoughAsked; }
  // Judges them by the whole batch, whose images are still there.
  void EndBatch();
  // That they said they had decoded it, and had not.
  void NoteSkipped(const JpegImage& image);

  const JpegDecoderStats& stats() const { return stats_; }

 private:
  static constexpr size_t kEnoughAsked = 8;  // images

  absl::Status DecodePart(std::span<const JpegImage* const> images, size_t begin, Stream stream,
                          std::vector<bool>& decoded);
  absl::Status CompareWithCpu(std::span<const JpegImage* const> images, Stream stream,
                              std::vector<bool>& decoded);
  void Remember(const JpegImage& image);
  void GiveUp(const std::string& why);

  Device& device_;
  const JpegDecoderOptions options_;
  std::optional<NvjpegHardware> hardware_;
  std::string why_not_;
  bool compared_ = false;
  RegionVerdict regions_;
  int failed_in_a_row_ = 0;               // batches of which nothing was decoded
  uint32_t rest_ = 0, next_rest_ = 256;   // batches that they are not asked for
  std::unordered_set<uint64_t> refused_;  // ids
  JpegDecoderStats stats_;
  // For one batch.
  size_t decoded_ = 0, calls_left_ = 0;
  size_t asked_ = 0, batch_decoded_ = 0;
  bool by_region_ = false;
  std::vector<const JpegImage*> culprits_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_JPEG_ENGINES_H_
