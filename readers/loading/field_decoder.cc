#include "readers/loading/field_decoder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"
#include "images/augment/shared_crop.h"

namespace shardpack {
namespace {

absl::Status CheckField(const FieldDecode& field, const PixelPipelineOptions& image) {
  switch (field.as) {
    case FieldAs::kImage:
      return absl::OkStatus();
    case FieldAs::kLabels:
      return LabelPipeline::Create(image, field.labels).status();
    case FieldAs::kCoco:
    case FieldAs::kCocoLabels:
      if (field.share == Share::kNone)
        return absl::InvalidArgumentError("objects belong to the image and share its crop");
      if (field.as == FieldAs::kCoco) return CheckObjectOptions(field.objects);
      return ObjectLabels::Create(image, field.labels, field.overlap).status();
  }
  return absl::OkStatus();
}

constexpr uint32_t kMaxSide = 65'535;  // as of every image that is decoded

// The image that the coordinates of objects are of, with the same crop.
struct AnnotatedImage {
  uint32_t width = 0, height = 0;
  Crop crop;
};

// Images are resized when they are packed, and their JSON is not. A size that is turned is that of
// the stored image, whose orientation annotations rarely know of: coordinates are as displayed.
absl::StatusOr<AnnotatedImage> AnnotatedImageOf(const AnnotatedSize& size,
                                                const SampleGeometry& image) {
  if (size.width > kMaxSide || size.height > kMaxSide) {
    return absl::InvalidArgumentError(absl::StrCat("its coordinates are of an image of ",
                                                   size.width, " x ", size.height,
                                                   " pixels; a side has at most ", kMaxSide));
  }
  const auto width = static_cast<uint32_t>(size.width), height = static_cast<uint32_t>(size.height);
  const bool turned = width == image.height && height == image.width;
  if (width == 0 || height == 0 || turned)
    return AnnotatedImage{image.width, image.height, image.crop};
  for (const auto& [w, h] : {std::pair(width, height), std::pair(height, width)}) {
    const absl::StatusOr<Crop> crop = SharedCrop(image.crop, image.width, image.height, w, h);
    if (crop.ok()) return AnnotatedImage{w, h, *crop};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("its coordinates are of an image of ", width, " x ", height,
                   " pixels, and this one has another shape, ", image.width, " x ", image.height));
}

}  // namespace

absl::Status CheckFieldDecodes(std::span<const FieldDecode> fields,
                               const PixelPipelineOptions& image) {
  size_t with_objects = 0;
  for (const FieldDecode& field : fields) {
    absl::Status checked = CheckField(field, image);
    with_objects += field.as == FieldAs::kCoco ? 1 : 0;
    if (checked.ok() && with_objects > 1)
      checked = absl::InvalidArgumentError("another field has the objects already");
    if (checked.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat("field ", EscapeForTerminal(field.field), ": ",
                                                   std::string(checked.message())));
  }
  return absl::OkStatus();
}

FieldDecoder::FieldDecoder(const PixelPipelineOptions& image, const FieldDecode& field,
                           const AugmentPlan& augment, uint64_t seed)
    : image_(image),
      field_(field),
      augment_(augment),
      own_seed_(seed ^ Xxh3_64(AsBytes(field.field))) {}

absl::StatusOr<std::unique_ptr<FieldDecoder>> FieldDecoder::Create(
    const PixelPipelineOptions& image, const FieldDecode& field, const AugmentPlan& augment,
    uint64_t seed) {
  auto decoder = std::unique_ptr<FieldDecoder>(new FieldDecoder(image, field, augment, seed));
  if (field.as == FieldAs::kCoco) return decoder;
  ASSIGN_OR_RETURN(std::unique_ptr<Pipelines> first, decoder->Make());
  decoder->sample_bytes_ = first->output_bytes();
  decoder->pool_.Put(std::move(first));
  return decoder;
}

size_t FieldDecoder::Pipelines::output_bytes() const {
  if (pixels) return pixels->output_bytes();
  return labels ? labels->output_bytes() : object_labels->output_bytes();
}

absl::StatusOr<std::unique_ptr<FieldDecoder::Pipelines>> FieldDecoder::Make() const {
  auto made = std::make_unique<Pipelines>();
  if (field_.as == FieldAs::kImage) {
    ASSIGN_OR_RETURN(PixelPipeline pixels, PixelPipeline::Create(image_));
    made->pixels.emplace(std::move(pixels));
  } else if (field_.as == FieldAs::kLabels) {
    ASSIGN_OR_RETURN(LabelPipeline labels, LabelPipeline::Create(image_, field_.labels));
    made->labels.emplace(std::move(labels));
  } else {
    ASSIGN_OR_RETURN(ObjectLabels labels,
                     ObjectLabels::Create(image_, field_.labels, field_.overlap));
    made->object_labels.emplace(std::move(labels));
  }
  return made;
}

// Each step as the image's own: labels are those of the nearest pixel every time.
absl::Status FieldDecoder::WarpMap(Pipelines& pipelines, const SampleProgram& program,
                                   void* slot) const {
  const uint32_t width = image_.crop.width, height = image_.crop.height;
  for (const Operation& warp : program.operations) {
    if (!pipelines.buffer.Reserve(sample_bytes_))
      return absl::ResourceExhaustedError("no memory for a copy of a label map");
    std::memcpy(pipelines.buffer.data(), slot, sample_bytes_);
    const auto run = [&]<typename Label>(Label ignore) {
      return WarpLabels(warp, reinterpret_cast<const Label*>(pipelines.buffer.data()), width,
                        height, ignore, pipelines.field, static_cast<Label*>(slot));
    };
    RETURN_IF_ERROR(field_.labels.wide ? run(field_.labels.ignore)
                                       : run(static_cast<uint8_t>(field_.labels.ignore)));
  }
  return absl::OkStatus();
}

absl::Status FieldDecoder::Augment(Pipelines& pipelines, const SampleProgram& program,
                                   void* slot) const {
  const CropOptions& size = image_.crop;
  RETURN_IF_ERROR(
      pipelines.runner.Apply(program, {pipelines.buffer.data(), size.width, size.height,
                                       image_.channels, size_t{size.width} * image_.channels}));
  pipelines.pixels->PutPixels(pipelines.buffer.data(), slot);
  return absl::OkStatus();
}

absl::Status FieldDecoder::Run(Pipelines& pipelines, Bytes encoded, const SampleGeometry& image,
                               const SampleProgram& program, const SampleIdentity& own,
                               void* slot) const {
  ShownImage shown;
  shown.width = image.width;
  shown.height = image.height;
  Crop crop = image.crop;
  const bool shares = field_.share != Share::kNone;
  if (!shares || field_.as == FieldAs::kImage) {
    ASSIGN_OR_RETURN(shown, ShownImageOf(encoded, {}, image_));
    if (shares) {
      ASSIGN_OR_RETURN(
          crop, SharedCrop(image.crop, image.width, image.height, shown.width, shown.height));
    } else {
      crop = ChooseCrop(image_.crop, shown.width, shown.height, own);
    }
  }
  SampleProgram drawn;
  if (!shares) augment_.Draw(own, image_.crop.width, image_.crop.height, drawn);
  if (shares) drawn = field_.share == Share::kAll && pipelines.pixels ? program : program.Warps();
  if (pipelines.object_labels) {
    AnnotatedSize size;
    ASSIGN_OR_RETURN(const std::vector<ImageObject> objects, ParseObjects(AsText(encoded), &size));
    ASSIGN_OR_RETURN(const AnnotatedImage annotated, AnnotatedImageOf(size, image));
    const bool same_size = annotated.width == image.width && annotated.height == image.height;
    RETURN_IF_ERROR(pipelines.object_labels->Run(objects, annotated.width, annotated.height,
                                                 annotated.crop, same_size, slot));
    return WarpMap(pipelines, drawn.Warps(), slot);
  }
  if (pipelines.labels) {
    RETURN_IF_ERROR(pipelines.labels->Run(encoded, shown, crop, slot));
    return WarpMap(pipelines, drawn.Warps(), slot);
  }
  if (drawn.operations.empty()) return pipelines.pixels->RunCrop(encoded, shown, crop, slot);
  if (!pipelines.buffer.Reserve(pipelines.pixels->pixel_bytes()))
    return absl::ResourceExhaustedError("no memory for the pixels of an image");
  RETURN_IF_ERROR(pipelines.pixels->RunCropToPixels(encoded, shown, crop, pipelines.buffer.data()));
  return Augment(pipelines, drawn, slot);
}

absl::Status FieldDecoder::DecodePixels(Bytes encoded, const SampleGeometry& image,
                                        const SampleProgram& program, uint64_t epoch, uint64_t id,
                                        std::span<std::byte> slot) const {
  if (encoded.data() == nullptr) {
    if (field_.as == FieldAs::kImage) return absl::DataLossError("the sample has none");
    Fill(slot);
    return absl::OkStatus();
  }
  return pool_.With([&] { return Make(); },
                    [&](Pipelines& pipelines) {
                      return Run(pipelines, encoded, image, program,
                                 {.seed = own_seed_, .epoch = epoch, .id = id}, slot.data());
                    });
}

absl::StatusOr<MovedObjects> FieldDecoder::DecodeObjects(Bytes json,
                                                         const SampleGeometry& image) const {
  if (json.data() == nullptr) return MovedObjects();
  AnnotatedSize size;
  ASSIGN_OR_RETURN(const std::vector<ImageObject> objects, ParseObjects(AsText(json), &size));
  ASSIGN_OR_RETURN(const AnnotatedImage annotated, AnnotatedImageOf(size, image));
  const Movement movement = {.source_width = double(annotated.width),
                             .source_height = double(annotated.height),
                             .crop = annotated.crop,
                             .width = double(image_.crop.width),
                             .height = double(image_.crop.height),
                             .warps = image.warps};
  return MoveObjects(objects, movement, field_.objects);
}

void FieldDecoder::Fill(std::span<std::byte> slot) const {
  if (field_.as == FieldAs::kImage) {
    std::fill(slot.begin(), slot.end(), std::byte{0});
    return;
  }
  FillWithIgnore(field_.labels, slot);
}

}  // namespace shardpack
