// BatchDecoder: decodes the images of a batch to pixels of equal size, and masks that belong to
// them, on any number of threads.
//
//   auto decoder = BatchDecoder::Create(options, seed);
//   absl::Status done = (*decoder)->Decode(jpeg, info, epoch, id, slot);   // sample_bytes() there
//   done = (*decoder)->DecodeMask(png, jpeg, info, epoch, id, mask_slot);  // mask_bytes() there
//
// Random crops and flips depend on (seed, epoch, id) alone, so the pixels do not change when a run
// is resumed or uses another world size or number of threads.
//
// Lifetime: owns one PixelPipeline and one MaskPipeline per concurrently decoding thread.
// Thread-safety: const, any thread.
// Errors: those of PixelPipeline and MaskPipeline.
// Units: bytes.
#ifndef SHARDPACK_READERS_LOADING_BATCH_DECODER_H_
#define SHARDPACK_READERS_LOADING_BATCH_DECODER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/image_info.h"
#include "formats/io/bytes.h"
#include "images/augment/mask_pipeline.h"
#include "images/augment/pixel_pipeline.h"
#include "readers/loading/host_batch.h"

namespace shardpack {

class BatchDecoder {
 public:
  static absl::StatusOr<std::unique_ptr<BatchDecoder>> Create(const PixelPipelineOptions& options,
                                                              uint64_t seed);

  size_t sample_bytes() const { return sample_bytes_; }
  size_t mask_bytes() const { return size_t{options_.crop.width} * options_.crop.height; }
  const PixelPipelineOptions& options() const { return options_; }
  absl::Status Decode(Bytes encoded, const ImageInfo& info, uint64_t epoch, uint64_t id,
                      std::span<std::byte> slot) const;
  // What Decode does with the image.
  absl::StatusOr<SampleGeometry> GeometryOf(Bytes encoded, const ImageInfo& info, uint64_t epoch,
                                            uint64_t id) const;
  // `image` and `info` are those of the sample's image.
  absl::Status DecodeMask(Bytes encoded, Bytes image, const ImageInfo& info, uint64_t epoch,
                          uint64_t id, std::span<std::byte> slot) const;

 private:
  struct Pipelines {
    PixelPipeline pixels;
    MaskPipeline masks;
  };

  absl::StatusOr<std::unique_ptr<Pipelines>> TakeIdle() const;
  void GiveBack(std::unique_ptr<Pipelines> pipelines) const;
  BatchDecoder(const PixelPipelineOptions& options, uint64_t seed, size_t sample_bytes)
      : options_(options), seed_(seed), sample_bytes_(sample_bytes) {}

  const PixelPipelineOptions options_;
  const uint64_t seed_;
  const size_t sample_bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Pipelines>> idle_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_BATCH_DECODER_H_
