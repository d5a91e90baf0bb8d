// Batches in host memory: those of a HostLoader, and those of shardpack_dataset_read.
#include "readers/loading/host_batch.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/host_loader.h"
#include "formats/io/file.h"
#include "images/pixels/orientation.h"

namespace shardpack::api {
namespace {

uint32_t NumberOf(PixelType type) {
  switch (type) {
    case PixelType::kU8:
      return SHARDPACK_U8;
    case PixelType::kF32:
      return SHARDPACK_F32;
    case PixelType::kF16:
      return SHARDPACK_F16;
    case PixelType::kBf16:
      return SHARDPACK_BF16;
  }
  return SHARDPACK_U8;
}

class InHostMemory final : public AnyBatch {
 public:
  InHostMemory(HostBatch batch, std::shared_ptr<const void> keeps,
               const std::optional<CropRule>& rule)
      : keeps_(std::make_unique<const std::shared_ptr<const void>>(std::move(keeps))),
        batch_(std::make_unique<HostBatch>(std::move(batch))),
        rule_(rule) {
    states_.reserve(batch_->size());
    for (const SampleStatus& status : batch_->status())
      states_.push_back(static_cast<uint8_t>(status.state));
  }
  // The memory of a loader has a lock, which in a forked child nobody may ever release.
  ~InHostMemory() override {
    if (::getpid() == process_) return;
    (void)batch_.release();
    (void)keeps_.release();
  }

  void View(shardpack_batch_view& view) const override;
  size_t slots() const override { return batch_->size(); }
  const SampleStatus& status(size_t slot) const override { return batch_->status()[slot]; }
  uint64_t id(size_t slot) const override { return batch_->ids()[slot]; }
  absl::StatusOr<std::string_view> Field(uint32_t n) const override {
    if (n < batch_->fields()) return batch_->field_name(n);
    return absl::OutOfRangeError(absl::StrCat("field ", n, " of ", batch_->fields(), " fields"));
  }
  absl::Status Spans(std::string_view field, std::span<shardpack_span> spans) const override;
  std::optional<std::span<const std::byte>> Masks(std::string_view field) const override;
  absl::Status Crops(std::span<shardpack_crop> crops) const override;
  absl::StatusOr<std::string> Program(size_t slot, uint32_t view) const override;
  bool MayDo(OperationKind kind) const override { return rule_ && rule_->augment->MayDo(kind); }
  const HostBatch* Decoded() const override { return batch_.get(); }
  absl::StatusOr<DeviceTensor> Tensor(uint32_t what) const override;
  absl::Status WaitOn(Stream) override { return absl::OkStatus(); }
  absl::StatusOr<bool> Synchronize(int64_t) override { return true; }
  absl::Status ReleaseOn(Stream) override {
    return absl::UnimplementedError("a batch in host memory has no stream to be released on");
  }

