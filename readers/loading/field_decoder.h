// FieldDecoder: decodes one field beside the image, on any number of threads.
//
//   auto decoder = FieldDecoder::Create(image_options, {.field = "mask.png"}, plan, seed);
//   absl::Status done = (*decoder)->DecodePixels(png, geometry, program, epoch, id, slot);
//   absl::StatusOr<MovedObjects> moved = (*decoder)->DecodeObjects(json, geometry);
//
// Lifetime: owns one pipeline per concurrently decoding thread.
// Thread-safety: const, any thread.
// Errors: those of PixelPipeline, LabelPipeline, ParseObjects, MoveObjects and ObjectLabels.
// Units: bytes.
#ifndef SHARDPACK_READERS_LOADING_FIELD_DECODER_H_
#define SHARDPACK_READERS_LOADING_FIELD_DECODER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "formats/io/bytes.h"
#include "readers/loading/field_decode.h"
#include "readers/loading/host_batch.h"
#include "readers/loading/idle_pool.h"

namespace shardpack {

class FieldDecoder {
 public:
  // `image`: the options of the image, which pass PixelPipeline::Create.
  static absl::StatusOr<std::unique_ptr<FieldDecoder>> Create(const PixelPipelineOptions& image,
                                                              const FieldDecode& field,
                                                              const AugmentPlan& augment,
                                                              uint64_t seed);

  const FieldDecode& field() const { return field_; }
  size_t sample_bytes() const { return sample_bytes_; }  // 0 for objects
  // `encoded` without data: the sample lacks the field. `image`: what became of the sample's image.
  // `program`: what the image got.
  absl::Status DecodePixels(Bytes encoded, const SampleGeometry& image,
                            const SampleProgram& program, uint64_t epoch, uint64_t id,
                            std::span<std::byte> slot) const;
  absl::StatusOr<MovedObjects> DecodeObjects(Bytes json, const SampleGeometry& image) const;
  // What padding has.
  void Fill(std::span<std::byte> slot) const;

 private:
  struct Pipelines {
    std::optional<PixelPipeline> pixels;
    std::optional<LabelPipeline> labels;
    std::optional<ObjectLabels> object_labels;
    ProgramRunner runner = {};
    ElasticField field = {};
    PixelBuffer buffer = {};

    size_t output_bytes() const;
  };

  FieldDecoder(const PixelPipelineOptions& image, const FieldDecode& field,
               const AugmentPlan& augment, uint64_t seed);
  absl::StatusOr<std::unique_ptr<Pipelines>> Make() const;
  absl::Status Run(Pipelines& pipelines, Bytes encoded, const SampleGeometry& image,
                   const SampleProgram& program, const SampleIdentity& own, void* slot) const;
  absl::Status Augment(Pipelines& pipelines, const SampleProgram& program, void* slot) const;
  absl::Status WarpMap(Pipelines& pipelines, const SampleProgram& program, void* slot) const;

  const PixelPipelineOptions image_;
  const FieldDecode field_;
  const AugmentPlan augment_;
  const uint64_t own_seed_;  // for Share::kNone
  size_t sample_bytes_ = 0;
  mutable IdlePool<Pipelines> pool_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_FIELD_DECODER_H_
