// The functions of batches that are the same for all kinds.
#include <string_view>

#include "absl/strings/str_cat.h"
#include "api/handles.h"
#include "api/structs.h"
#include "cuda/loading/dlpack_export.h"
#include "formats/core/sample.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

using shardpack::SampleState;
using shardpack::SampleStatus;
using shardpack::api::AnyBatch;
using shardpack::api::Guarded;
using shardpack::api::NotNull;
using shardpack::api::TextOf;
using shardpack::api::Use;

namespace {

absl::Status CheckSlots(const AnyBatch& batch, const void* results, size_t count) {
  if (count > 0) RETURN_IF_ERROR(NotNull(results, "the results"));
  if (count == batch.slots()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("room for ", count, " slots; the batch has ", batch.slots()));
}

absl::Status CheckSlot(const AnyBatch& batch, size_t slot) {
  if (slot < batch.slots()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("slot ", slot, " of ", batch.slots(), " slots"));
}

}  // namespace

shardpack_batch* shardpack_batch_retain(shardpack_batch* batch) {
  return shardpack::api::Retain(batch);
}
void shardpack_batch_release(shardpack_batch* batch) { shardpack::api::Release(batch); }

shardpack_code shardpack_batch_view_of(const shardpack_batch* batch, shardpack_batch_view* view,
                                       shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    return shardpack::api::Fill(view, "batch view",
                                [&](shardpack_batch_view& all) { content->View(all); });
  });
}

shardpack_code shardpack_batch_field(const shardpack_batch* batch, uint32_t n, shardpack_text* name,
                                     shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    RETURN_IF_ERROR(NotNull(name, "name"));
    ASSIGN_OR_RETURN(const std::string_view text, content->Field(n));
    *name = TextOf(text);
    return absl::OkStatus();
  });
}

shardpack_code shardpack_batch_spans(const shardpack_batch* batch, const char* field,
                                     shardpack_span* spans, size_t count, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    RETURN_IF_ERROR(CheckSlots(*content, spans, count));
    return content->Spans(field == nullptr ? shardpack::kImageField : field,
                          std::span(spans, count));
  });
}

shardpack_code shardpack_batch_masks(const shardpack_batch* batch, const char* field,
                                     uint8_t** masks, uint64_t* bytes, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    RETURN_IF_ERROR(NotNull(field, "field"));
    RETURN_IF_ERROR(NotNull(masks, "masks"));
    RETURN_IF_ERROR(NotNull(bytes, "bytes"));
    const auto decoded = content->Masks(field);
    if (!decoded) {
      return shardpack::WithFacts(
          absl::NotFoundError(absl::StrCat("the batch has no decoded masks of a field ",
                                           shardpack::EscapeForTerminal(field))),
          {.field = field});
    }
    *masks = reinterpret_cast<uint8_t*>(const_cast<std::byte*>(decoded->data()));
    *bytes = decoded->size();
    return absl::OkStatus();
  });
}

shardpack_code shardpack_batch_crops(const shardpack_batch* batch, shardpack_crop* crops,
                                     size_t count, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    RETURN_IF_ERROR(CheckSlots(*content, crops, count));
    return content->Crops(std::span(crops, count));
  });
}

shardpack_code shardpack_batch_program(const shardpack_batch* batch, size_t slot, uint32_t view,
                                       char** program, shardpack_error** error) {
  if (program != nullptr) *program = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    RETURN_IF_ERROR(NotNull(program, "the result"));
    RETURN_IF_ERROR(CheckSlot(*content, slot));
    ASSIGN_OR_RETURN(const std::string text, content->Program(slot, view));
    return shardpack::api::GiveText(text, program);
  });
}

shardpack_code shardpack_batch_why(const shardpack_batch* batch, size_t slot, uint64_t* wanted_id,
                                   shardpack_text* why, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyBatch> content, Use(batch));
    RETURN_IF_ERROR(NotNull(why, "why"));
    RETURN_IF_ERROR(CheckSlot(*content, slot));
    const SampleStatus& status = content->status(slot);
    const bool substituted = status.state == SampleState::kSubstituted;
    *why = TextOf(substituted ? std::string_view(status.why) : "");
    if (wanted_id != nullptr) *wanted_id = substituted ? status.wanted_id : content->id(slot);
    return absl::OkStatus();
  });
}

shardpack_code shardpack_batch_dlpack(shardpack_batch* batch, uint32_t what, uint32_t versioned,
                                      void** managed, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(managed, "the result"));
    *managed = nullptr;
    ASSIGN_OR_RETURN(std::shared_ptr<AnyBatch> content, Use(batch));
    if (what != SHARDPACK_PIXELS && what != SHARDPACK_LABELS)
      return absl::InvalidArgumentError("only pixels and labels are tensors");
    ASSIGN_OR_RETURN(const shardpack::DeviceTensor tensor, content->Tensor(what));
    if (versioned != 0) {
      *managed = shardpack::ExportVersioned(tensor, std::move(content));
    } else {
      *managed = shardpack::ExportLegacy(tensor, std::move(content));
    }
    return absl::OkStatus();
  });
}
