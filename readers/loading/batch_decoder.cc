#include "readers/loading/batch_decoder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<BatchDecoder>> BatchDecoder::Create(
    const BatchDecoderOptions& options) {
  auto decoder = std::unique_ptr<BatchDecoder>(new BatchDecoder(options));
  RETURN_IF_ERROR(options.augment.CheckReady());
  ASSIGN_OR_RETURN(std::unique_ptr<Pipelines> first, decoder->Make());
  decoder->sample_bytes_ = first->pixels.output_bytes();
  decoder->pool_.Put(std::move(first));
  return decoder;
}

absl::StatusOr<std::unique_ptr<BatchDecoder::Pipelines>> BatchDecoder::Make() const {
  ASSIGN_OR_RETURN(PixelPipeline pixels, PixelPipeline::Create(options_.pixels));
  return std::make_unique<Pipelines>(
      Pipelines{.pixels = std::move(pixels), .masks = MaskPipeline(options_.pixels)});
}

template <typename Work>
absl::Status BatchDecoder::With(const Work& work) const {
  return pool_.With([&] { return Make(); }, work);
}

absl::Status BatchDecoder::DecodePixels(Pipelines& pipelines, Bytes encoded, const ImageInfo& info,
                                        const SampleIdentity& sample, uint8_t* pixels) const {
  RETURN_IF_ERROR(pipelines.pixels.RunToPixels(encoded, info, sample, pixels));
  const auto& [width, height] = std::tie(options_.pixels.crop.width, options_.pixels.crop.height);
  options_.augment.Draw(sample, width, height, pipelines.program);
  return pipelines.runner.Apply(pipelines.program, {pixels, width, height, options_.pixels.channels,
                                                    size_t{width} * options_.pixels.channels});
}

absl::Status BatchDecoder::Decode(Bytes encoded, const ImageInfo& info,
                                  const SampleIdentity& sample, std::span<std::byte> slot) const {
  return With([&](Pipelines& pipelines) -> absl::Status {
    PixelPipeline& pipeline = pipelines.pixels;
    if (options_.augment.empty()) return pipeline.Run(encoded, info, sample, slot.data());
    if (pipeline.output_is_pixels())
      return DecodePixels(pipelines, encoded, info, sample,
                          reinterpret_cast<uint8_t*>(slot.data()));
    if (!pipelines.buffer.Reserve(pipeline.pixel_bytes()))
      return absl::ResourceExhaustedError("no memory for the pixels of an image");
    RETURN_IF_ERROR(DecodePixels(pipelines, encoded, info, sample, pipelines.buffer.data()));
    pipeline.PutPixels(pipelines.buffer.data(), slot.data());
    return absl::OkStatus();
  });
}

SampleProgram BatchDecoder::ProgramOf(const SampleIdentity& sample) const {
  SampleProgram program;
  const CropOptions& size = options_.pixels.crop;
  options_.augment.Draw(sample, size.width, size.height, program);
  return program;
}

absl::StatusOr<SampleGeometry> BatchDecoder::GeometryOf(Bytes encoded, const ImageInfo& info,
                                                        const SampleIdentity& sample) const {
  ASSIGN_OR_RETURN(const ShownImage shown, ShownImageOf(encoded, info, options_.pixels));
  const CropOptions& made = options_.pixels.crop;
  const Crop crop = ChooseCrop(made, shown.width, shown.height, sample);
  SampleGeometry geometry = {.width = shown.width,
                             .height = shown.height,
                             .crop = crop,
                             .map = Projection(AffineOf(crop, made.width, made.height))};
  if (!may_warp_) return geometry;
  for (const Operation& warp : ProgramOf(sample).Warps().operations) {
    if (warp.kind == OperationKind::kElastic) continue;
    const auto source = SourceOf(warp, made.width, made.height);
    const auto forward = source ? Inverse(Projection(*source)) : std::nullopt;
    if (!forward) return absl::InternalError("a warp cannot be inverted");  // limits forbid it
    if (options_.keep_warps) geometry.warps.push_back(*forward);
    geometry.map = Then(geometry.map, *forward);
  }
  return geometry;
}

absl::Status BatchDecoder::DecodeMask(Bytes encoded, Bytes image, const ImageInfo& info,
                                      const SampleIdentity& sample,
                                      std::span<std::byte> slot) const {
  ASSIGN_OR_RETURN(const ShownImage shown, ShownImageOf(image, info, options_.pixels));
  return With([&](Pipelines& pipelines) {
    return pipelines.masks.Run(encoded, shown, sample, reinterpret_cast<uint8_t*>(slot.data()));
  });
}

absl::Status BatchDecoder::DecodeGroup(std::span<const GroupSample> group, const MixDraw& draw,
                                       size_t* bad) const {
  return With([&](Pipelines& pipelines) -> absl::Status {
    PixelPipeline& pipeline = pipelines.pixels;
    const size_t bytes = pipeline.pixel_bytes();
    // One more for the result of mixing.
    if (!pipelines.buffer.Reserve(bytes * (group.size() + 1)))
      return absl::ResourceExhaustedError("no memory for the pixels of a group");
    uint8_t* const all = pipelines.buffer.data();
    uint8_t* const mixed = all + bytes * group.size();
    for (size_t i = 0; i < group.size(); ++i) {
      if (!group[i].sample) continue;
      *bad = i;
      RETURN_IF_ERROR(DecodePixels(pipelines, group[i].encoded, *group[i].info, *group[i].sample,
                                   all + i * bytes));
    }
    const CropOptions& size = options_.pixels.crop;
    const uint32_t channels = options_.pixels.channels;
    for (size_t i = 0; i < group.size(); ++i) {
      const size_t partner = (i + 1) % group.size();
      uint8_t* result = all + i * bytes;
      if (!group[i].sample) {
        std::fill(group[i].slot.begin(), group[i].slot.end(), std::byte{0});
        continue;
      }
      if (draw.mixed() && group[partner].sample) {
        MixPixels(draw, {result, size.width, size.height, channels, size_t{size.width} * channels},
                  all + partner * bytes, mixed);
        result = mixed;
      }
      pipeline.PutPixels(result, group[i].slot.data());
    }
    return absl::OkStatus();
  });
}

}  // namespace shardpack
