// OutputDir, second part: handles what other runs have left: the plan, the names, the finished
// shards.
#include <errno.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/leases.h"
#include "converters/publishing/output_dir.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/replacement.h"
#include "converters/publishing/shard_results.h"
#include "converters/publishing/workers_state.h"
#include "formats/core/index_name.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Every name that a build of the plan may give a file, except those that a commit adds.
std::string MadeNames(const Plan& plan) {
  std::set<std::string> names;
  for (size_t n = 0; n < plan.shards().size(); ++n) {
    const std::string& name = plan.shards()[n].name;
    names.insert({plan.DataFile(n), IndexName(name), LongIndexName(name)});
  }
  names.insert(std::string(kManifestName));
  return NamesText(names);
}

}  // namespace

struct OutputDir::Followed {
  Followed(JournalReader journals, bool few) : reader(std::move(journals)), reads_few(few) {}

  // Null = all journals.
  const std::set<std::string>* Only() const { return reads_few ? &journals : nullptr; }

  std::mutex mutex;
  JournalReader reader;
  std::set<uint32_t> wanted;
  std::map<uint32_t, std::vector<ShardResult>> lines;  // of other runs, of wanted shards
  bool reads_few;
  std::set<std::string> journals = {std::string(NameInFolder(kJournalName))};
  std::map<uint32_t, uint32_t> generations;  // of the leases that have named journals
};

// A worker that helps many others knows of their shards what a look at sizes needs.
void OutputDir::BeginFollowing() {
  const JournalParts parts = Reads() ? JournalParts::kAll : JournalParts::kFiles;
  followed_ =
      std::make_shared<Followed>(JournalReader(PathOf(kPackFolder), "", parts), ReadsFewJournals());
}

// What was finished before is known.
void OutputDir::FollowFrom(const std::string& own_journal) {
  if (followed_ == nullptr) BeginFollowing();
  followed_->reader.Leave(own_journal);
  followed_->wanted.insert(wanted_.begin(), wanted_.end());
  for (const ShardResult& result : finished_) followed_->wanted.erase(result.shard);
  for (auto& [shard, lines] : followed_->lines) {
    const bool known = !followed_->wanted.contains(shard);
    std::erase_if(lines,
                  [&](const ShardResult& line) { return known || line.journal == own_journal; });
  }
  std::erase_if(followed_->lines, [](const auto& each) { return each.second.empty(); });
}

absl::Status OutputDir::IndexPlan(const Plan& plan, std::optional<Plan>* was) {
  const std::string path = PathOf(kPlanName);
  absl::StatusOr<PlanFile> file = MapPlan(path);
  const bool meanwhile = IsCopiedMeanwhile(plan);
  const auto copy = [&](PlanCopy::Begin begin) {
    plan_copy_ = std::make_unique<PlanCopy>(plan, options_, *stage_, *folder_, begin);
  };
  if (absl::IsNotFound(file.status())) {
    absl::Status status = CheckJournals(plan);
    if (status.ok()) status = meanwhile ? PublishWithoutRows(plan) : PublishPlan(plan);
    if (status.ok() && options_.fsync) status = SyncDirectory(PathOf(kPackFolder));
    if (status.ok() && meanwhile) copy(PlanCopy::Begin::kNow);
    if (status.ok()) return ClaimNames(plan);
    if (!absl::IsAlreadyExists(status)) return status;
    file = MapPlan(path);  // another worker was first
  }
  if (!file.ok()) return file.status();
  absl::StatusOr<Plan> theirs = OpenTheirs(*file, plan);
  if (absl::IsDataLoss(theirs.status())) {  // the journals know the plan of their shards
    absl::Status status = CheckJournals(plan);
    if (status.ok()) status = ReplacePlan(plan);
    return status.ok() ? ClaimNames(plan) : status;
  }
  if (!theirs.ok()) return theirs.status();
  // Whoever was first is at it, or has ended.
  if (meanwhile && !theirs->HasRows()) copy(PlanCopy::Begin::kWithWait);
  *was = *std::move(theirs);
  return ClaimNames(plan);
}

