#include "readers/loading/batch_decoder.h"

#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<BatchDecoder>> BatchDecoder::Create(
    const PixelPipelineOptions& options, uint64_t seed) {
  ASSIGN_OR_RETURN(PixelPipeline pipeline, PixelPipeline::Create(options));
  const size_t sample_bytes = pipeline.output_bytes();
  auto decoder = std::unique_ptr<BatchDecoder>(new BatchDecoder(options, seed, sample_bytes));
  decoder->idle_.push_back(std::make_unique<PixelPipeline>(std::move(pipeline)));
  return decoder;
}

absl::Status BatchDecoder::Decode(Bytes encoded, const ImageInfo& info, uint64_t epoch, uint64_t id,
                                  std::span<std::byte> slot) const {
  std::unique_ptr<PixelPipeline> pipeline;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      pipeline = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (pipeline == nullptr) {
    ASSIGN_OR_RETURN(PixelPipeline made, PixelPipeline::Create(options_));
    pipeline = std::make_unique<PixelPipeline>(std::move(made));
  }
  absl::Status decoded =
      pipeline->Run(encoded, info, {.seed = seed_, .epoch = epoch, .id = id}, slot.data());
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(pipeline));
  return decoded;
}

}  // namespace shardpack