 private:
  const pid_t process_ = ::getpid();
  std::unique_ptr<const std::shared_ptr<const void>> keeps_;
  std::unique_ptr<HostBatch> batch_;
  const std::optional<CropRule> rule_;
  std::vector<uint8_t> states_;
};

static_assert(static_cast<int>(SampleState::kOk) == SHARDPACK_SAMPLE_OK &&
              static_cast<int>(SampleState::kPadding) == SHARDPACK_SAMPLE_PADDING &&
              static_cast<int>(SampleState::kSubstituted) == SHARDPACK_SAMPLE_SUBSTITUTED);

void InHostMemory::View(shardpack_batch_view& view) const {
  view.epoch = batch_->epoch();
  view.step = batch_->step();
  view.slots = batch_->size();
  view.ids = batch_->ids().data();
  view.labels = batch_->labels().data();
  view.states = states_.data();
  if (!batch_->image_infos().empty())
    view.images = reinterpret_cast<const shardpack_image*>(batch_->image_infos().data());
  if (const PixelBatch* const pixels = batch_->pixels()) {
    view.pixels = const_cast<std::byte*>(pixels->bytes.data());
    view.pixel_bytes = pixels->bytes.size();
    view.height = pixels->height;
    view.width = pixels->width;
    view.channels = pixels->channels;
    view.type = NumberOf(pixels->type);
    view.layout = pixels->layout == PixelLayout::kNhwc ? SHARDPACK_NHWC : SHARDPACK_NCHW;
    view.views = pixels->views;
  }
  if (const MixedBatch* const mixed = batch_->mixed()) {
    view.classes = mixed->classes;
    view.soft_labels = mixed->soft_labels.data();
    view.partners = mixed->partners.data();
    view.weights = mixed->weights.data();
  }
  view.fields = static_cast<uint32_t>(batch_->fields());
  view.device_kind = SHARDPACK_HOST;
  view.device_number = -1;
}

absl::Status InHostMemory::Spans(std::string_view field, std::span<shardpack_span> spans) const {
  for (size_t f = 0; f < batch_->fields(); ++f) {
    if (batch_->field_name(f) != field) continue;
    for (size_t slot = 0; slot < spans.size(); ++slot) {
      const Bytes bytes = batch_->bytes(f, slot);
      spans[slot] = {bytes.data(), bytes.size()};
    }
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("the batch has no field ", EscapeForTerminal(std::string(field))));
}

std::optional<std::span<const std::byte>> InHostMemory::Masks(std::string_view field) const {
  for (const MaskBatch& masks : batch_->masks()) {
    if (batch_->field_name(masks.field) == field) return masks.bytes;
  }
  return std::nullopt;
}

absl::Status InHostMemory::Crops(std::span<shardpack_crop> crops) const {
  if (!rule_ || batch_->image_infos().size() != crops.size())
    return absl::UnimplementedError("only batches that a loader has decoded have crops");
  for (size_t slot = 0; slot < crops.size(); ++slot) {
    crops[slot] = {};
    const ImageInfo& info = batch_->image_infos()[slot];
    if (states_[slot] == SHARDPACK_SAMPLE_PADDING || info.width == 0 || info.height == 0) continue;
    uint32_t width = info.width, height = info.height;
    if (rule_->orient && OrientationOf(info.orientation).transpose) std::swap(width, height);
    const Crop crop =
        ChooseCrop(rule_->crop, width, height,
                   {.seed = rule_->seed, .epoch = batch_->epoch(), .id = batch_->ids()[slot]});
    crops[slot] = {crop.box.left, crop.box.top, crop.box.right, crop.box.bottom,
                   width,         height,       crop.flip,      0};
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> InHostMemory::Program(size_t slot, uint32_t view) const {
  if (!rule_) return AnyBatch::Program(slot, view);
  const PixelBatch& pixels = *batch_->pixels();
  if (view >= pixels.views)
    return absl::OutOfRangeError(absl::StrCat("view ", view, " of ", pixels.views, " views"));
  SampleProgram program;
  if (states_[slot] != SHARDPACK_SAMPLE_PADDING) {
    rule_->augment->Draw({.seed = rule_->seed,
                          .epoch = batch_->epoch(),
                          .id = batch_->ids()[slot],
                          .view = static_cast<uint16_t>(view)},
                         pixels.width, pixels.height, program);
  }
  return program.ToText();
}

absl::StatusOr<DeviceTensor> InHostMemory::Tensor(uint32_t what) const {
  DeviceTensor tensor;
  const auto slots = static_cast<int64_t>(batch_->size());
  if (what == SHARDPACK_LABELS) {
    tensor.data = const_cast<int64_t*>(batch_->labels().data());
    tensor.type = TensorType::kI64;
    tensor.shape = {slots};
    tensor.dimensions = 1;
    return tensor;
  }
  const PixelBatch* const pixels = batch_->pixels();
  if (pixels == nullptr) return absl::NotFoundError("the batch has no pixels: it is not decoded");
  tensor.data = const_cast<std::byte*>(pixels->bytes.data());
  tensor.type = TensorTypeOf(pixels->type);
  const int64_t height = pixels->height, width = pixels->width, channels = pixels->channels;
  if (pixels->layout == PixelLayout::kNhwc) {
    tensor.shape = {slots, height, width, channels};
  } else {
    tensor.shape = {slots, channels, height, width};
  }
  tensor.dimensions = 4;
  if (pixels->views > 1) {
    std::copy_backward(tensor.shape.begin(), tensor.shape.begin() + 4, tensor.shape.end());
    tensor.shape[0] = pixels->views;
    tensor.dimensions = 5;
  }
  return tensor;
}

}  // namespace

std::shared_ptr<AnyBatch> HostBatchOf(HostBatch batch, std::shared_ptr<const void> keeps,
                                      const std::optional<CropRule>& rule) {
  return std::make_shared<InHostMemory>(std::move(batch), std::move(keeps), rule);
}

}  // namespace shardpack::api
