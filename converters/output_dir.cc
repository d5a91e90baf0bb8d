#include "converters/output_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/pack_lock.h"
#include "converters/published.h"
#include "converters/replacement.h"
#include "converters/shard_results.h"
#include "formats/core/index_name.h"
#include "formats/io/exists.h"
#include "formats/io/list_folder.h"
#include "formats/io/staged_file.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxPlanBytes = uint64_t{64} << 30;
constexpr char kOverwriteSuffix[] = ".pack-new";

absl::Status Conflict(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(path), " ", why));
}

absl::Status PlanDiffers(const std::string& out, const std::vector<std::string>& differences) {
  return Conflict(out, absl::StrCat("was made with another plan:\n  ", absl::StrJoin(differences, "\n  "),
                                    "\nUse another folder, the same options, or --overwrite."));
}

bool LacksWhatMayBeBack(const ShardResult& result) {
  return std::any_of(result.skips.begin(), result.skips.end(), [](const Skip& skip) {
    return skip.reason == SkipReason::kVanished || skip.reason == SkipReason::kChanged ||
           skip.reason == SkipReason::kPermission || skip.reason == SkipReason::kIoError;
  });
}

bool FieldsChanged(const Listing& was, const Listing& now, uint64_t row) {
  const auto times = [&](const Listing& listing) {
    const size_t fields = listing.field_mtime_ns.empty() ? 0 : listing.fields.size();
    return std::span(listing.field_mtime_ns).subspan(fields * row, fields);
  };
  const auto before = times(was), after = times(now);
  return !std::equal(before.begin(), before.end(), after.begin(), after.end());
}

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Every name that a build of the plan may give a file, but for what a commit adds.
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
  explicit Followed(JournalReader journals) : reader(std::move(journals)) {}
  std::mutex mutex;
  JournalReader reader;
  std::map<uint32_t, std::vector<ShardResult>> lines;  // of other runs
};

absl::Status CheckShardsRange(const Plan& plan, const OutputOptions& options) {
  if (!options.shards_range) return absl::OkStatus();
  const auto [begin, end] = *options.shards_range;
  const size_t shards = plan.shards().size();
  if (begin < end && end <= shards) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--shards-range: the plan has shards 0-", shards - 1,
                                                 begin >= shards ? ", and none from there on"
                                                                 : absl::StrCat("; the range may end at ", shards - 1)));
}

absl::StatusOr<std::string> OutputDir::ReadPlanBytes(const std::string& out) {
  absl::StatusOr<std::string> bytes = ReadWholeFile(out + "/.pack/plan", kMaxPlanBytes);
  if (absl::IsNotFound(bytes.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(out), " holds no unfinished build (no .pack/plan)"));
  }
  return bytes;
}

bool OutputDir::HoldsUnfinished(const std::string& out) {
  const std::string path = WithoutSlashes(out);
  return Exists(path + "/.pack/plan").value_or(false) || Exists(path + kOverwriteSuffix + "/.pack/plan").value_or(false);
}

absl::Status OutputDir::FinishPublished(const std::string& out) {
  const std::string path = WithoutSlashes(out);
  const absl::StatusOr<bool> pack = Exists(path + "/.pack");
  if (!pack.ok() || !*pack) return pack.status();
  const absl::StatusOr<bool> indexed = Exists(absl::StrCat(path, "/", std::string(kIndexMark)));
  if (!indexed.ok() || *indexed) return indexed.status();
  const absl::StatusOr<File> lock = LockPackFolder(path);
  if (!lock.ok()) {
    return Exists(path + "/.pack").value_or(true) ? lock.status() : absl::OkStatus();  // another run has just done it
  }
  absl::Status status;
  const absl::StatusOr<bool> replaced = IsReplacement(path);
  if (!replaced.ok()) return replaced.status();
  if (*replaced) {
    std::error_code error;
    const std::string real = std::filesystem::canonical(path, error).native();
    if (error) return IoStatus("look at", path, error.value());
    status = FinishReplacement(path, real + kOverwriteSuffix);
  }
  if (!status.ok()) return status;
  const absl::StatusOr<OwnedFolder> folder = OwnedFolder::Open(path);
  return folder.ok() ? folder->RemoveTree(".pack") : folder.status();
}

