#include "converters/listing/input_failure.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

SkipReason ReasonOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return SkipReason::kVanished;
    case EACCES:
    case EPERM:
      return SkipReason::kPermission;
    case ENXIO:
    case ENODEV:
    case EISDIR:
      return SkipReason::kNotRegular;
    case ELOOP:
      return SkipReason::kSymlinkLoop;
    default:
      return SkipReason::kIoError;
  }
}

SkipReason ReasonOf(const absl::Status& status, SkipReason damage) {
  if (absl::IsNotFound(status)) return SkipReason::kVanished;
  return absl::IsPermissionDenied(status) ? SkipReason::kPermission : damage;
}

}  // namespace

InputFailure::InputFailure(uint64_t row, std::string_view operation, std::string_view path,
                           int error_number) {
  if (!IsAboutThePath(error_number)) {
    what_ = IoStatus(operation, path, error_number);
    return;
  }
  const SkipReason reason = ReasonOf(error_number);
  std::string detail;
  if (reason == SkipReason::kIoError) {
    detail = absl::StrCat(std::string(operation), ": ", strerrordesc_np(error_number));
  }
  what_ = Skip{row, reason, std::move(detail)};
}

InputFailure::InputFailure(uint64_t row, const absl::Status& status, SkipReason damage) {
  if (IsAboutThePath(status)) {
    what_ = Skip{row, ReasonOf(status, damage), std::string(status.message())};
  } else {
    what_ = status;
  }
}

}  // namespace shardpack
