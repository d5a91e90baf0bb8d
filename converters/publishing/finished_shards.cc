#include "converters/publishing/finished_shards.h"

#include <algorithm>
#include <utility>

#include "converters/publishing/conflict.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/replacement.h"
#include "converters/publishing/workers_state.h"
#include "formats/core/index_name.h"
#include "formats/io/status_macros.h"

namespace shardpack {

// The last of equal lines, sorted by shard. Notes which files may be replaced.
absl::Status FinishedShards::ReadLines(const Past& past, std::vector<ShardResult>& lines) {
  // Nothing is replaced by a worker that helps others.
  const bool may_replace = others_.rereads();
  std::vector<ShardResult> pending;
  RETURN_IF_ERROR(others_.ReadNew(wanted_, [&](ShardResult& line) {
    if (!line.pending) {
      lines.push_back(std::move(line));
    } else if (may_replace) {
      pending.push_back(std::move(line));
    }
  }));
  lines = LastOfEqual(std::move(lines));
  RETURN_IF_ERROR(CheckOnePlan(folder_.path(), plan_.digest(), lines));
  std::set<std::string> noted;
  if (may_replace) {
    ASSIGN_OR_RETURN(noted, NotedFiles(folder_.path(), lines, pending));
  }
  if (past.manifest_is_theirs) noted.insert(std::string(kManifestName));
  for (const std::string& name : noted) {
    RETURN_IF_ERROR(replaceable_.Note(name));
  }
  if (past.plan_was_lost) {
    std::erase_if(lines, [](const ShardResult& line) { return !line.plan || !line.times; });
  }
  return absl::OkStatus();
}

absl::Status FinishedShards::Find(const Past& past, IoPool& pool) {
  std::vector<ShardResult> lines;
  RETURN_IF_ERROR(ReadLines(past, lines));
  std::vector<bool> wants(plan_.shards().size(), options_.only_commit);
  for (const uint32_t n : wanted_) wants[n] = true;
  ASSIGN_OR_RETURN(ShardStates states, LookAtShards(folder_.path(), plan_, lines, wants,
                                                    others_.look(), pool, options_.stop));
  if (options_.only_commit && states.finished.size() < plan_.shards().size())
    RETURN_IF_ERROR(FindUnlisted(wants, pool, lines, states));
  if (options_.only_commit && states.finished.size() < plan_.shards().size())
    return NotAll(states, pool);
  results_ = std::move(states.finished);
  // Inputs that were missing or not as planned may be available now: a worker may have had another
  // folder, or an empty mount.
  if (!options_.only_commit && others_.rereads()) std::erase_if(results_, LacksWhatMayBeBack);
  std::erase_if(results_, [&](const ShardResult& result) {  // lines of older versions
    return past.plan != nullptr && !result.times &&
           past.plan->ShardTimes(result.shard) != plan_.ShardTimes(result.shard);
  });
  std::vector<bool> done(wants.size(), false);
  for (const ShardResult& result : results_) done[result.shard] = true;
  for (const ShardResult& line : lines) {
    if (line.shard >= wants.size() || !wants[line.shard]) continue;
    RETURN_IF_ERROR(NoteLine(line, done[line.shard]));
  }
  return absl::OkStatus();
}

absl::Status FinishedShards::NoteLine(const ShardResult& line, bool done) {
  journalled_.insert(journalled_.end(), line.shard);  // lines are sorted
  if (!FitsPlan(line, plan_)) return absl::OkStatus();
  if (!done) others_.Keep(line);
  const std::string index = IndexName(plan_.shards()[line.shard].name);
  const bool renamed = line.index.name != index;
  // The name that NameIndexes gives it. What was seen before the shards were read stays.
  if ((others_.rereads() || renamed) && !replaceable_.Knows(index))
    RETURN_IF_ERROR(replaceable_.Note(index));
  if (renamed) old_indexes_.insert(line.index.name);
  return absl::OkStatus();
}

absl::Status FinishedShards::FindUnlisted(const std::vector<bool>& wants, IoPool& pool,
                                          std::vector<ShardResult>& lines, ShardStates& states) {
  std::set<uint32_t> done;
  std::vector<bool> missing = wants;
  for (const ShardResult& result : states.finished) {
    done.insert(result.shard);
    missing[result.shard] = false;
  }
  ASSIGN_OR_RETURN(std::vector<ShardResult> late, others_.ReadUnlisted(done));
  late = LastOfEqual(std::move(late));
  RETURN_IF_ERROR(CheckOnePlan(folder_.path(), plan_.digest(), late));
  ASSIGN_OR_RETURN(ShardStates more, LookAtShards(folder_.path(), plan_, late, missing,
                                                  ShardLook::kHash, pool, options_.stop));
  for (ShardResult& result : more.finished) {
    states.damaged.erase(result.shard);
    states.finished.push_back(std::move(result));
  }
  std::sort(states.finished.begin(), states.finished.end(),
            [](const ShardResult& a, const ShardResult& b) { return a.shard < b.shard; });
  states.damaged.merge(more.damaged);
  lines.insert(lines.end(), late.begin(), late.end());
  return absl::OkStatus();
}

// Why a commit cannot publish, with those who are known to be at work on what is missing.
absl::Status FinishedShards::NotAll(const ShardStates& states, IoPool& pool) const {
  // Only shown: an error says nothing about the shards.
  const absl::StatusOr<WorkersState> workers =
      ReadWorkersState(folder_.path(), plan_, WorkerOptions().stale_seconds, pool);
  std::set<uint32_t> held;
  if (workers.ok()) {
    std::set<std::string> owners;
    for (const OwnerState& owner : workers->owners) owners.insert(owner.name);
    for (const auto& [shard, name] : workers->held) {
      if (owners.contains(name)) held.insert(shard);
    }
  }
  return Unfinished(folder_.path(), plan_, states, held);
}

absl::Status FinishedShards::RenameOldIndex(const std::string& shard, FileEntry& index) const {
  FileEntry named = index;
  named.name = IndexName(shard);
  if (index.name == named.name) return absl::OkStatus();
  // Done by a killed run, or by another worker.
  absl::StatusOr<bool> same = Matches(folder_.PathOf(named.name), named);
  if (!same.ok()) return same.status();
  if (!*same) {
    RETURN_IF_ERROR(replaceable_.CheckMayReplace(named.name));
    absl::Status renamed = folder_.Replace(index.name, named.name);
    if (absl::IsNotFound(renamed)) same = Matches(folder_.PathOf(named.name), named);
    if (!same.ok()) return same.status();
    if (!renamed.ok() && !*same) return renamed;
    RETURN_IF_ERROR(replaceable_.Note(named.name));
  }
  index = std::move(named);
  return absl::OkStatus();
}

absl::Status FinishedShards::NameIndexes() {
  for (ShardResult& result : results_) {
    RETURN_IF_ERROR(RenameOldIndex(plan_.shards()[result.shard].name, result.index));
  }
  // The remaining ones belong to shards that are built again.
  for (const std::string& name : old_indexes_) {
    RETURN_IF_ERROR(folder_.RemoveFile(name));
  }
  return absl::OkStatus();
}

// Where the file system has no locks, a worker for which shards were named may have replaced them.
absl::Status FinishedShards::CheckUnchanged() const {
  for (const ShardResult& result : results_) {
    for (const FileEntry* file : {&result.file, &result.index}) {
      ASSIGN_OR_RETURN(const bool as_noted, replaceable_.IsAsNoted(file->name));
      if (as_noted) continue;
      const std::string path = folder_.PathOf(file->name);
      ASSIGN_OR_RETURN(const bool same,
                       Matches(path, *file, ShardLook::kHash, nullptr, options_.stop));
      if (!same) {
        return Conflict(path,
                        "was replaced or removed by another run while this one was about to "
                        "publish it; nothing was published. Run again");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace shardpack
