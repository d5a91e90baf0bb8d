// How a Status becomes a shardpack_code and a shardpack_error, and what keeps exceptions inside.
//
//   return Guarded(error, [&]() -> absl::Status {
//     RETURN_IF_ERROR(NotNull(path, "path"));
//     ...
//   });
//
// The work may also return StatusOr<shardpack_code>, for SHARDPACK_END and SHARDPACK_WAIT.
//
// Thread-safety: any thread.
// Errors: none of its own; without memory for an error object there is only the code.
#ifndef SHARDPACK_API_ERRORS_H_
#define SHARDPACK_API_ERRORS_H_

#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/shardpack.h"

namespace shardpack::api {

shardpack_code CodeOf(const absl::Status& status) noexcept;
// The code of an error; *error, unless `error` is null, becomes its object.
shardpack_code Report(const absl::Status& status, shardpack_error** error) noexcept;
shardpack_code ReportOutOfMemory(shardpack_error** error) noexcept;
// Of the exception that is being handled.
shardpack_code ReportException(shardpack_error** error) noexcept;

absl::Status StatusOfException();

// InvalidArgument for a wait_ms below -1.
absl::Status CheckWait(int64_t wait_ms);
absl::Status NotNull(const void* argument, const char* name);

template <typename Work>
shardpack_code Guarded(shardpack_error** error, const Work& work) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    const auto done = work();
    if constexpr (std::is_same_v<decltype(done), const absl::Status>) {
      return done.ok() ? SHARDPACK_OK : Report(done, error);
    } else {
      return done.ok() ? *done : Report(done.status(), error);
    }
  } catch (const std::bad_alloc&) {
    return ReportOutOfMemory(error);
  } catch (...) {
    return ReportException(error);
  }
}

// The same for functions that make a handle: `work` returns StatusOr of a pointer to it.
template <typename H, typename Work>
shardpack_code Making(H** made, shardpack_error** error, const Work& work) noexcept {
  if (made != nullptr) *made = nullptr;
  return Guarded(error, [&]() -> absl::Status {
    if (auto given = NotNull(made, "the result"); !given.ok()) return given;
    absl::StatusOr<H*> handle = work();
    if (handle.ok()) *made = *handle;
    return handle.status();
  });
}

}  // namespace shardpack::api

#endif  // SHARDPACK_API_ERRORS_H_
