// What a loader decodes beside images and masks: the fields of LoaderOptions::decode_fields.
#include <algorithm>
#include <utility>

#include "formats/io/status_macros.h"
#include "readers/loading/loader_core.h"
#include "readers/order/order.h"

namespace shardpack {

absl::Status Loader::Decoding::AddFields(const LoaderOptions& options, uint32_t slots,
                                         size_t& batch_bytes) {
  RETURN_IF_ERROR(CheckFieldDecodes(options.decode_fields, *options.decode));
  for (const FieldDecode& field : options.decode_fields) {
    const auto at = std::find(options.fields.begin(), options.fields.end(), field.field);
    More more = {.field = static_cast<size_t>(at - options.fields.begin()), .offset = batch_bytes};
    ASSIGN_OR_RETURN(more.decoder, FieldDecoder::Create(*options.decode, field, options.augment,
                                                        options.augment_seed));
    batch_bytes += AlignedPixels(more.decoder->sample_bytes() * slots);
    if (field.as == FieldAs::kCoco) objects = more.decoder.get();
    fields.push_back(std::move(more));
  }
  return absl::OkStatus();
}

void Loader::Core::PlaceFields(HostBatch::Content& content) const {
  const size_t slots = content.ids.size();
  content.geometry.assign(slots, {});
  for (const Decoding::More& more : decoding_->fields) {
    const FieldDecoder& decoder = *more.decoder;
    DecodedField decoded = {.field = more.field, .as = decoder.field().as};
    if (decoded.as == FieldAs::kCoco) {
      content.moved_objects.assign(slots, {});
    } else {
      decoded.bytes =
          content.pixel_lease.runs()[0].subspan(more.offset, slots * decoder.sample_bytes());
      decoded.label_bytes = decoded.as == FieldAs::kImage ? 0 : decoder.field().labels.wide ? 2 : 1;
    }
    content.decoded_fields.push_back(decoded);
  }
}

absl::Status Loader::Core::DecodeMoreFields(Pending& batch, uint32_t slot,
                                            const HostBatch::Content& from, size_t from_slot) {
  HostBatch::Content& content = *batch.content;
  const SampleGeometry& image = content.geometry[slot];
  const uint64_t id = content.ids[slot];
  if (decoding_->fields.empty()) return absl::OkStatus();
  const BatchDecoder& images = *decoding_->decoder;
  const SampleProgram program = images.ProgramOf(images.Identity(batch.epoch, id));
  for (const Decoding::More& more : decoding_->fields) {
    const FieldDecoder& decoder = *more.decoder;
    const Bytes encoded = from.bytes[more.field * from.ids.size() + from_slot];
    const size_t bytes = decoder.sample_bytes();
    absl::Status decoded;
    if (decoder.field().as == FieldAs::kCoco) {
      absl::StatusOr<MovedObjects> moved = decoder.DecodeObjects(encoded, image);
      decoded = moved.status();
      if (moved.ok()) content.moved_objects[slot] = *std::move(moved);
    } else {
      const std::span<std::byte> into =
          content.pixel_lease.runs()[0].subspan(more.offset + slot * bytes, bytes);
      if (id == kPaddingId) {
        decoder.Fill(into);
      } else {
        decoded = decoder.DecodePixels(encoded, image, program, batch.epoch, id, into);
      }
    }
    if (!decoded.ok()) return AboutField(decoded, more.field);
  }
  return absl::OkStatus();
}

void Loader::Core::JoinObjects(HostBatch::Content& content) const {
  if (decoding_->objects == nullptr) return;
  ObjectBatch& all = content.objects.emplace();
  all.keypoints_each = decoding_->objects->field().objects.keypoints;
  for (const MovedObjects& moved : content.moved_objects) all.Add(moved);
  content.moved_objects.clear();
}

}  // namespace shardpack
