#include "api/errors.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/handles.h"
#include "api/structs.h"
#include "formats/io/error_facts.h"

// Immutable once it is made.
struct shardpack_error {
  shardpack_code code = SHARDPACK_INTERNAL;
  std::string message;
  shardpack::ErrorFacts facts;
};

namespace shardpack::api {
namespace {

constexpr const char* kCodeNames[] = {
    "OK",        "END",         "WAIT",     "INVALID",   "NOT_FOUND",   "OUT_OF_RANGE",
    "DATA_LOSS", "NO_MEMORY",   "DENIED",   "CANCELLED", "UNSUPPORTED", "STATE",
    "IO",        "UNAVAILABLE", "INTERNAL", "EXISTS",    "TIMEOUT"};
static_assert(std::size(kCodeNames) == SHARDPACK_TIMEOUT + 1);

shardpack_error* NewError(shardpack_code code, std::string message, ErrorFacts facts) noexcept {
  return new (std::nothrow) shardpack_error{code, std::move(message), std::move(facts)};
}

}  // namespace

shardpack_code CodeOf(const absl::Status& status) noexcept {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return SHARDPACK_OK;
    case absl::StatusCode::kInvalidArgument:
      return SHARDPACK_INVALID;
    case absl::StatusCode::kNotFound:
      return SHARDPACK_NOT_FOUND;
    case absl::StatusCode::kOutOfRange:
      return SHARDPACK_OUT_OF_RANGE;
    case absl::StatusCode::kDataLoss:
      return SHARDPACK_DATA_LOSS;
    case absl::StatusCode::kResourceExhausted:
      return SHARDPACK_NO_MEMORY;
    case absl::StatusCode::kPermissionDenied:
      return SHARDPACK_DENIED;
    case absl::StatusCode::kCancelled:
      return SHARDPACK_CANCELLED;
    case absl::StatusCode::kUnimplemented:
      return SHARDPACK_UNSUPPORTED;
    case absl::StatusCode::kFailedPrecondition:
      return SHARDPACK_STATE;
    case absl::StatusCode::kAlreadyExists:
      return SHARDPACK_EXISTS;
    case absl::StatusCode::kDeadlineExceeded:
      return SHARDPACK_TIMEOUT;
    case absl::StatusCode::kUnavailable:  // files and devices share it
      return FactsOf(status).system_errno ? SHARDPACK_IO : SHARDPACK_UNAVAILABLE;
    default:
      return SHARDPACK_INTERNAL;
  }
}

shardpack_code Report(const absl::Status& status, shardpack_error** error) noexcept {
  try {
    const shardpack_code code = CodeOf(status);
    if (error != nullptr) *error = NewError(code, std::string(status.message()), FactsOf(status));
    return code;
  } catch (...) {
    return ReportOutOfMemory(error);
  }
}

shardpack_code ReportOutOfMemory(shardpack_error** error) noexcept {
  // Short enough to need no allocation.
  if (error != nullptr) *error = NewError(SHARDPACK_NO_MEMORY, "out of memory", {});
  return SHARDPACK_NO_MEMORY;
}

absl::Status StatusOfException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::system_error& thrown) {
    // Only of threads: everything else that calls the system returns its errors.
    if (thrown.code() == std::errc::resource_unavailable_try_again ||
        thrown.code() == std::errc::not_enough_memory) {
      return WithFacts(
          absl::ResourceExhaustedError(absl::StrCat("starting a thread: ", thrown.what())),
          {.system_errno = thrown.code().value()});
    }
    return WithFacts(absl::UnavailableError(thrown.what()),
                     {.system_errno = thrown.code().value()});
  } catch (const std::exception& thrown) {
    return absl::InternalError(thrown.what());
  } catch (...) {
    return absl::InternalError("unknown exception");
  }
}

shardpack_code ReportException(shardpack_error** error) noexcept {
  try {
    return Report(StatusOfException(), error);
  } catch (...) {
    return ReportOutOfMemory(error);
  }
}

absl::Status CheckWait(int64_t wait_ms) {
  if (wait_ms >= -1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("wait_ms is ", wait_ms, ", where -1 means without limit"));
}

absl::Status NotNull(const void* argument, const char* name) {
  if (argument != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
}

void EndForReleasedHandle() {
  std::fputs("shardpack: a handle was used or released after its last release\n", stderr);
  std::abort();
}

void Bury(CountedHandle* handle) {
  static std::atomic<CountedHandle*> last{nullptr};
  handle->buried_before = last.load();
  while (!last.compare_exchange_weak(handle->buried_before, handle)) {
  }
}

absl::Status BadStructSize(const char* what, size_t size, size_t least) {
  return absl::InvalidArgumentError(absl::StrCat("the size of the ", what, " is ", size,
                                                 "; it must be sizeof, a multiple of 8 from ",
                                                 least, " to ", kLargestStruct));
}

absl::Status UnknownMembers(const char* what, size_t known) {
  return absl::InvalidArgumentError(
      absl::StrCat("the ", what,
                   " ask for something that this version of the library does not know: bytes "
                   "after the first ",
                   known, " are not zero"));
}

char* CopyOf(std::string_view text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  text.copy(copy, text.size());
  copy[text.size()] = '\0';
  return copy;
}

absl::Status GiveText(std::string_view text, char** into) {
  if (auto given = NotNull(into, "the result"); !given.ok()) return given;
  *into = CopyOf(text);
  return absl::OkStatus();
}

}  // namespace shardpack::api

using shardpack::api::Fill;
using shardpack::api::Guarded;
using shardpack::api::TextOf;

const char* shardpack_code_name(shardpack_code code) {
  if (code < 0 || code > SHARDPACK_TIMEOUT) return "UNKNOWN";
  return shardpack::api::kCodeNames[code];
}

shardpack_code shardpack_error_code(const shardpack_error* error) {
  return error == nullptr ? SHARDPACK_OK : error->code;
}

const char* shardpack_error_message(const shardpack_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}

shardpack_code shardpack_error_info_of(const shardpack_error* error, shardpack_error_info* info) {
  return Guarded(nullptr, [&] {
    return Fill(info, "error info", [&](shardpack_error_info& all) {
      const shardpack::ErrorFacts none;
      const shardpack::ErrorFacts& facts = error == nullptr ? none : error->facts;
      all.code = shardpack_error_code(error);
      all.system_errno = static_cast<int32_t>(facts.system_errno.value_or(0));
      all.message = error == nullptr ? TextOf("") : TextOf(error->message);
      // Of an error, not of `none`, whose empty texts end with this call.
      const auto text = [&](const std::string& fact) {
        return fact.empty() ? TextOf("") : TextOf(fact);
      };
      all.path = text(facts.path);
      all.shard = text(facts.shard);
      all.key = text(facts.key);
      all.field = text(facts.field);
      all.record = facts.record.value_or(-1);
      all.offset = facts.offset.value_or(-1);
      all.id = facts.id.value_or(-1);
    });
  });
}

void shardpack_error_free(shardpack_error* error) { delete error; }
void shardpack_text_free(char* text) { std::free(text); }
