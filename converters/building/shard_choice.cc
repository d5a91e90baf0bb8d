#include "converters/building/shard_choice.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/shard_results.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::vector<ShardResult>> ShardChoice::Theirs(std::span<const uint32_t> waiting) {
  ASSIGN_OR_RETURN(const std::set<uint32_t> journalled, out_.FollowOthers(plan_, waiting));
  std::vector<ShardResult> theirs;
  if (journalled.empty()) return theirs;
  for (const uint32_t shard : waiting) {
    if (!journalled.contains(shard)) continue;
    ASSIGN_OR_RETURN(std::optional<ShardResult> each, out_.TakeFinishedByOther(shard));
    if (each) theirs.push_back(*std::move(each));
  }
  return theirs;
}

absl::StatusOr<ShardChoice::Choice> ShardChoice::Next(std::span<const uint32_t> waiting,
                                                      bool idle) {
  ShardClaims* const claims = out_.claims();
  if (claims == nullptr) return Choice{.shard = waiting.front()};
  Choice choice;
  ASSIGN_OR_RETURN(choice.theirs, Theirs(waiting));
  if (!choice.theirs.empty()) return choice;
  ASSIGN_OR_RETURN(const auto failures, claims->Failures());
  const std::pair<const uint32_t, ShardFailure>* failed = nullptr;
  size_t left_alone = 0;
  for (const uint32_t shard : waiting) {
    if (const auto found = failures.find(shard); found != failures.end()) {
      failed = &*found;
      ++left_alone;
      continue;
    }
    ASSIGN_OR_RETURN(const bool mine, claims->Claim(shard, out_.WasJournalled(shard)));
    if (!mine) continue;
    // Its holder may have finished it since the journals were read.
    ASSIGN_OR_RETURN(choice.theirs, Theirs(std::span(&shard, 1)));
    if (choice.theirs.empty()) choice.shard = shard;
    return choice;
  }
  // An error would end the run, and with it the shards that it has begun.
  if (left_alone < waiting.size() || !idle) return choice;
  return absl::DataLossError(absl::StrCat(
      failed->second.workers, " workers have failed at shard ", failed->first,
      left_alone > 1 ? absl::StrCat(" and as many at ", left_alone - 1, " others") : "",
      ", so it is left alone. The last of them said: ", EscapeForTerminal(failed->second.why),
      "\nA worker for which it is named tries again: --shards ", failed->first));
}

absl::Status ShardChoice::Held(std::span<const uint32_t> waiting) {
  const std::set<uint32_t> shards(waiting.begin(), waiting.end());
  return absl::AbortedError(absl::StrCat("other workers hold ", shards.size(),
                                         " of the shards: ", ShardList(shards, 20)));
}

}  // namespace shardpack
