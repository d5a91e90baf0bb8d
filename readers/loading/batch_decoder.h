// BatchDecoder: decodes the images of a batch to pixels of equal size, on any number of threads.
//
//   auto decoder = BatchDecoder::Create(options, seed);
//   absl::Status done = (*decoder)->Decode(jpeg, info, epoch, id, slot);   // sample_bytes() there
//
// Random crops and flips depend on (seed, epoch, id) alone, so the pixels do not change when a run
// is resumed or uses another world size or number of threads.
//
// Lifetime: owns one PixelPipeline per concurrently decoding thread.
// Thread-safety: const, any thread.
// Errors: those of PixelPipeline.
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
#include "images/augment/pixel_pipeline.h"

namespace shardpack {

class BatchDecoder {
 public:
  static absl::StatusOr<std::unique_ptr<BatchDecoder>> Create(const PixelPipelineOptions& options,
                                                              uint64_t seed);

  size_t sample_bytes() const { return sample_bytes_; }
  const PixelPipelineOptions& options() const { return options_; }
  absl::Status Decode(Bytes encoded, const ImageInfo& info, uint64_t epoch, uint64_t id,
                      std::span<std::byte> slot) const;

 private:
  BatchDecoder(const PixelPipelineOptions& options, uint64_t seed, size_t sample_bytes)
      : options_(options), seed_(seed), sample_bytes_(sample_bytes) {}

  const PixelPipelineOptions options_;
  const uint64_t seed_;
  const size_t sample_bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<PixelPipeline>> idle_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_BATCH_DECODER_H_
