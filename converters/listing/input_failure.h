// InputFailure: classifies an error of reading one input: as a fact about the input, which is a
// skip, or as an error of the run.
//
//   if (fd < 0) return InputFailure(row, "open", path, errno);  // a Skip, or a Status ending the run
//
// An input that is missing, may not be read or is not a file is skipped and listed. Running out of
// descriptors or memory, or a failing disk, says nothing about the input: it ends the run, which
// can be resumed.
//
// Errors: they are the result.
#ifndef SHARDPACK_CONVERTERS_LISTING_INPUT_FAILURE_H_
#define SHARDPACK_CONVERTERS_LISTING_INPUT_FAILURE_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "converters/listing/skip.h"

namespace shardpack {

class InputFailure {
 public:
  // For a failed system call on `path`.
  InputFailure(uint64_t row, std::string_view operation, std::string_view path, int error_number);
  // For a reader's error; `damage` is the reason for what the reader reports as damage.
  InputFailure(uint64_t row, const absl::Status& status, SkipReason damage);

  const Skip* skip() const { return std::get_if<Skip>(&what_); }
  // Converts to any variant that can hold a skip and a status.
  template <typename... Others>
  operator std::variant<Others...>() && {  // NOLINT: returned as it is
    if (Skip* skip = std::get_if<Skip>(&what_)) return std::move(*skip);
    return std::get<absl::Status>(std::move(what_));
  }

 private:
  std::variant<Skip, absl::Status> what_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_INPUT_FAILURE_H_
