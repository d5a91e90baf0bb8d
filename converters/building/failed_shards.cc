#include "converters/building/failed_shards.h"

#include <errno.h>

#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "converters/publishing/shard_results.h"
#include "formats/io/error_facts.h"

namespace shardpack {
namespace {

constexpr int kAttempts = 2;
// With more of them the disk has gone, and not a few of its sectors.
constexpr size_t kMostSetAside = 3;

// What a disk says of a file that it cannot read.
bool IsOfTheFile(const absl::Status& status) {
  const std::optional<int64_t> error = FactsOf(status).system_errno;
  return error == EIO || error == ENODATA || error == EBADMSG || error == EUCLEAN;
}

}  // namespace

FailedShards::Fate FailedShards::Judge(uint32_t shard, const absl::Status& status,
                                       const Attempt& attempt) {
  // No second attempt where it cannot help: no space, a sample that the format refuses, or good
  // bytes that are not those of another worker.
  const bool damaged = absl::IsDataLoss(status) && !attempt.verified;
  if ((absl::IsUnavailable(status) || damaged) && attempts_[shard] < kAttempts) return Fate::kAgain;
  const bool bad_file = attempt.of_input && attempt.source_reads && IsOfTheFile(status);
  if (out_.claims() == nullptr || !bad_file || set_aside_.size() >= kMostSetAside)
    return Fate::kEndsRun;
  set_aside_.emplace(shard, status);
  return Fate::kSetAside;
}

absl::Status FailedShards::SetAside() const {
  if (set_aside_.empty()) return absl::OkStatus();
  std::set<uint32_t> shards;
  for (const auto& [shard, status] : set_aside_) shards.insert(shard);
  const auto& [shard, status] = *set_aside_.begin();
  return Reworded(status,
                  absl::StrCat(std::string(status.message()), "\nIt is an input of shard ", shard,
                               ". This worker has built the others, and left out shards whose "
                               "inputs the disk cannot read: ",
                               ShardList(shards)));
}

bool SaysSomethingOfTheShard(FailedShards::Fate fate, const absl::Status& status) {
  if (fate == FailedShards::Fate::kSetAside) return true;
  return fate == FailedShards::Fate::kEndsRun && !absl::IsCancelled(status) &&
         !absl::IsResourceExhausted(status) && !absl::IsUnavailable(status) &&
         !absl::IsPermissionDenied(status) && !absl::IsFailedPrecondition(status) &&
         !absl::IsNotFound(status);
}

}  // namespace shardpack