bool OutputDir::IsCopiedMeanwhile(const Plan& plan) const {
  return options_.shares() && !options_.only_commit && plan.slices() != nullptr &&
         plan.slices()->file().bytes.size() > kSmallPlanBytes;
}

// The plan that is there, if it is this one; DataLoss when it is damaged.
absl::StatusOr<Plan> OutputDir::OpenTheirs(const PlanFile& file, const Plan& plan) const {
  std::string other_format;
  absl::StatusOr<Plan> theirs = Plan::Open(file, [&](std::string_view name) {
    if (name != plan.format().name) other_format = name;
    return other_format.empty() ? &plan.format() : nullptr;
  });
  // A worker that reads a large one leaves what others build from to them.
  const bool reads_all = !options_.worker || file.bytes.size() <= kSmallPlanBytes;
  if (theirs.ok() && reads_all && !options_.only_commit) RETURN_IF_ERROR(theirs->CheckAllSlices());
  if (absl::IsDataLoss(theirs.status())) return theirs;
  if (!other_format.empty()) {
    return OrOverwrite(
        PlanDiffers(path_, {absl::StrCat("--format was ", EscapeForTerminal(other_format), ", is ",
                                         std::string(plan.format().name))}));
  }
  if (!theirs.ok()) {
    return OrOverwrite(
        Conflict(path_, absl::StrCat("holds an unfinished build that cannot be resumed: ",
                                     std::string(theirs.status().message()))));
  }
  if (theirs->digest() != plan.digest())
    return OrOverwrite(PlanDiffers(path_, Plan::Differences(*theirs, plan)));
  return theirs;
}

absl::Status OutputDir::AwaitPlan() const {
  return plan_copy_ == nullptr ? absl::OkStatus() : plan_copy_->Wait();
}

// Before a lost plan is replaced: the new plan must not take shards of another plan for its own.
absl::Status OutputDir::CheckJournals(const Plan& plan) {
  ASSIGN_OR_RETURN(const std::vector<ShardResult> lines, ReadJournals(PathOf(kPackFolder)));
  plan_was_lost_ = true;
  return CheckOnePlan(path_, plan.digest(), lines);
}

// Names that the build may give files; written after the plan, so they always belong to the
// existing plan.
absl::Status OutputDir::ClaimNames(const Plan& plan) const {
  const std::string names = MadeNames(plan);
  ASSIGN_OR_RETURN(const std::set<std::string> was, ReadNames(PathOf(kMadeName)));
  return NamesText(was) == names ? absl::OkStatus() : Replace(kMadeName, names);
}

// Sizes are part of the digest; a file rewritten with the same size shows in its mtime. Finished
// shards are built again from such files, and everything is with --overwrite, which takes the files
// as they are. A worker cannot know which of two plans the others have.
absl::Status OutputDir::CheckFreshness(const Plan& was, const Plan& now) const {
  if (path_ != out_) return absl::OkStatus();
  for (const uint32_t n : wanted_) {
    if (!options_.worker && journalled_.contains(n)) continue;
    if (was.ShardTimes(n) != now.ShardTimes(n) && !was.HasRows()) {
      return OrOverwrite(Conflict(
          path_, absl::StrCat("was begun with a plan of other file times (shard ", n, ")")));
    }
    ASSIGN_OR_RETURN(const std::optional<uint32_t> row, FirstChangedRow(was, now, n));
    if (row) {
      return OrOverwrite(
          Conflict(now.listing().Path(*row), "was changed since the interrupted run began"));
    }
  }
  return absl::OkStatus();
}

