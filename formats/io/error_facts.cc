#include "formats/io/error_facts.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

constexpr char kErrno[] = "shardpack/errno", kPath[] = "shardpack/path",
               kShard[] = "shardpack/shard", kKey[] = "shardpack/key", kField[] = "shardpack/field",
               kRecord[] = "shardpack/record", kOffset[] = "shardpack/offset",
               kId[] = "shardpack/id";

void Add(absl::Status& status, const char* name, const std::string& text) {
  if (!text.empty() && !status.GetPayload(name)) status.SetPayload(name, absl::Cord(text));
}

void Add(absl::Status& status, const char* name, const std::optional<int64_t>& number) {
  if (number) Add(status, name, absl::StrCat(*number));
}

std::string TextOf(const absl::Status& status, const char* name) {
  const absl::optional<absl::Cord> found = status.GetPayload(name);
  return found ? std::string(*found) : std::string();
}

std::optional<int64_t> NumberOf(const absl::Status& status, const char* name) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(TextOf(status, name), &number)) return std::nullopt;
  return number;
}

}  // namespace

absl::Status WithFacts(absl::Status status, const ErrorFacts& facts) {
  Add(status, kErrno, facts.system_errno);
  Add(status, kPath, facts.path);
  Add(status, kShard, facts.shard);
  Add(status, kKey, facts.key);
  Add(status, kField, facts.field);
  Add(status, kRecord, facts.record);
  Add(status, kOffset, facts.offset);
  Add(status, kId, facts.id);
  return status;
}

ErrorFacts FactsOf(const absl::Status& status) {
  return {.system_errno = NumberOf(status, kErrno),
          .path = TextOf(status, kPath),
          .shard = TextOf(status, kShard),
          .key = TextOf(status, kKey),
          .field = TextOf(status, kField),
          .record = NumberOf(status, kRecord),
          .offset = NumberOf(status, kOffset),
          .id = NumberOf(status, kId)};
}

absl::Status Reworded(const absl::Status& status, std::string_view message,
                      std::optional<absl::StatusCode> code) {
  absl::Status reworded(code.value_or(status.code()),
                        absl::string_view(message.data(), message.size()));
  status.ForEachPayload(
      [&](absl::string_view name, const absl::Cord& value) { reworded.SetPayload(name, value); });
  return reworded;
}

}  // namespace shardpack
