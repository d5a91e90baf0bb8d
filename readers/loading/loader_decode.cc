// What a loader decodes: the pixels and masks of each slot.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "readers/loading/loader_core.h"
#include "readers/order/order.h"

namespace shardpack {

void Loader::Core::PlacePixels(SlabLease lease, HostBatch::Content& content) const {
  content.pixel_lease = std::move(lease);
  const std::span<const std::byte> all = content.pixel_lease.runs()[0];
  const BatchDecoder& decoder = *decoding_->decoder;
  const PixelPipelineOptions& made = decoder.options();
  content.pixels =
      PixelBatch{.bytes = all.first(options_.views * content.ids.size() * decoder.sample_bytes()),
                 .sample_bytes = decoder.sample_bytes(),
                 .views = options_.views,
                 .height = made.crop.height,
                 .width = made.crop.width,
                 .channels = made.channels,
                 .type = made.output.type,
                 .layout = made.output.layout};
  size_t at = decoding_->pixel_bytes;
  for (const size_t field : decoding_->masks) {
    content.masks.push_back({field, all.subspan(at, content.ids.size() * decoder.mask_bytes())});
    at += decoding_->mask_bytes;
  }
  PlaceFields(content);
}

absl::Status Loader::Core::AboutSample(const absl::Status& why, uint64_t id) const {
  const ShardTable& table = fetcher_.table();
  return WithFacts(Reworded(why, absl::StrCat(table.Describe(id), ": ", std::string(why.message())),
                            absl::StatusCode::kDataLoss),
                   table.Facts(id));
}

absl::Status Loader::Core::AboutField(const absl::Status& why, size_t field) const {
  const std::string& name = options_.fields[field];
  return WithFacts(Reworded(why, absl::StrCat("field ", EscapeForTerminal(name), ": ",
                                              std::string(why.message()))),
                   {.field = name});
}

absl::Status Loader::Core::DecodeSlot(Pending& batch, uint32_t slot, const HostBatch::Content& from,
                                      size_t from_slot, const ImageInfo& info) {
  absl::Status decoded = DecodeFields(batch, slot, from, from_slot, info);
  return decoded.ok() ? decoded : AboutSample(decoded, batch.content->ids[slot]);
}

absl::Status Loader::Core::DecodeFields(Pending& batch, uint32_t slot,
                                        const HostBatch::Content& from, size_t from_slot,
                                        const ImageInfo& info) {
  const BatchDecoder& decoder = *decoding_->decoder;
  const std::span<std::byte> all = batch.content->pixel_lease.runs()[0];
  const size_t slots = batch.content->ids.size();
  const auto encoded = [&](size_t field) {
    return from.bytes[field * from.ids.size() + from_slot];
  };
  const uint64_t id = batch.content->ids[slot];
  const Bytes image = encoded(decoding_->field);
  if (id != kPaddingId && image.data() == nullptr)
    return absl::DataLossError("the sample has no image");
  for (uint32_t view = 0; view < options_.views; ++view) {
    const std::span<std::byte> into =
        all.subspan((view * slots + slot) * decoder.sample_bytes(), decoder.sample_bytes());
    if (id == kPaddingId) {
      std::fill(into.begin(), into.end(), std::byte{0});
    } else {
      RETURN_IF_ERROR(decoder.Decode(
          image, info, decoder.Identity(batch.epoch, id, static_cast<uint16_t>(view)), into));
    }
  }
  const SampleIdentity identity = decoder.Identity(batch.epoch, id);
  if (id != kPaddingId) {
    ASSIGN_OR_RETURN(batch.content->geometry[slot], decoder.GeometryOf(image, info, identity));
  }
  size_t at = decoding_->pixel_bytes + slot * decoder.mask_bytes();
  for (const size_t field : decoding_->masks) {
    const std::span<std::byte> mask = all.subspan(at, decoder.mask_bytes());
    at += decoding_->mask_bytes;
    const Bytes bytes = encoded(field);
    if (bytes.data() == nullptr) {
      std::fill(mask.begin(), mask.end(), std::byte{0});
      continue;
    }
    const absl::Status decoded = decoder.DecodeMask(bytes, image, info, identity, mask);
    if (!decoded.ok()) return AboutField(decoded, field);
  }
  return DecodeMoreFields(batch, slot, from, from_slot);
}

MixDraw Loader::Core::DrawGroup(const Pending& batch, size_t first) const {
  const BatchDecoder& decoder = *decoding_->decoder;
  const uint32_t global_batch = order_.spec().global_batch;
  const uint64_t slot = batch.step * global_batch + rank_.first_slot(global_batch) + first;
  const CropOptions& size = decoder.options().crop;
  return DrawMix(*options_.mix, options_.augment_seed, batch.epoch, slot / options_.mix->group,
                 size.width, size.height);
}

void Loader::Core::DecodeGroup(Pending& batch, size_t first, std::vector<BadRead>& bad) {
  const BatchDecoder& decoder = *decoding_->decoder;
  const HostBatch::Content& content = *batch.content;
  const std::span<std::byte> all = content.pixel_lease.runs()[0];
  const size_t slots = content.ids.size();
  std::vector<BatchDecoder::GroupSample> group(options_.mix->group);
  for (size_t i = 0; i < group.size(); ++i) {
    const size_t slot = first + i;
    group[i].slot = all.subspan(slot * decoder.sample_bytes(), decoder.sample_bytes());
    if (content.ids[slot] == kPaddingId) continue;
    group[i].encoded = content.bytes[decoding_->field * slots + slot];
    group[i].info = &batch.plan.infos[slot];
    group[i].sample = decoder.Identity(batch.epoch, content.ids[slot]);
    if (group[i].encoded.data() != nullptr) continue;
    bad.push_back({static_cast<uint32_t>(slot),
                   AboutSample(absl::DataLossError("the sample has no image"), content.ids[slot])});
    return;
  }
  size_t at = 0;
  absl::Status decoded = decoder.DecodeGroup(group, DrawGroup(batch, first), &at);
  for (size_t i = 0; decoded.ok() && i < group.size(); ++i) {
    if (!group[i].sample) continue;
    at = i;
    absl::StatusOr<SampleGeometry> geometry =
        decoder.GeometryOf(group[i].encoded, *group[i].info, *group[i].sample);
    decoded = geometry.status();
    if (decoded.ok()) batch.content->geometry[first + i] = *std::move(geometry);
  }
  if (decoded.ok()) return;
  bad.push_back({static_cast<uint32_t>(first + at), AboutSample(decoded, content.ids[first + at])});
}

// After substitution, whose samples bring their own labels.
absl::Status Loader::Core::FillMixed(Pending& batch) {
  HostBatch::Content& content = *batch.content;
  const MixOptions& mix = *options_.mix;
  const size_t slots = content.ids.size();
  MixedBatch& mixed = content.mixed.emplace();
  mixed.classes = mix.classes;
  mixed.soft_labels.resize(slots * mix.classes);
  mixed.partners.assign(slots, kPaddingId);
  mixed.weights.resize(slots);
  for (size_t slot = 0; slot < slots; ++slot) {
    if (content.labels[slot] < static_cast<int64_t>(mix.classes)) continue;
    return AboutSample(absl::InvalidArgumentError(absl::StrCat("the label ", content.labels[slot],
                                                               " is not one of the ", mix.classes,
                                                               " classes of mix")),
                       content.ids[slot]);
  }
  for (size_t first = 0; first < slots; first += mix.group) {
    const MixDraw draw = DrawGroup(batch, first);
    for (size_t slot = first; slot < first + mix.group; ++slot) {
      if (content.ids[slot] == kPaddingId) continue;
      const size_t partner = slot + 1 < first + mix.group ? slot + 1 : first;
      const bool is_mixed = draw.mixed() && content.ids[partner] != kPaddingId;
      if (is_mixed) mixed.partners[slot] = content.ids[partner];
      mixed.weights[slot] = is_mixed ? static_cast<float>(draw.weight) : 0;
      SoftLabels(mix, is_mixed ? draw.weight : 0, content.labels[slot], content.labels[partner],
                 std::span(mixed.soft_labels).subspan(slot * mix.classes, mix.classes));
    }
  }
  return absl::OkStatus();
}

void Loader::Core::DecodePiece(const Task& task) {
  Pending& batch = *task.batch;
  const auto start = std::chrono::steady_clock::now();
  std::vector<BadRead> bad;
  const size_t group = options_.mix ? options_.mix->group : 1;
  for (size_t slot = task.range.begin; slot < task.range.end; ++slot) {
    if (group > 1) {
      // A group with a sample that cannot be read waits for its substitute.
      const auto unread = batch.unread.begin() + static_cast<ptrdiff_t>(slot);
      if (std::find(unread, unread + static_cast<ptrdiff_t>(group), true) ==
          unread + static_cast<ptrdiff_t>(group)) {
        DecodeGroup(batch, slot, bad);
      }
      slot += group - 1;
      continue;
    }
    if (batch.unread[slot]) continue;
    const auto number = static_cast<uint32_t>(slot);
    absl::Status decoded = DecodeSlot(batch, number, *batch.content, slot, batch.plan.infos[slot]);
    if (!decoded.ok()) bad.push_back({number, std::move(decoded)});
  }
  const uint64_t count = task.range.end - task.range.begin;
  decoded_.Add(count, count * options_.views * decoding_->decoder->sample_bytes(), start);
  batch.AddBad(bad);
  if (batch.left.fetch_sub(1) == 1) Complete(batch);
}

}  // namespace shardpack