// From here on the folder's plan has today's times, which a commit records in the manifest. No line
// of an older version, which has no times, may claim that a shard was built from them.
absl::Status OutputDir::RenewPlan(const Plan& was, const Plan& now) {
  if (options_.worker || options_.only_commit) return absl::OkStatus();
  bool differ = false;
  std::set<uint32_t> done;
  for (const ShardResult& result : finished_) done.insert(result.shard);
  for (size_t n = 0; n < now.shards().size(); ++n) {
    if (was.ShardTimes(n) == now.ShardTimes(n)) continue;
    differ = true;
    const auto shard = static_cast<uint32_t>(n);
    if (!journalled_.contains(shard) || done.contains(shard)) continue;
    RETURN_IF_ERROR(folder_->RemoveFile(IndexName(now.shards()[n].name)));
  }
  return differ ? ReplacePlan(now) : absl::OkStatus();
}

// Whoever builds a shard holds a lease of it: a worker for which few shards were named need not
// read what was journalled of all others.
bool OutputDir::ReadsFewJournals() const {
  constexpr size_t kFew = 100;
  return options_.shares() && options_.worker->named && wanted_.size() <= kFew;
}

// Leases that were read before are not read again.
absl::Status OutputDir::AddJournals(std::span<const uint32_t> shards) const {
  for (const uint32_t shard : shards) {
    if (!followed_->reads_few) return absl::OkStatus();
    for (uint32_t& known = followed_->generations[shard];; ++known) {
      const absl::StatusOr<std::string> owner =
          folder_->Read(LeaseName(shard, known + 1), kMaxOwnerBytes);
      // Also a handle that grew stale: the next call looks again.
      if (absl::IsNotFound(owner.status()) || absl::IsUnavailable(owner.status())) break;
      if (!owner.ok()) return owner.status();
      followed_->reads_few = IsRunName(*owner);  // a torn one may be anybody's
      if (!followed_->reads_few) break;
      followed_->journals.insert(std::string(NameInFolder(WorkersJournal(*owner))));
    }
  }
  return absl::OkStatus();
}

// A listing of a network file system may show the journals of others late; leases name them.
absl::Status OutputDir::FindUnlisted(const Plan& plan, const std::vector<bool>& wants, IoPool& pool,
                                     std::vector<ShardResult>& lines, ShardStates& states) const {
  std::set<uint32_t> done;
  std::vector<bool> missing = wants;
  for (const ShardResult& result : states.finished) {
    done.insert(result.shard);
    missing[result.shard] = false;
  }
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(path_));
  ASSIGN_OR_RETURN(const Leases leases, Leases::Read(folder, done));
  const std::set<std::string> journals = leases.Journals();
  ASSIGN_OR_RETURN(std::vector<ShardResult> late, followed_->reader.ReadNew(&journals));
  late = LastOfEqual(std::move(late));
  RETURN_IF_ERROR(CheckOnePlan(path_, plan.digest(), late));
  ASSIGN_OR_RETURN(ShardStates more,
                   LookAtShards(path_, plan, late, missing, ShardLook::kHash, pool, options_.stop));
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

