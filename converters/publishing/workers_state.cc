#include "converters/publishing/workers_state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/leases.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/run_stage.h"
#include "converters/publishing/shard_results.h"
#include "formats/core/index_name.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

std::string PathIn(std::string_view folder, std::string_view name) {
  return absl::StrCat(std::string(folder), "/", std::string(name));
}

// What a line says of the files of its shard, which have the names of the plan.
struct NotedSizes {
  uint32_t shard;
  bool long_index;  // as older versions named it
  uint64_t file_bytes, index_bytes;
};

// Whether the file is there, and has that size; an error says nothing about it.
absl::StatusOr<bool> HasSize(int folder, const std::string& name, uint64_t bytes) {
  struct stat facts;
  if (::fstatat(folder, name.c_str(), &facts, 0) == 0)
    return static_cast<uint64_t>(facts.st_size) == bytes;
  if (IsAboutThePath(errno)) return false;
  return IoStatus("look at", name, errno);
}

// Adds the shards that are journalled and whose files have their sizes. Many millions of lines need
// no memory but for these numbers.
class DoneShards {
 public:
  DoneShards(const std::string& dataset, const Plan& plan)
      : dataset_(dataset),
        plan_(plan),
        reader_(PathIn(dataset, kPackFolder), "", JournalParts::kFiles) {}

  // `only`: names of journals, as for JournalReader; null = all that `.pack` lists. Lines that an
  // earlier call has read are not read again.
  absl::Status Add(IoPool& pool, const std::set<std::string>* only, std::set<uint32_t>& done) {
    lines_.clear();
    const absl::Status read = ReadLines(only, done);
    if (absl::IsNotFound(read)) return absl::OkStatus();  // not begun, or being published
    RETURN_IF_ERROR(read);
    ASSIGN_OR_RETURN(const File folder, OpenFolder());
    std::vector<uint8_t> found(lines_.size(), 0);
    std::mutex mutex;
    absl::Status failed;
    pool.ForEach((lines_.size() + kAtOnce - 1) / kAtOnce, [&](size_t chunk) {
      const size_t end = std::min(lines_.size(), (chunk + 1) * kAtOnce);
      for (size_t i = chunk * kAtOnce; i < end; ++i) {
        const absl::StatusOr<bool> same = LookAt(folder.descriptor(), lines_[i]);
        if (same.ok()) {
          found[i] = *same;
          continue;
        }
        const std::lock_guard lock(mutex);
        failed = same.status();
      }
    });
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (found[i] != 0) done.insert(lines_[i].shard);
    }
    return failed;
  }

 private:
  static constexpr size_t kAtOnce = 256;

  absl::Status ReadLines(const std::set<std::string>* only, const std::set<uint32_t>& known) {
    bool mixed = false;
    const auto take = [&](const ShardResult& line) {
      if (line.pending) return;
      mixed = mixed || (line.plan && *line.plan != plan_.digest());
      if (known.contains(line.shard) || !FitsPlan(line, plan_)) return;
      const bool long_index = line.index.name != IndexName(plan_.shards()[line.shard].name);
      lines_.push_back({line.shard, long_index, line.file.bytes, line.index.bytes});
    };
    RETURN_IF_ERROR(reader_.ReadEachNew(take, only));
    if (!mixed) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<ShardResult> lines,
                     ReadJournals(PathIn(dataset_, kPackFolder), only, JournalParts::kFiles));
    return CheckOnePlan(dataset_, plan_.digest(), lines);
  }

  absl::StatusOr<File> OpenFolder() const {
    const int fd = ::open(dataset_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return IoStatus("open", dataset_, errno);
    return File(fd, dataset_);
  }

  absl::StatusOr<bool> LookAt(int folder, const NotedSizes& line) const {
    ASSIGN_OR_RETURN(const bool file, HasSize(folder, plan_.DataFile(line.shard), line.file_bytes));
    if (!file) return false;
    const std::string& name = plan_.shards()[line.shard].name;
    if (line.long_index) {
      ASSIGN_OR_RETURN(const bool index, HasSize(folder, LongIndexName(name), line.index_bytes));
      if (index) return true;
    }
    return HasSize(folder, IndexName(name), line.index_bytes);
  }

  const std::string& dataset_;
  const Plan& plan_;
  JournalReader reader_;
  std::vector<NotedSizes> lines_;
};

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
  for (const uint32_t n : known) {
    if (n < state.shards) state.done.insert(state.done.end(), n);
  }
  DoneShards done(dataset, plan);
  RETURN_IF_ERROR(done.Add(pool, /*only=*/nullptr, state.done));
  ASSIGN_OR_RETURN(state.owners, Owners(*folder));
  std::map<uint32_t, std::string> leases;
  if (state.done.size() < state.shards) {
    ASSIGN_OR_RETURN(const Leases read, Leases::Read(*folder, state.done));
    leases = read.Newest();
    const std::set<std::string> journals = read.Journals();
    RETURN_IF_ERROR(done.Add(pool, &journals, state.done));
  }
  std::map<std::string, bool> stale;  // by owner
  for (const OwnerState& owner : state.owners)
    stale[owner.name] = owner.gone || owner.behind_seconds >= stale_seconds;
  for (const auto& [shard, name] : leases) {
    if (shard >= state.shards || state.done.contains(shard)) continue;
    const auto owner = stale.find(name);
    (owner != stale.end() && owner->second ? state.stale : state.held)[shard] = name;
  }
  ASSIGN_OR_RETURN(state.failed, ReadShardFailures(*folder));
  std::erase_if(state.failed, [&](const auto& each) { return state.done.contains(each.first); });
  return state;
}

}  // namespace shardpack
