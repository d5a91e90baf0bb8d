#include "converters/publishing/workers_state.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/run_stage.h"
#include "converters/publishing/shard_results.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

std::string PathIn(std::string_view folder, std::string_view name) {
  return absl::StrCat(std::string(folder), "/", std::string(name));
}

// The newest lease of each shard that is not done: generation and name.
absl::StatusOr<std::map<uint32_t, uint32_t>> Leases(const OwnedFolder& dataset,
                                                    const std::set<uint32_t>& done) {
  std::map<uint32_t, uint32_t> newest;
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, dataset.List(kLeaseFolder));
  for (const std::string& folder : folders) {
    const std::string path = PathIn(kLeaseFolder, folder);
    if (!OwnedFolder::IsName(path)) continue;
    const absl::StatusOr<std::vector<std::string>> names = dataset.List(path);
    if (!names.ok()) continue;  // not a folder of leases
    for (const std::string& name : *names) {
      const auto lease = ParseLeaseName(name);
      if (!lease || done.contains(lease->first)) continue;
      uint32_t& generation = newest[lease->first];
      generation = std::max(generation, lease->second);
    }
  }
  return newest;
}

absl::StatusOr<std::vector<OwnerState>> Owners(const OwnedFolder& dataset) {
  std::vector<OwnerState> owners;
  std::vector<double> times;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, dataset.List(kOwnersFolder));
  for (const std::string& name : names) {
    if (!IsRunName(name)) continue;
    const absl::StatusOr<std::string> text = dataset.Read(OwnerName(name), kMaxBeatBytes);
    struct stat facts;
    if (!text.ok() || ::stat(dataset.PathOf(OwnerName(name)).c_str(), &facts) != 0) continue;
    const std::optional<BeatFacts> beat = ParseBeatText(*text);
    if (!beat) continue;
    owners.push_back({name, *beat, 0, beat->ended || RunStage::IsDeadHere(dataset, name)});
    times.push_back(static_cast<double>(facts.st_mtim.tv_sec) +
                    1e-9 * static_cast<double>(facts.st_mtim.tv_nsec));
  }
  if (owners.empty()) return owners;
  double newest = *std::max_element(times.begin(), times.end());
  // All of them may be dead.
  newest = std::max(newest, RunStage::FileSystemSeconds(dataset).value_or(newest));
  for (size_t i = 0; i < owners.size(); ++i) owners[i].behind_seconds = newest - times[i];
  return owners;
}

}  // namespace

std::set<uint32_t> WorkersState::Unfinished() const {
  std::set<uint32_t> unfinished;
  for (uint32_t n = 0; n < shards; ++n) {
    if (!done.contains(n)) unfinished.insert(unfinished.end(), n);
  }
  return unfinished;
}

double WorkersState::ShardsPerSecond() const {
  double rate = 0;
  for (const OwnerState& owner : owners) {
    if (!owner.gone && owner.facts.seconds > 0)
      rate += static_cast<double>(owner.facts.shards) / owner.facts.seconds;
  }
  return rate;
}

double WorkersState::SecondsPerShard() const {
  double seconds = 0;
  uint64_t built = 0;
  for (const OwnerState& owner : owners) {
    seconds += owner.facts.shard_seconds;
    built += owner.facts.shards;
  }
  return built == 0 ? 0 : seconds / static_cast<double>(built);
}

absl::StatusOr<WorkersState> ReadWorkersState(const std::string& dataset, const Plan& plan,
                                              double stale_seconds, IoPool& pool,
                                              const std::set<uint32_t>& known) {
  WorkersState state;
  state.shards = plan.shards().size();
  // A build that has not begun, or one that is being published.
  const absl::StatusOr<OwnedFolder> folder = OwnedFolder::Open(dataset);
  if (absl::IsNotFound(folder.status())) return state;
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<std::vector<ShardResult>> lines =
      ReadJournals(PathIn(dataset, kPackFolder), /*only=*/nullptr, JournalParts::kFiles);
  if (!lines.ok() && !absl::IsNotFound(lines.status())) return lines.status();
  if (lines.ok()) {
    RETURN_IF_ERROR(CheckOnePlan(dataset, plan.digest(), *lines));
    std::vector<bool> wants(state.shards, true);
    for (const uint32_t n : known) {
      if (n >= state.shards) continue;
      wants[n] = false;
      state.done.insert(n);
    }
    ASSIGN_OR_RETURN(const ShardStates found,
                     LookAtShards(dataset, plan, *lines, wants, ShardLook::kSize, pool));
    for (const ShardResult& result : found.finished) state.done.insert(result.shard);
  }
  ASSIGN_OR_RETURN(state.owners, Owners(*folder));
  ASSIGN_OR_RETURN(const auto leases, Leases(*folder, state.done));
  for (const auto& [shard, generation] : leases) {
    if (shard >= state.shards) continue;
    const absl::StatusOr<std::string> text =
        folder->Read(LeaseName(shard, generation), kMaxOwnerBytes);
    const std::string name = text.ok() && IsRunName(*text) ? *text : "unknown";
    const auto owner = std::find_if(state.owners.begin(), state.owners.end(),
                                    [&](const OwnerState& each) { return each.name == name; });
    const bool stale =
        owner != state.owners.end() && (owner->gone || owner->behind_seconds >= stale_seconds);
    (stale ? state.stale : state.held)[shard] = name;
  }
  ASSIGN_OR_RETURN(state.failed, ReadShardFailures(*folder));
  std::erase_if(state.failed, [&](const auto& each) { return state.done.contains(each.first); });
  return state;
}

}  // namespace shardpack