// A shard without a valid line is built again, and replaces the existing one when it is published.
absl::Status OutputDir::FindFinished(const Plan& plan, const std::optional<Plan>& was,
                                     IoPool& pool) {
  BeginFollowing();
  RETURN_IF_ERROR(AddJournals(wanted_));
  // Nothing is replaced by a worker that helps others.
  const bool may_replace = Reads();
  std::vector<ShardResult> lines, pending;
  RETURN_IF_ERROR(followed_->reader.ReadEachNew(
      [&](ShardResult& line) {
        if (!line.pending) {
          lines.push_back(std::move(line));
        } else if (may_replace) {
          pending.push_back(std::move(line));
        }
      },
      followed_->Only()));
  lines = LastOfEqual(std::move(lines));
  RETURN_IF_ERROR(CheckOnePlan(path_, plan.digest(), lines));
  std::set<std::string> noted;
  if (may_replace) {
    ASSIGN_OR_RETURN(noted, NotedFiles(path_, lines, pending));
  }
  // Beside OUT, a manifest is that of a run killed before the exchange.
  if (replaces() && PublishedByOther(plan)) noted.insert(std::string(kManifestName));
  for (const std::string& name : noted) {
    RETURN_IF_ERROR(MayReplace(name));
  }
  // Lines that name no plan, or no times, belong to the earlier plan.
  if (plan_was_lost_) {
    std::erase_if(lines, [](const ShardResult& line) { return !line.plan || !line.times; });
  }
  std::vector<bool> wants(plan.shards().size(), options_.only_commit);
  for (const uint32_t n : wanted_) wants[n] = true;
  ASSIGN_OR_RETURN(ShardStates states, LookAtShards(path_, plan, lines, wants,
                                                    Reads() ? ShardLook::kHash : ShardLook::kSize,
                                                    pool, options_.stop));
  if (options_.only_commit && states.finished.size() < plan.shards().size())
    RETURN_IF_ERROR(FindUnlisted(plan, wants, pool, lines, states));
  if (options_.only_commit && states.finished.size() < plan.shards().size()) {
    // Only shown: an error says nothing about the shards.
    const absl::StatusOr<WorkersState> workers =
        ReadWorkersState(path_, plan, WorkerOptions().stale_seconds, pool);
    std::set<uint32_t> held;  // by those who are known to be at work
    if (workers.ok()) {
      std::set<std::string> owners;
      for (const OwnerState& owner : workers->owners) owners.insert(owner.name);
      for (const auto& [shard, name] : workers->held) {
        if (owners.contains(name)) held.insert(shard);
      }
    }
    return Unfinished(path_, plan, states, held);
  }
  finished_ = std::move(states.finished);
  // Inputs that were missing or not as planned may be available now: a worker may have had another
  // folder, or an empty mount.
  if (!options_.only_commit && Reads()) std::erase_if(finished_, LacksWhatMayBeBack);
  std::erase_if(finished_, [&](const ShardResult& result) {  // lines of older versions
    return was && !result.times && was->ShardTimes(result.shard) != plan.ShardTimes(result.shard);
  });
  std::vector<bool> done(wants.size(), false);
  for (const ShardResult& result : finished_) done[result.shard] = true;
  for (const ShardResult& line : lines) {
    if (line.shard >= wants.size() || !wants[line.shard]) continue;
    journalled_.insert(journalled_.end(), line.shard);  // lines are sorted
    if (!FitsPlan(line, plan)) continue;
    if (!done[line.shard]) Keep(line);
    const std::string index = IndexName(plan.shards()[line.shard].name);
    const bool renamed = line.index.name != index;
    // The name that NameIndexes gives it. What was seen before the shards were read stays.
    if ((may_replace || renamed) && !replaceable_.contains(index))
      RETURN_IF_ERROR(MayReplace(index));
    if (renamed) old_indexes_.insert(line.index.name);
  }
  return absl::OkStatus();
}

// Older versions of pack named an index after the full name of its shard. If one of them began this
// build, the index gets today's name, so that the result is that of an uninterrupted build.
absl::Status OutputDir::RenameOldIndex(const std::string& shard, FileEntry& index) {
  FileEntry named = index;
  named.name = IndexName(shard);
  if (index.name == named.name) return absl::OkStatus();
  absl::StatusOr<bool> same =
      Matches(PathOf(named.name), named);  // done by a killed run, or by another worker
  if (!same.ok()) return same.status();
  if (!*same) {
    RETURN_IF_ERROR(CheckMayReplace(named.name));
    absl::Status renamed = folder_->Replace(index.name, named.name);
    if (absl::IsNotFound(renamed)) same = Matches(PathOf(named.name), named);
    if (!same.ok()) return same.status();
    if (!renamed.ok() && !*same) return renamed;
    RETURN_IF_ERROR(MayReplace(named.name));
  }
  index = std::move(named);
  return absl::OkStatus();
}