absl::StatusOr<OutputDir> OutputDir::Open(const std::string& out, const Plan& plan, const OutputOptions& options,
                                          IoPool& pool) {
  if (absl::Status range = CheckShardsRange(plan, options); !range.ok()) return range;
  absl::StatusOr<OutputDir> dir = OpenOnce(out, plan, options, pool);
  if (dir.ok() || options.overwrite) return dir;
  // Another run may have published the dataset while this one looked: its `.pack` is then gone.
  const absl::StatusOr<Manifest> manifest = Manifest::Read(WithoutSlashes(out));
  if (!manifest.ok() || manifest->plan_digest != plan.digest()) return dir;
  return OpenOnce(out, plan, options, pool);
}

absl::StatusOr<OutputDir> OutputDir::OpenOnce(const std::string& out, const Plan& plan, const OutputOptions& options,
                                              IoPool& pool) {
  OutputDir dir;
  dir.out_ = dir.path_ = WithoutSlashes(out);
  dir.options_ = options;
  absl::Status status = dir.Create();
  if (status.ok()) status = dir.CheckIsOurs(dir.path_);
  if (!status.ok()) return status;

  const absl::StatusOr<bool> published = Exists(dir.PathOf(std::string(kManifestName)));
  if (!published.ok()) return published.status();
  if (*published) {
    // A run that was killed after it had exchanged the datasets is finished first.
    const absl::StatusOr<bool> exchanged = IsReplacement(dir.path_);
    if (!exchanged.ok()) return exchanged.status();
    const absl::StatusOr<Manifest> manifest = Manifest::Read(dir.path_);
    if (!manifest.ok() && !options.overwrite) {
      return Conflict(dir.path_, absl::StrCat("holds a damaged manifest: ", std::string(manifest.status().message())));
    }
    const bool finished = *exchanged && manifest.ok() && manifest->plan_digest == plan.digest();
    if (*exchanged) status = FinishPublished(dir.path_);
    if (!status.ok()) return status;
    if (!options.overwrite || finished) {
      status = dir.CheckPublished(plan, *manifest);
      if (!status.ok()) return status;
      dir.complete_ = true;
      return dir;
    }
  }
  const absl::StatusOr<bool> begun = Exists(dir.PathOf(".pack"));
  if (!begun.ok()) return begun.status();
  if (options.overwrite && (*published || *begun)) {
    status = dir.BeginReplacement();
    if (!status.ok()) return status;
  }
  std::optional<Plan> was;
  if (options.only_commit) status = dir.FindFinished(plan, pool);  // a commit that is refused changes nothing
  if (status.ok()) status = dir.BeginFolder();
  if (status.ok()) status = dir.BeginStage(plan);
  if (status.ok()) status = dir.AdoptPlan(plan, &was);
  if (status.ok() && was && !options.only_commit) status = dir.FindFinished(plan, pool);
  if (status.ok() && was) status = dir.CheckFreshness(*was, plan);
  if (status.ok()) status = dir.NameIndexes(plan);
  if (status.ok()) status = dir.CheckFreeSpace(plan);
  if (!status.ok()) return status;

  const std::string journal_name =
      options.shards_range ? absl::StrCat("journal-", dir.stage_->owner(), ".jsonl") : "journal.jsonl";
  absl::StatusOr<std::unique_ptr<Journal>> journal =
      Journal::Open(dir.PathOf(absl::StrCat(".pack/", journal_name)), options.fsync);
  if (!journal.ok()) return journal.status();
  dir.journal_ = *std::move(journal);
  dir.followed_ = std::make_shared<Followed>(JournalReader(dir.PathOf(".pack"), journal_name));
  return dir;
}

// A dataset that is there already is the answer only when it is of this plan, whole as far as a look tells, and no
// source file is newer.
absl::Status OutputDir::CheckPublished(const Plan& plan, const Manifest& manifest) {
  if (manifest.plan_digest != plan.digest()) return PlanDiffers(path_, DifferencesFrom(manifest, plan));
  absl::Status status = FinishPublished(path_);
  if (status.ok()) status = CheckPublishedFiles(path_, manifest);
  return status.ok() ? CheckSourceTimes(path_, plan.listing()) : status;
}

