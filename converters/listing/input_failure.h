// InputFailure: what an error of reading one input means: a fact about it, which is a skip, or an
// error of the run.
//
//   if (fd < 0) return InputFailure(row, "open", path, errno);     // a Skip, or a Status that ends the run
//
// A file that is not there, may not be read or is no file is skipped and listed. A lack of
// descriptors or memory and a disk that fails say nothing about the input: they end the run, which
// resumes.
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
  // Of a system call on `path`.
  InputFailure(uint64_t row, std::string_view operation, std::string_view path, int error_number);
  // Of a reader; what it calls damage is `damage`.
  InputFailure(uint64_t row, const absl::Status& status, SkipReason damage);

  const Skip* skip() const { return std::get_if<Skip>(&what_); }
  // In each variant that can hold a skip and a status.
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