absl::Status OutputDir::NameIndexes(const Plan& plan) {
  for (ShardResult& result : finished_) {
    RETURN_IF_ERROR(RenameOldIndex(plan.shards()[result.shard].name, result.index));
  }
  // The remaining ones belong to shards that are built again.
  for (const std::string& name : old_indexes_) {
    RETURN_IF_ERROR(folder_->RemoveFile(name));
  }
  return absl::OkStatus();
}

// Whether finished shards are read again. A worker that helps many others looks at sizes: whoever
// built them has proven them, and the commit reads all of them.
bool OutputDir::Reads() const { return !options_.shares() || options_.worker->named; }

// Its files may be there, as noted, at a later look.
void OutputDir::Keep(ShardResult line) const {
  if (!line.pending && !(Reads() && LacksWhatMayBeBack(line)))
    followed_->lines[line.shard].push_back(std::move(line));
}

absl::StatusOr<std::set<uint32_t>> OutputDir::FollowOthers(const Plan& plan,
                                                           std::span<const uint32_t> shards) const {
  const std::lock_guard lock(followed_->mutex);
  RETURN_IF_ERROR(AddJournals(shards));
  const absl::Status read = followed_->reader.ReadEachNew(
      [&](ShardResult& line) {
        if (followed_->wanted.contains(line.shard) && FitsPlan(line, plan)) Keep(std::move(line));
      },
      followed_->Only());
  if (!read.ok() && !absl::IsNotFound(read)) return read;  // published: .pack is gone
  std::set<uint32_t> journalled;
  for (const auto& [shard, lines] : followed_->lines) journalled.insert(journalled.end(), shard);
  return journalled;
}

absl::StatusOr<std::optional<ShardResult>> OutputDir::TakeFinishedByOther(uint32_t shard) const {
  std::vector<ShardResult> lines;
  {
    const std::lock_guard lock(followed_->mutex);
    const auto found = followed_->lines.find(shard);
    if (found != followed_->lines.end()) lines = found->second;
  }
  const ShardLook look = Reads() ? ShardLook::kHash : ShardLook::kSize;
  for (ShardResult& line : lines) {
    ASSIGN_OR_RETURN(const bool file, Matches(PathOf(line.file.name), line.file, look));
    if (!file) continue;
    ASSIGN_OR_RETURN(const bool index, Matches(PathOf(line.index.name), line.index, look));
    if (!index) continue;
    const std::lock_guard lock(followed_->mutex);
    followed_->lines.erase(shard);
    followed_->wanted.erase(shard);
    return std::optional<ShardResult>(std::move(line));
  }
  return std::nullopt;
}

bool OutputDir::PublishedByOther(const Plan& plan) const {
  const absl::StatusOr<Manifest> manifest = Manifest::Read(path_);
  return manifest.ok() && manifest->plan_digest == plan.digest();
}

absl::Status OutputDir::CheckFreeSpace(const Plan& plan) const {
  uint64_t needed = 0;
  std::set<uint32_t> done;
  for (const ShardResult& result : finished_) done.insert(result.shard);
  for (const uint32_t n : wanted_) {
    if (done.count(n) == 0) needed += plan.shards()[n].bound_bytes;
  }
  if (plan_copy_ != nullptr) needed += plan.slices()->file().bytes.size();
  struct statvfs facts;
  if (::statvfs(path_.c_str(), &facts) != 0)
    return IoStatus("look at the free space of", path_, errno);
  const uint64_t free_bytes = static_cast<uint64_t>(facts.f_bavail) * facts.f_frsize;
  if (needed <= free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("not enough space for ",
                                                   EscapeForTerminal(path_), ": up to ", needed,
                                                   " bytes are needed, ", free_bytes, " are free"));
}

}  // namespace shardpack
