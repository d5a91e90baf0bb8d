// ErrorFacts: what a Status is about, as values beside its message, so that nobody parses messages.
//
//   return WithFacts(absl::DataLossError("cut short"), {.shard = "train-000000.tar", .record = 7});
//   const ErrorFacts facts = FactsOf(status);      // facts.record == 7
//   return Reworded(status, "while reading ...");  // the same code and facts
//
// Facts are payloads of the Status; a fact that is already there is kept, since it is from closer
// to the cause.
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Units: bytes from the start of the shard.
#ifndef SHARDPACK_FORMATS_IO_ERROR_FACTS_H_
#define SHARDPACK_FORMATS_IO_ERROR_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace shardpack {

struct ErrorFacts {
  std::optional<int64_t> system_errno = std::nullopt;
  // As they are, not escaped; empty: unknown.
  std::string path = {}, shard = {}, key = {}, field = {};
  std::optional<int64_t> record = std::nullopt, offset = std::nullopt, id = std::nullopt;

  friend bool operator==(const ErrorFacts&, const ErrorFacts&) = default;
};

absl::Status WithFacts(absl::Status status, const ErrorFacts& facts);
ErrorFacts FactsOf(const absl::Status& status);
// Another message, and another code if one is given.
absl::Status Reworded(const absl::Status& status, std::string_view message,
                      std::optional<absl::StatusCode> code = std::nullopt);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_ERROR_FACTS_H_