absl::Status OutputDir::Create() {
  struct stat facts;
  if (::stat(out_.c_str(), &facts) == 0) {
    if (S_ISDIR(facts.st_mode)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the output ", EscapeForTerminal(out_), " is a file; it must be a folder"));
  }
  if (errno != ENOENT && errno != ENOTDIR) return IoStatus("look at", out_, errno);
  const absl::StatusOr<bool> link = Exists(out_);
  if (!link.ok()) return link.status();
  if (*link) {
    return absl::InvalidArgumentError(absl::StrCat("the output ", EscapeForTerminal(out_), " is a dangling link"));
  }
  std::error_code error;
  std::filesystem::create_directories(out_, error);
  if (error) return IoStatus("create folder", out_, error.value());
  return absl::OkStatus();
}

// What pack has not built is never built over, replaced or removed: it may be the only copy, and nobody could make it
// again.
absl::Status OutputDir::CheckIsOurs(const std::string& folder) const {
  absl::Status status = CheckPackFolder(folder);
  if (!status.ok()) return status;
  const absl::StatusOr<bool> indexed = Exists(absl::StrCat(folder, "/", std::string(kIndexMark)));
  if (!indexed.ok()) return indexed.status();
  if (*indexed) {
    return Conflict(folder, "holds shards that pack index works on, or has not finished with; run pack index there "
                           "again, or use another folder");
  }
  const absl::StatusOr<bool> published = Exists(absl::StrCat(folder, "/", std::string(kManifestName)));
  if (!published.ok() || !*published) return published.status();
  const absl::StatusOr<Manifest> manifest = Manifest::Read(folder);
  if (manifest.ok() && manifest->adopted()) {
    return Conflict(folder, "holds shards that pack index has indexed in place, which are never replaced; use another folder");
  }
  if (!manifest.ok() && options_.overwrite) {
    return Conflict(folder, absl::StrCat("holds a damaged manifest (", std::string(manifest.status().message()),
                                        "), so that its shards may not be made by pack; remove the folder by hand, or "
                                        "use another one"));
  }
  return absl::OkStatus();
}

// Without a plan nothing has been built here: whatever there is, is somebody else's. The folder is listed first, for
// another worker may write the plan just now, and then shards.
absl::Status OutputDir::CheckHoldsNothingElse() const {
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(path_);
  if (!names.ok()) return names.status();
  const absl::StatusOr<bool> planned = Exists(PathOf(".pack/plan"));
  if (!planned.ok() || *planned) return planned.status();
  for (const std::string& name : *names) {
    if (name == ".pack") continue;
    return Conflict(path_, absl::StrCat("is not empty and holds no dataset of pack (first entry: ",
                                        EscapeForTerminal(name), "); use another folder"));
  }
  return absl::OkStatus();
}

// With --overwrite: from here on the dataset is built beside OUT.
absl::Status OutputDir::BeginReplacement() {
  // A link to a dataset stays one: its target is replaced.
  std::error_code error;
  out_ = path_ = std::filesystem::canonical(path_, error).native();
  if (error) return IoStatus("look at", path_, error.value());
  absl::Status status;
  const absl::StatusOr<bool> begun = Exists(PathOf(".pack")), published = Exists(PathOf(std::string(kManifestName)));
  if (!begun.ok()) return begun.status();
  if (!published.ok()) return published.status();
  if (*begun) {  // never replaced while another run works in it
    status = Lock();
    if (status.ok()) status = CheckIsOurs(path_);
    if (!status.ok()) return status;
  }
  // A whole dataset of ours has no plan any more.
  if (!*published) status = CheckHoldsNothingElse();
  absl::StatusOr<std::set<std::string>> made = MadeFiles(path_);
  if (status.ok()) status = made.status();
  if (status.ok()) {
    status = CheckHoldsOnly(path_, *made, "--overwrite would remove it. Move it away, or use another folder");
  }
  if (!status.ok()) return status;
  path_ = out_ + kOverwriteSuffix;
  status = MakeDirectory(path_);
  return status.ok() ? CheckIsOurs(path_) : status;
}

absl::Status OutputDir::BeginFolder() {
  absl::Status status = CheckHoldsNothingElse();
  if (status.ok()) status = MakeDirectory(PathOf(".pack"));
  if (status.ok() && !options_.shards_range) status = Lock();
  if (status.ok()) status = CheckIsOurs(path_);  // again: another run may have been first
  if (status.ok()) status = CheckHoldsNothingElse();
  return status.ok() ? MakeDirectory(PathOf(".pack/stage")) : status;
}

absl::Status OutputDir::BeginStage(const Plan& plan) {
  absl::StatusOr<OwnedFolder> folder = OwnedFolder::Open(path_);
  if (!folder.ok()) return folder.status();
  folder_ = std::make_unique<OwnedFolder>(*std::move(folder));
  absl::StatusOr<std::unique_ptr<RunStage>> stage = RunStage::Create(path_);
  if (!stage.ok()) return stage.status();
  stage_ = *std::move(stage);
  if (path_ != out_ || !PublishedByOther(plan)) return absl::OkStatus();
  // The folders were made again behind a commit's back: they go as far as they are empty.
  stage_.reset();
  (void)folder_->RemoveEmptyFolder(".pack/stage");
  (void)folder_->RemoveEmptyFolder(".pack");
  return Conflict(path_, "was published by another run just now");
}

absl::Status OutputDir::Lock() {
  absl::StatusOr<File> lock = LockPackFolder(path_);
  if (lock.ok()) lock_ = *std::move(lock);
  return lock.status();
}

// The file appears whole, and once: another run's file of that name stays.
absl::Status OutputDir::PublishOnce(const std::string& name, std::string_view bytes) const {
  absl::StatusOr<std::unique_ptr<StagedFile>> staged = Stage("of-the-run");
  if (!staged.ok()) return staged.status();
  absl::Status status = (*staged)->Append(AsBytes(bytes));
  if (status.ok()) status = options_.fsync ? (*staged)->SyncData() : (*staged)->Flush();
  if (status.ok()) status = (*staged)->Publish(PathOf(name));
  return status;
}

absl::Status OutputDir::AdoptPlan(const Plan& plan, std::optional<Plan>* was) {
  const std::string path = PathOf(".pack/plan");
  absl::Status made = PublishOnce(std::string(kMadeName), MadeNames(plan));
  if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  absl::StatusOr<std::string> bytes = ReadWholeFile(path, kMaxPlanBytes);
  if (absl::IsNotFound(bytes.status())) {
    absl::Status status = PublishOnce(".pack/plan", plan.ToBytes());
    if (status.ok() && options_.fsync) status = SyncDirectory(PathOf(".pack"));
    if (!absl::IsAlreadyExists(status)) return status;
    bytes = ReadWholeFile(path, kMaxPlanBytes);  // another worker was first
  }
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<Plan> read = Plan::FromBytes(*bytes, [&plan](std::string_view name) {
    return name == plan.format().name ? &plan.format() : nullptr;
  });
  if (!read.ok()) {
    return Conflict(path_, absl::StrCat("holds an unfinished build that cannot be resumed: ",
                                        std::string(read.status().message()),
                                        "; use another folder or --overwrite"));
  }
  if (read->digest() != plan.digest()) return PlanDiffers(path_, Plan::Differences(*read, plan));
  *was = *std::move(read);
  return absl::OkStatus();
}

// Sizes are part of the digest; a file rewritten with the same size shows in its mtime. What is already packed was
// proven against the bytes of its time, so only shards still to build matter.
absl::Status OutputDir::CheckFreshness(const Plan& was, const Plan& now) const {
  std::set<uint32_t> done;
  for (const ShardResult& result : finished_) done.insert(result.shard);
  const auto [begin, end] = options_.shards_range.value_or(std::pair<size_t, size_t>(0, now.shards().size()));
  for (size_t n = begin; n < end; ++n) {
    if (done.count(static_cast<uint32_t>(n)) > 0) continue;
    const PlannedShard& shard = now.shards()[n];
    for (uint64_t p = shard.first; p < shard.first + shard.count; ++p) {
      const uint32_t row = now.row(p);
      if (was.listing().mtime_ns[row] != now.listing().mtime_ns[row] || FieldsChanged(was.listing(), now.listing(), row)) {
        return Conflict(now.listing().Path(row),
                        "was changed since the interrupted run began; use --overwrite or another folder");
      }
    }
  }
  return absl::OkStatus();
}

// What no line vouches for is built again, and takes the place of what is there when it is published.
absl::Status OutputDir::FindFinished(const Plan& plan, IoPool& pool) {
  absl::StatusOr<std::vector<ShardResult>> lines = ReadJournals(PathOf(".pack"));
  if (!lines.ok()) return lines.status();
  absl::Status status = CheckOnePlan(path_, plan, *lines);
  if (!status.ok()) return status;
  const size_t shards = plan.shards().size();
  const auto [begin, end] = options_.shards_range.value_or(std::pair<size_t, size_t>(0, shards));
  absl::StatusOr<ShardStates> states = LookAtShards(path_, plan, *lines, begin, end, pool);
  if (!states.ok()) return states.status();
  if (options_.only_commit && states->finished.size() < shards) return Unfinished(path_, plan, *states);
  finished_ = std::move(states->finished);
  // What was not there, or not as planned, may be by now: a worker may have had another folder, or an empty mount.
  if (!options_.only_commit) std::erase_if(finished_, LacksWhatMayBeBack);
  for (const ShardResult& line : *lines) {
    if (!FitsPlan(line, plan) || line.shard < begin || line.shard >= end) continue;
    if (line.index.name != IndexName(plan.shards()[line.shard].name)) old_indexes_.insert(line.index.name);
  }
  return absl::OkStatus();
}

// Older versions of pack named an index after the whole name of its shard. Of a build that one of
// them began the index gets today's name, so that the end is that of an uninterrupted build.
absl::Status OutputDir::RenameOldIndex(const std::string& shard, FileEntry& index) const {
  FileEntry named = index;
  named.name = IndexName(shard);
  if (index.name == named.name) return absl::OkStatus();
  absl::StatusOr<bool> same = Matches(PathOf(named.name), named);  // a killed run, or another worker, has done it
  if (!same.ok()) return same.status();
  if (!*same) {
    absl::Status renamed = folder_->Replace(index.name, named.name);
    if (absl::IsNotFound(renamed)) same = Matches(PathOf(named.name), named);
    if (!same.ok()) return same.status();
    if (!renamed.ok() && !*same) return renamed;
  }
  index = std::move(named);
  return absl::OkStatus();
}

absl::Status OutputDir::NameIndexes(const Plan& plan) {
  for (ShardResult& result : finished_) {
    absl::Status renamed = RenameOldIndex(plan.shards()[result.shard].name, result.index);
    if (!renamed.ok()) return renamed;
  }
  // Those that are left are of shards that are built again.
  for (const std::string& name : old_indexes_) {
    absl::Status removed = folder_->RemoveFile(name);
    if (!removed.ok()) return removed;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ShardResult>> OutputDir::FinishedByOther(const Plan& plan, size_t shard) const {
  std::vector<ShardResult> lines;
  {
    const std::lock_guard lock(followed_->mutex);
    absl::StatusOr<std::vector<ShardResult>> read = followed_->reader.ReadNew();
    if (absl::IsNotFound(read.status())) return std::nullopt;  // published: .pack is gone
    if (!read.ok()) return read.status();
    for (ShardResult& line : *read) {
      if (FitsPlan(line, plan) && !LacksWhatMayBeBack(line)) followed_->lines[line.shard].push_back(std::move(line));
    }
    const auto found = followed_->lines.find(static_cast<uint32_t>(shard));
    if (found != followed_->lines.end()) lines = found->second;
  }
  for (ShardResult& line : lines) {
    const absl::StatusOr<bool> file = Matches(PathOf(line.file.name), line.file);
    if (!file.ok()) return file.status();
    const absl::StatusOr<bool> index = Matches(PathOf(line.index.name), line.index);
    if (!index.ok()) return index.status();
    if (*file && *index) return std::optional<ShardResult>(std::move(line));
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
  const auto [begin, end] =
      options_.shards_range.value_or(std::pair<size_t, size_t>(0, plan.shards().size()));
  for (size_t n = begin; n < end; ++n) {
    if (done.count(static_cast<uint32_t>(n)) == 0) needed += plan.shards()[n].bound_bytes;
  }
  struct statvfs facts;
  if (::statvfs(path_.c_str(), &facts) != 0) return IoStatus("look at the free space of", path_, errno);
  const uint64_t free_bytes = static_cast<uint64_t>(facts.f_bavail) * facts.f_frsize;
  if (needed <= free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("not enough space for ", EscapeForTerminal(path_), ": up to ",
                                                   needed, " bytes are needed, ", free_bytes, " are free"));
}

absl::StatusOr<std::unique_ptr<StagedFile>> OutputDir::Stage(const std::string& name) const {
  absl::Status removed = folder_->RemoveFile(stage_->NameOf(name));
  if (!removed.ok()) return removed;
  return StagedFile::Create(stage_->PathOf(name));
}

absl::Status OutputDir::Publish(StagedFile& staged, const FileEntry& entry) const {
  const size_t slash = entry.name.find('/');
  const std::string folder = PathOf(entry.name.substr(0, slash));
  absl::Status status = slash == std::string::npos ? absl::OkStatus() : MakeDirectory(folder);
  if (!status.ok()) return status;
  const std::string staged_name = staged.path().substr(path_.size() + 1);
  status = staged.Publish(PathOf(entry.name));
  if (absl::IsAlreadyExists(status)) {
    const absl::StatusOr<bool> same = Matches(PathOf(entry.name), entry);
    if (!same.ok()) return same.status();
    status = *same ? absl::OkStatus() : folder_->Replace(staged_name, entry.name);
  }
  if (status.ok() && slash != std::string::npos && options_.fsync) status = SyncDirectory(folder);
  return status;
}

absl::StatusOr<FileEntry> OutputDir::WriteFile(const std::string& name, std::string_view bytes) const {
  std::string stage_name = name;
  std::replace(stage_name.begin(), stage_name.end(), '/', '_');
  const FileEntry entry{name, bytes.size(), Xxh3_128(AsBytes(bytes))};
  absl::StatusOr<std::unique_ptr<StagedFile>> staged = Stage(stage_name);
  if (!staged.ok()) return staged.status();
  absl::Status status = (*staged)->Append(AsBytes(bytes));
  if (status.ok() && options_.fsync) status = (*staged)->SyncData();
  if (status.ok()) status = Publish(**staged, entry);
  if (!status.ok()) return status;
  return entry;
}

absl::Status OutputDir::ClaimExtras(const std::vector<std::pair<std::string, std::string_view>>& files) const {
  absl::StatusOr<std::set<std::string>> ours = ReadNames(PathOf(std::string(kMadeExtrasName)));
  if (!ours.ok()) return ours.status();
  std::set<std::string> names = *ours;
  for (const auto& [name, bytes] : files) {
    names.insert(name);
    if (ours->contains(name)) continue;
    const absl::StatusOr<bool> there = Exists(PathOf(name));
    if (!there.ok()) return there.status();
    if (!*there) continue;
    const absl::StatusOr<bool> same =
        Matches(PathOf(name), FileEntry{name, bytes.size(), Xxh3_128(AsBytes(bytes))});
    if (!same.ok()) return same.status();
    if (!*same) return Conflict(PathOf(name), "was not made by pack, which would write it; move it away and run again");
  }
  const std::string staged_name = "extras";
  absl::StatusOr<std::unique_ptr<StagedFile>> staged = Stage(staged_name);
  if (!staged.ok()) return staged.status();
  const std::string text = NamesText(names);
  absl::Status status = (*staged)->Append(AsBytes(text));
  if (status.ok()) status = options_.fsync ? (*staged)->SyncData() : (*staged)->Flush();
  if (status.ok()) status = folder_->Replace(stage_->NameOf(staged_name), kMadeExtrasName);
  return status;
}

absl::Status OutputDir::SyncFolder() const {
  return options_.fsync ? SyncDirectory(path_) : absl::OkStatus();
}

// The new dataset takes the place of the old one, which is removed when nothing can bring it back any more.
absl::Status OutputDir::Exchange() {
  // Much may have happened in OUT since the build began; from here on nobody else works in it.
  absl::Status status = MakeDirectory(out_ + "/.pack");
  if (!status.ok()) return status;
  const absl::StatusOr<File> old_lock = LockPackFolder(out_);
  if (!old_lock.ok()) return old_lock.status();
  status = CheckIsOurs(out_);
  if (!status.ok()) return status;
  absl::StatusOr<std::set<std::string>> made = MadeFiles(out_);
  if (!made.ok()) return made.status();
  status = CheckHoldsOnly(out_, *made, "--overwrite would remove it. Move it away and run again");
  if (!status.ok()) return status;
  absl::StatusOr<FileEntry> noted = WriteFile(std::string(kReplacedName), NamesText(*made));
  if (!noted.ok()) return noted.status();
  if (options_.fsync) status = SyncDirectory(PathOf(".pack"));
  if (!status.ok()) return status;
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, out_.c_str(), RENAME_EXCHANGE) != 0) {
    return IoStatus("exchange with the new dataset", out_, errno);
  }
  std::swap(path_, out_);  // path_: the new dataset, out_: the old one
  const std::string parent = std::filesystem::path(path_).parent_path().native();
  if (options_.fsync) status = SyncDirectory(parent);
  return status.ok() ? FinishReplacement(path_, out_) : status;
}

absl::Status OutputDir::Close() {
  absl::Status status;
  if (path_ != out_) status = Exchange();
  stage_.reset();
  if (status.ok()) status = folder_->RemoveTree(".pack");
  if (status.ok()) status = SyncFolder();
  const std::filesystem::path parent = std::filesystem::absolute(path_).parent_path();
  if (status.ok() && options_.fsync) status = SyncDirectory(parent.string());
  return status;
}

}  // namespace shardpack
