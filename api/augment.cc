// Plans and programs as text.
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/errors.h"
#include "api/shardpack.h"
#include "api/structs.h"
#include "augment/own_operation.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "formats/io/status_macros.h"

using shardpack::api::Guarded;
using shardpack::api::NotNull;

namespace {

// The same bound as of the sizes of decoded images, so that products of sizes do not overflow.
absl::Status CheckSize(uint32_t width, uint32_t height) {
  constexpr uint32_t kLargest = 65'535;
  if (width >= 1 && height >= 1 && width <= kLargest && height <= kLargest) return absl::OkStatus();
  return absl::InvalidArgumentError("width and height must be 1 to 65535");
}

}  // namespace

shardpack_code shardpack_augment_check(const char* plan, char** canonical, uint32_t* moves_pixels,
                                       shardpack_error** error) {
  if (canonical != nullptr) *canonical = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(plan, "plan"));
    RETURN_IF_ERROR(NotNull(canonical, "the result"));
    ASSIGN_OR_RETURN(const shardpack::AugmentPlan parsed, shardpack::AugmentPlan::Parse(plan));
    if (moves_pixels != nullptr) *moves_pixels = parsed.MayWarp() ? 1 : 0;
    return shardpack::api::GiveText(parsed.ToText(), canonical);
  });
}

shardpack_code shardpack_augment_draw(const char* plan, uint64_t seed, uint64_t epoch, uint64_t id,
                                      uint32_t view, uint32_t width, uint32_t height,
                                      char** program, shardpack_error** error) {
  if (program != nullptr) *program = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(plan, "plan"));
    RETURN_IF_ERROR(NotNull(program, "the result"));
    RETURN_IF_ERROR(CheckSize(width, height));
    if (view >= UINT16_MAX) return absl::InvalidArgumentError("a view must be 0 to 65534");
    ASSIGN_OR_RETURN(const shardpack::AugmentPlan parsed, shardpack::AugmentPlan::Parse(plan));
    shardpack::SampleProgram drawn;
    parsed.Draw({.seed = seed, .epoch = epoch, .id = id, .view = static_cast<uint16_t>(view)},
                width, height, drawn);
    return shardpack::api::GiveText(drawn.ToText(), program);
  });
}

shardpack_code shardpack_plugin_name(const char* plugin, const char* parameters, char** name,
                                     shardpack_error** error) {
  if (name != nullptr) *name = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(plugin, "plugin"));
    RETURN_IF_ERROR(NotNull(name, "the result"));
    ASSIGN_OR_RETURN(const shardpack::OwnOperation opened,
                     shardpack::OpenPlugin(plugin, parameters == nullptr ? "" : parameters));
    return shardpack::api::GiveText(opened.name, name);
  });
}

shardpack_code shardpack_program_apply(const char* program, uint8_t* pixels, uint32_t width,
                                       uint32_t height, uint32_t channels, uint64_t stride_bytes,
                                       shardpack_error** error) {
  return Guarded(error, [&]() -> absl::Status {
    RETURN_IF_ERROR(NotNull(program, "program"));
    RETURN_IF_ERROR(NotNull(pixels, "pixels"));
    RETURN_IF_ERROR(CheckSize(width, height));
    if (channels != 1 && channels != 3)
      return absl::InvalidArgumentError("channels must be 1 or 3");
    const uint64_t row_bytes = uint64_t{width} * channels;
    if (stride_bytes == 0) stride_bytes = row_bytes;
    if (stride_bytes < row_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a stride of ", stride_bytes, " bytes; a row needs ", row_bytes));
    }
    ASSIGN_OR_RETURN(const shardpack::SampleProgram parsed,
                     shardpack::SampleProgram::Parse(program));
    return shardpack::ProgramRunner().Apply(parsed,
                                            {pixels, width, height, channels, stride_bytes});
  });
}
