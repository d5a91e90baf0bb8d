// BatchDecoder: decodes the images of a batch to pixels of equal size, augmented and mixed, and
// masks that belong to them, on any number of threads.
//
//   auto decoder = BatchDecoder::Create({.pixels = options, .seed = seed});
//   absl::Status done = (*decoder)->Decode(jpeg, info, {seed, epoch, id}, slot);
//   done = (*decoder)->DecodeMask(png, jpeg, info, {seed, epoch, id}, mask_slot);
//
// What is random depends on (seed, epoch, id, view) alone, so the pixels do not change when a run
// is resumed or uses another world size or number of threads.
//
// Lifetime: owns one set of pipelines per concurrently decoding thread.
// Thread-safety: const, any thread.
// Errors: those of PixelPipeline, ProgramRunner and MaskPipeline.
// Units: bytes.
#ifndef SHARDPACK_READERS_LOADING_BATCH_DECODER_H_
#define SHARDPACK_READERS_LOADING_BATCH_DECODER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "augment/mix.h"
#include "augment/plan.h"
#include "formats/core/image_info.h"
#include "formats/io/bytes.h"
#include "images/augment/mask_pipeline.h"
#include "images/augment/pixel_pipeline.h"
#include "readers/loading/host_batch.h"
#include "readers/loading/idle_pool.h"

namespace shardpack {

struct BatchDecoderOptions {
  PixelPipelineOptions pixels = {};
  AugmentPlan augment = {};
  uint64_t seed = 0;
  bool keep_warps = false;  // in SampleGeometry, where fields move with them
};

class BatchDecoder {
 public:
  static absl::StatusOr<std::unique_ptr<BatchDecoder>> Create(const BatchDecoderOptions& options);

  size_t sample_bytes() const { return sample_bytes_; }
  size_t mask_bytes() const {
    return size_t{options_.pixels.crop.width} * options_.pixels.crop.height;
  }
  const PixelPipelineOptions& options() const { return options_.pixels; }
  SampleIdentity Identity(uint64_t epoch, uint64_t id, uint16_t view = 0) const {
    return {.seed = options_.seed, .epoch = epoch, .id = id, .view = view};
  }

  absl::Status Decode(Bytes encoded, const ImageInfo& info, const SampleIdentity& sample,
                      std::span<std::byte> slot) const;
  // What Decode does with the image.
  absl::StatusOr<SampleGeometry> GeometryOf(Bytes encoded, const ImageInfo& info,
                                            const SampleIdentity& sample) const;
  SampleProgram ProgramOf(const SampleIdentity& sample) const;
  // `image` and `info` are those of the sample's image.
  absl::Status DecodeMask(Bytes encoded, Bytes image, const ImageInfo& info,
                          const SampleIdentity& sample, std::span<std::byte> slot) const;

  // One sample of a group; without an id it is padding, whose pixels are 0.
  struct GroupSample {
    Bytes encoded = {};
    const ImageInfo* info = nullptr;
    std::optional<SampleIdentity> sample = std::nullopt;
    std::span<std::byte> slot = {};
  };
  // Decodes all samples of a group, and mixes each with the next one; the last with the first.
  // Padding is never a partner. On an error, `bad` is the sample that cannot be decoded.
  absl::Status DecodeGroup(std::span<const GroupSample> group, const MixDraw& draw,
                           size_t* bad) const;

 private:
  struct Pipelines {
    PixelPipeline pixels;
    MaskPipeline masks;
    ProgramRunner runner = {};
    SampleProgram program = {};
    PixelBuffer buffer = {};  // pixels before they are put into slots
  };

  explicit BatchDecoder(const BatchDecoderOptions& options)
      : options_(options), may_warp_(options.augment.MayWarp()) {}
  absl::StatusOr<std::unique_ptr<Pipelines>> Make() const;
  // Runs `work` with pipelines that no other thread uses.
  template <typename Work>
  absl::Status With(const Work& work) const;
  absl::Status DecodePixels(Pipelines& pipelines, Bytes encoded, const ImageInfo& info,
                            const SampleIdentity& sample, uint8_t* pixels) const;

  const BatchDecoderOptions options_;
  const bool may_warp_;
  size_t sample_bytes_ = 0;
  mutable IdlePool<Pipelines> pool_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_BATCH_DECODER_H_
