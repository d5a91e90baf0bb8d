#include "readers/loading/batch_decoder.h"

#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<BatchDecoder>> BatchDecoder::Create(
    const PixelPipelineOptions& options, uint64_t seed) {
  ASSIGN_OR_RETURN(PixelPipeline pipeline, PixelPipeline::Create(options));
  const size_t sample_bytes = pipeline.output_bytes();
  auto decoder = std::unique_ptr<BatchDecoder>(new BatchDecoder(options, seed, sample_bytes));
  decoder->idle_.push_back(
      std::make_unique<Pipelines>(Pipelines{std::move(pipeline), MaskPipeline(options)}));
  return decoder;
}

absl::StatusOr<std::unique_ptr<BatchDecoder::Pipelines>> BatchDecoder::TakeIdle() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Pipelines> last = std::move(idle_.back());
      idle_.pop_back();
      return last;
    }
  }
  ASSIGN_OR_RETURN(PixelPipeline made, PixelPipeline::Create(options_));
  return std::make_unique<Pipelines>(Pipelines{std::move(made), MaskPipeline(options_)});
}

void BatchDecoder::GiveBack(std::unique_ptr<Pipelines> pipelines) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(pipelines));
}

absl::Status BatchDecoder::Decode(Bytes encoded, const ImageInfo& info, uint64_t epoch, uint64_t id,
                                  std::span<std::byte> slot) const {
  ASSIGN_OR_RETURN(std::unique_ptr<Pipelines> pipelines, TakeIdle());
  absl::Status decoded =
      pipelines->pixels.Run(encoded, info, {.seed = seed_, .epoch = epoch, .id = id}, slot.data());
  GiveBack(std::move(pipelines));
  return decoded;
}

absl::StatusOr<SampleGeometry> BatchDecoder::GeometryOf(Bytes encoded, const ImageInfo& info,
                                                        uint64_t epoch, uint64_t id) const {
  ASSIGN_OR_RETURN(const ShownImage shown, ShownImageOf(encoded, info, options_));
  const CropOptions& made = options_.crop;
  const Crop crop =
      ChooseCrop(made, shown.width, shown.height, {.seed = seed_, .epoch = epoch, .id = id});
  return SampleGeometry{.width = shown.width,
                        .height = shown.height,
                        .crop = crop,
                        .affine = AffineOf(crop, made.width, made.height)};
}

absl::Status BatchDecoder::DecodeMask(Bytes encoded, Bytes image, const ImageInfo& info,
                                      uint64_t epoch, uint64_t id,
                                      std::span<std::byte> slot) const {
  ASSIGN_OR_RETURN(const ShownImage shown, ShownImageOf(image, info, options_));
  ASSIGN_OR_RETURN(std::unique_ptr<Pipelines> pipelines, TakeIdle());
  absl::Status decoded =
      pipelines->masks.Run(encoded, shown, {.seed = seed_, .epoch = epoch, .id = id},
                           reinterpret_cast<uint8_t*>(slot.data()));
  GiveBack(std::move(pipelines));
  return decoded;
}

}  // namespace shardpack
