// What a loader has decoded beside images and masks: maps of points, further fields, objects.
#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/handles.h"
#include "api/structs.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "readers/loading/host_batch.h"

using shardpack::DecodedField;
using shardpack::FieldAs;
using shardpack::HostBatch;
using shardpack::ObjectBatch;
using shardpack::SampleGeometry;
using shardpack::api::AnyBatch;
using shardpack::api::Fill;
using shardpack::api::Guarded;
using shardpack::api::NotNull;
using shardpack::api::Use;

namespace {

static_assert(static_cast<int>(FieldAs::kImage) == SHARDPACK_AS_IMAGE &&
              static_cast<int>(FieldAs::kLabels) == SHARDPACK_AS_LABELS &&
              static_cast<int>(FieldAs::kCoco) == SHARDPACK_AS_COCO &&
              static_cast<int>(FieldAs::kCocoLabels) == SHARDPACK_AS_COCO_LABELS);

// Of which the maps of all slots are wanted.
absl::StatusOr<const HostBatch*> WithMaps(const AnyBatch& content, const double* results,
                                          size_t count) {
  if (count > 0) RETURN_IF_ERROR(NotNull(results, "the results"));
  if (count != content.slots()) {
    return absl::InvalidArgumentError(
        absl::StrCat("room for ", count, " slots; the batch has ", content.slots()));
  }
  const HostBatch* const decoded = content.Decoded();
  if (decoded == nullptr || decoded->geometry().size() != count) {
    return absl::UnimplementedError(
        "only batches in host memory that a loader has decoded have maps");
  }
  if (content.MayDo(shardpack::OperationKind::kElastic))
    return absl::UnimplementedError("a plan with elastic has no maps: it bends lines");
  return decoded;
}

}  // namespace

shardpack_code shardpack_batch_affine(const shardpack_batch* batch, double* affine, size_t count,
                                      shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    ASSIGN_OR_RETURN(const HostBatch* const decoded, WithMaps(*content, affine, count));
    if (content->MayDo(shardpack::OperationKind::kPerspective)) {
      return absl::UnimplementedError(
          "a plan with perspective has no affine maps: ask for the batch's projection instead");
    }
    for (const SampleGeometry& geometry : decoded->geometry())
      affine = std::copy_n(geometry.map.m.begin(), 6, affine);
    return absl::OkStatus();
  });
}

shardpack_code shardpack_batch_projection(const shardpack_batch* batch, double* projection,
                                          size_t count, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    ASSIGN_OR_RETURN(const HostBatch* const decoded, WithMaps(*content, projection, count));
    for (const SampleGeometry& geometry : decoded->geometry())
      projection = std::copy(geometry.map.m.begin(), geometry.map.m.end(), projection);
    return absl::OkStatus();
  });
}

shardpack_code shardpack_batch_decoded(const shardpack_batch* batch, const char* field,
                                       shardpack_decoded_field* decoded, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    RETURN_IF_ERROR(NotNull(field, "field"));
    RETURN_IF_ERROR(NotNull(decoded, "decoded"));
    const HostBatch* const host = content->Decoded();
    const DecodedField* found = nullptr;
    if (host != nullptr) {
      for (const DecodedField& each : host->decoded_fields()) {
        // JSON that is objects can be a label map, too.
        if (host->field_name(each.field) == field && (!found || found->as == FieldAs::kCoco))
          found = &each;
      }
    }
    if (found != nullptr) {
      return Fill(decoded, "decoded field", [&](shardpack_decoded_field& all) {
        all.data = const_cast<std::byte*>(found->bytes.data());
        all.bytes = found->bytes.size();
        all.kind = static_cast<uint32_t>(found->as);
        all.label_bytes = found->label_bytes;
      });
    }
    return shardpack::WithFacts(
        absl::NotFoundError(
            absl::StrCat("the batch has no decoded field ", shardpack::EscapeForTerminal(field))),
        {.field = field});
  });
}

shardpack_code shardpack_batch_objects(const shardpack_batch* batch, shardpack_objects* objects,
                                       shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    RETURN_IF_ERROR(NotNull(objects, "objects"));
    const HostBatch* const host = content->Decoded();
    const ObjectBatch* const found = host == nullptr ? nullptr : host->objects();
    if (found == nullptr)
      return absl::NotFoundError("the batch has no objects: no field is decoded to them");
    return Fill(objects, "objects", [&](shardpack_objects& all) {
      all.objects = found->labels.size();
      all.offsets = found->offsets.data();
      all.boxes = found->boxes.data();
      all.areas = found->areas.data();
      all.labels = found->labels.data();
      all.crowds = found->crowds.data();
      all.keep = found->keep.data();
      all.keypoints = found->keypoints.data();
      if (found->ring_offsets.size() == found->labels.size() + 1)
        all.ring_offsets = found->ring_offsets.data();
      all.point_offsets = found->point_offsets.data();
      all.polygons = found->polygons.data();
      all.dropped = found->dropped;
      all.outside = found->outside;
      all.keypoints_each = found->keypoints_each;
    });
  });
}
