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
  content.pixels = PixelBatch{.bytes = all.first(content.ids.size() * decoder.sample_bytes()),
                              .sample_bytes = decoder.sample_bytes(),
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

absl::Status Loader::Core::DecodeSlot(Pending& batch, uint32_t slot, const HostBatch::Content& from,
                                      size_t from_slot, const ImageInfo& info) {
  absl::Status decoded = DecodeFields(batch, slot, from, from_slot, info);
  if (decoded.ok()) return decoded;
  const ShardTable& table = fetcher_.table();
  const uint64_t id = batch.content->ids[slot];
  return WithFacts(
      Reworded(decoded, absl::StrCat(table.Describe(id), ": ", std::string(decoded.message())),
               absl::StatusCode::kDataLoss),
      table.Facts(id));
}

absl::Status Loader::Core::DecodeFields(Pending& batch, uint32_t slot,
                                        const HostBatch::Content& from, size_t from_slot,
                                        const ImageInfo& info) {
  const BatchDecoder& decoder = *decoding_->decoder;
  const std::span<std::byte> all = batch.content->pixel_lease.runs()[0];
  const auto encoded = [&](size_t field) {
    return from.bytes[field * from.ids.size() + from_slot];
  };
  const std::span<std::byte> into =
      all.subspan(slot * decoder.sample_bytes(), decoder.sample_bytes());
  const uint64_t id = batch.content->ids[slot];
  const Bytes image = encoded(decoding_->field);
  if (id == kPaddingId) {
    std::fill(into.begin(), into.end(), std::byte{0});
  } else if (image.data() == nullptr) {
    return absl::DataLossError("the sample has no image");
  } else {
    RETURN_IF_ERROR(decoder.Decode(image, info, batch.epoch, id, into));
    ASSIGN_OR_RETURN(batch.content->geometry[slot],
                     decoder.GeometryOf(image, info, batch.epoch, id));
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
    const absl::Status decoded = decoder.DecodeMask(bytes, image, info, batch.epoch, id, mask);
    if (decoded.ok()) continue;
    const std::string& name = options_.fields[field];
    return WithFacts(Reworded(decoded, absl::StrCat("field ", EscapeForTerminal(name), ": ",
                                                    std::string(decoded.message()))),
                     {.field = name});
  }
  return DecodeMoreFields(batch, slot, from, from_slot);
}

void Loader::Core::DecodePiece(const Task& task) {
  Pending& batch = *task.batch;
  const auto start = std::chrono::steady_clock::now();
  std::vector<BadRead> bad;
  for (size_t slot = task.range.begin; slot < task.range.end; ++slot) {
    if (batch.unread[slot]) continue;
    const auto number = static_cast<uint32_t>(slot);
    absl::Status decoded = DecodeSlot(batch, number, *batch.content, slot, batch.plan.infos[slot]);
    if (!decoded.ok()) bad.push_back({number, std::move(decoded)});
  }
  const uint64_t count = task.range.end - task.range.begin;
  decoded_.Add(count, count * decoding_->decoder->sample_bytes(), start);
  batch.AddBad(bad);
  if (batch.left.fetch_sub(1) == 1) Complete(batch);
}

}  // namespace shardpack
