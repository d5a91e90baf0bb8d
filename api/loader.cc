// The functions of loaders that are the same for all kinds, and shardpack_loader_open.
#include "readers/loading/loader.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "api/any_loader.h"
#include "api/host_loader.h"
#include "api/options.h"
#include "api/structs.h"
#include "formats/io/status_macros.h"

using shardpack::BadSample;
using shardpack::Cursor;
using shardpack::Dataset;
using shardpack::LoaderOptions;
using shardpack::Order;
using shardpack::api::AnyLoader;
using shardpack::api::CheckWait;
using shardpack::api::ContentOf;
using shardpack::api::GiveText;
using shardpack::api::Guarded;
using shardpack::api::NotNull;
using shardpack::api::Taken;
using shardpack::api::UseLoader;

namespace {

absl::StatusOr<shardpack_loader*> Open(const shardpack_dataset* dataset,
                                       const shardpack_order* order,
                                       const shardpack_loader_options* options) {
  ASSIGN_OR_RETURN(const Dataset* const samples, ContentOf(dataset, "dataset"));
  ASSIGN_OR_RETURN(const Order* const sequence, ContentOf(order, "order"));
  ASSIGN_OR_RETURN(const shardpack_loader_options known,
                   shardpack::api::Known(options, "options of the loader"));
  ASSIGN_OR_RETURN(LoaderOptions made, shardpack::api::LoaderOptionsOf(known));
  ASSIGN_OR_RETURN(const std::optional<Cursor> cursor, shardpack::api::CursorOf(known.cursor));
  shardpack::Device* device = nullptr;
  if (known.device != nullptr) {
    ASSIGN_OR_RETURN(const auto* const opened, shardpack::api::UseDevice(known.device));
    device = opened->device;
  }
  // For crops, and for decoding on a device.
  made.image_infos = made.decode.has_value() || device != nullptr;
  const shardpack::Rank rank = {.rank = known.rank,
                                .world_size = known.world_size == 0 ? 1 : known.world_size};
  ASSIGN_OR_RETURN(std::shared_ptr<AnyLoader> loader,
                   shardpack::api::HostLoader::Open(
                       {*samples, *sequence, rank, std::move(made), device}, cursor));
  return shardpack::api::NewLoader(std::move(loader));
}

std::string JsonOf(const std::vector<BadSample>& samples) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const BadSample& bad : samples)
    rows.push_back({{"epoch", bad.epoch}, {"step", bad.step}, {"id", bad.id}, {"why", bad.why}});
  return rows.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// For functions with a `char**` result, which is null unless they succeed.
template <typename Text>
shardpack_code GivingText(const shardpack_loader* loader, char** text, shardpack_error** error,
                          const Text& text_of) {
  if (text != nullptr) *text = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(text, "the result"));
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> any, UseLoader(loader));
    ASSIGN_OR_RETURN(const std::string made, text_of(*any));
    return GiveText(made, text);
  });
}

}  // namespace

shardpack_code shardpack_decode_check(const shardpack_decode* decode, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const shardpack::PixelPipelineOptions options,
                     shardpack::api::DecodeOf(decode));
    return shardpack::PixelPipeline::Create(options).status();
  });
}

shardpack_code shardpack_loader_open(const shardpack_dataset* dataset, const shardpack_order* order,
                                     const shardpack_loader_options* options,
                                     shardpack_loader** loader, shardpack_error** error) {
  return shardpack::api::Making(loader, error, [&] { return Open(dataset, order, options); });
}

shardpack_code shardpack_loader_next(shardpack_loader* loader, int64_t wait_ms,
                                     shardpack_batch** batch, shardpack_error** error) {
  if (batch != nullptr) *batch = nullptr;
  return Guarded(error, [&]() -> absl::StatusOr<shardpack_code> {
    RETURN_IF_ERROR(NotNull(batch, "the result"));
    RETURN_IF_ERROR(CheckWait(wait_ms));
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> any, UseLoader(loader));
    ASSIGN_OR_RETURN(Taken taken, any->Next(wait_ms));
    if (taken.batch != nullptr) *batch = new shardpack_batch(std::move(taken.batch));
    return taken.code;
  });
}

shardpack_code shardpack_loader_seek(shardpack_loader* loader, uint64_t epoch, uint64_t step,
                                     shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> any, UseLoader(loader));
    return any->Seek(epoch, step);
  });
}

shardpack_code shardpack_loader_cursor(const shardpack_loader* loader, char** cursor,
                                       shardpack_error** error) {
  return GivingText(loader, cursor, error, [](const AnyLoader& any) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Cursor place, any.cursor());
    return shardpack::CursorToText(place);
  });
}

shardpack_code shardpack_loader_position(const shardpack_loader* loader, uint64_t* epoch,
                                         uint64_t* step, shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(epoch, "epoch"));
    RETURN_IF_ERROR(NotNull(step, "step"));
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> any, UseLoader(loader));
    ASSIGN_OR_RETURN(const Cursor place, any->cursor());
    *epoch = place.epoch;
    *step = place.step;
    return absl::OkStatus();
  });
}

shardpack_code shardpack_loader_stats_json(const shardpack_loader* loader, char** json,
                                           shardpack_error** error) {
  return GivingText(loader, json, error, [](const AnyLoader& any) { return any.StatsJson(); });
}

shardpack_code shardpack_loader_explain(const shardpack_loader* loader, char** text,
                                        shardpack_error** error) {
  return GivingText(loader, text, error, [](const AnyLoader& any) { return any.Explain(); });
}

shardpack_code shardpack_loader_take_bad_samples_json(shardpack_loader* loader, char** json,
                                                      shardpack_error** error) {
  return GivingText(loader, json, error, [](AnyLoader& any) -> absl::StatusOr<std::string> {
    return JsonOf(any.TakeBadSamples());
  });
}

void shardpack_loader_stop(shardpack_loader* loader) {
  (void)Guarded(nullptr, [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> any, UseLoader(loader));
    any->Stop();
    return absl::OkStatus();
  });
}

shardpack_code shardpack_loader_close(shardpack_loader* loader, int64_t wait_ms,
                                      shardpack_error** error) {
  return Guarded(error, [&]() -> absl::StatusOr<shardpack_code> {
    RETURN_IF_ERROR(CheckWait(wait_ms));
    ASSIGN_OR_RETURN(auto* const state, ContentOf(loader, "loader"));
    if (!(*state)->InOwnProcess()) return (*state)->Use().status();
    return (*state)->Close(wait_ms) ? SHARDPACK_OK : SHARDPACK_WAIT;
  });
}

void shardpack_loader_release(shardpack_loader* loader) {
  if (loader == nullptr) return;
  if (loader->references.load() == 1) {  // else Release finds it
    shardpack::api::LoaderState& state = **loader->content;
    if (!state.InOwnProcess()) return;
    // Without memory the threads are not waited for.
    (void)Guarded(nullptr, [&] {
      state.CloseAtLast();
      return absl::OkStatus();
    });
  }
  shardpack::api::Release(loader);
}
