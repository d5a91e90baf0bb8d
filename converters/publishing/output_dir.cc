#include "converters/publishing/output_dir.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "converters/publishing/conflict.h"
#include "converters/publishing/exchange.h"
#include "converters/publishing/index_mark.h"
#include "converters/publishing/live_workers.h"
#include "converters/publishing/pack_folder.h"
#include "converters/publishing/pack_lock.h"
#include "converters/publishing/pack_names.h"
#include "converters/publishing/published.h"
#include "converters/publishing/replacement.h"
#include "converters/publishing/shard_results.h"
#include "formats/core/dataset_parts.h"
#include "formats/core/index_name.h"
#include "formats/io/exists.h"
#include "formats/io/list_folder.h"
#include "formats/io/relative_path.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr char kOverwriteSuffix[] = ".pack-new";

// It is unknown whether this was a dataset or a build.
absl::Status LostManifest(const std::string& out) {
  return absl::DataLossError(absl::StrCat(
      EscapeForTerminal(out),
      " holds shards and indexes of pack, but neither a build that can be resumed (.pack) nor a "
      "manifest.json. If the build never finished, remove the folder by hand and build again. If "
      "its manifest.json is lost, restore it from a copy of the dataset (the same command makes "
      "one in another folder):\n  ",
      TypedProgram(), " repair ", ShellQuoted(out), " --from COPY"));
}

bool IsUnfinished(const std::string& folder) {
  return Exists(absl::StrCat(WithoutSlashes(folder), "/", std::string(kPlanName))).value_or(false);
}

}  // namespace

absl::Status CheckNamedShards(const Plan& plan, const OutputOptions& options) {
  if (!options.worker) return absl::OkStatus();
  const size_t shards = plan.shards().size();
  for (const auto& [begin, end] : options.worker->ranges) {
    if (begin <= end && end <= shards) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--shards: the plan has shards 0-", shards - 1,
                     begin >= shards ? ", and none from there on"
                                     : absl::StrCat("; the last may be ", shards - 1)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> OutputDir::OpenPlan(const std::string& out,
                                         const Plan::FindFormat& find_format) {
  const absl::StatusOr<PlanFile> file = MapPlan(out + "/.pack/plan");
  if (absl::IsNotFound(file.status())) {
    const absl::StatusOr<std::vector<ShardResult>> lines = ReadJournals(out + "/.pack");
    if (lines.ok() && !lines->empty()) {
      return absl::DataLossError(
          absl::StrCat(EscapeForTerminal(out), " holds ", lines->size(),
                       " finished shards, but its plan (.pack/plan) is lost. With the plan "
                       "file of the workers, what is missing is built and all is published by\n  ",
                       TypedProgram(), " build --plan FILE -o ", ShellQuoted(out)));
    }
    const absl::StatusOr<std::vector<std::string>> names = ListFolder(out);
    if (names.ok() && HasIndex(*names)) return LostManifest(out);
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(out), " holds no unfinished build (no .pack/plan)"));
  }
  if (!file.ok()) return file.status();
  absl::StatusOr<Plan> plan = Plan::Open(*file, find_format);
  return plan.ok() ? std::move(plan) : DamagedPlan(out, plan.status());
}

absl::Status OutputDir::DamagedPlan(const std::string& out, const absl::Status& why) {
  return absl::Status(
      why.code(),
      absl::StrCat(EscapeForTerminal(out + "/.pack/plan"), ": ", std::string(why.message()),
                   ". With the plan file of the workers it is put back, what is "
                   "missing is built, and all is published by\n  ",
                   TypedProgram(), " build --plan FILE -o ", ShellQuoted(out)));
}

absl::Status OutputDir::DamagedManifest(const std::string& out, const absl::Status& why) {
  if (!absl::IsDataLoss(why)) return why;
  const std::string text = absl::StrCat(EscapeForTerminal(out),
                                        " holds a damaged manifest: ", std::string(why.message()));
  // It may well not be ours.
  if (IsUnfinished(out)) {
    return absl::DataLossError(absl::StrCat(
        text, "\nThe build there has not finished; move that file away and run again"));
  }
  return absl::DataLossError(absl::StrCat(text, "\nTo restore it from a copy of the dataset:\n  ",
                                          TypedProgram(), " repair ", ShellQuoted(out),
                                          " --from COPY"));
}

bool OutputDir::HoldsUnfinished(const std::string& out) {
  return IsUnfinished(out) || IsUnfinished(BesideOf(out));
}

std::string OutputDir::BesideOf(const std::string& out) {
  // A link to a dataset stays one: its target is replaced.
  std::error_code error;
  const std::string real = std::filesystem::canonical(out, error).native();
  return (error ? WithoutSlashes(out) : real) + kOverwriteSuffix;
}

absl::StatusOr<std::string> OutputDir::FinishPublished(const std::string& out, bool with_others) {
  const std::string path = WithoutSlashes(out), nothing;
  const absl::StatusOr<bool> pack = Exists(path + "/.pack");
  if (!pack.ok()) return pack.status();
  if (!*pack) return nothing;
  const absl::StatusOr<bool> indexed = Exists(absl::StrCat(path, "/", std::string(kIndexMark)));
  if (!indexed.ok()) return indexed.status();
  if (*indexed) return nothing;
  RETURN_IF_ERROR(CheckPackFolder(path));
  {
    ASSIGN_OR_RETURN(const OwnedFolder looked_at, OwnedFolder::Open(path));
    ASSIGN_OR_RETURN(const PackEntries entries, ListPackFolder(looked_at));
    if (!entries.AnyOfPack() && !entries.others.empty()) return nothing;
  }
  const absl::StatusOr<File> lock = LockPackFolder(path, /*needed=*/!with_others);
  if (!lock.ok()) {
    if (with_others && absl::IsFailedPrecondition(lock.status())) return nothing;
    if (Exists(path + "/.pack").value_or(true)) return lock.status();
    return nothing;  // another run has just done it
  }
  ASSIGN_OR_RETURN(const bool replaced, IsReplacement(path));
  std::string notice;
  if (replaced) {
    std::error_code error;
    const std::string real = std::filesystem::canonical(path, error).native();
    if (error) return IoStatus("look at", path, error.value());
    ASSIGN_OR_RETURN(const bool gone, FinishReplacement(path, real + kOverwriteSuffix));
    if (!gone) notice = NotTheReplaced(real + kOverwriteSuffix);
  }
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(path));
  RETURN_IF_ERROR(RemovePackFolder(folder));
  return notice;
}

// A complete dataset has no shards to look at.
const std::vector<ShardResult>& OutputDir::finished() const {
  static const auto& none = *new std::vector<ShardResult>();
  return finished_ == nullptr ? none : finished_->results();
}

absl::StatusOr<OutputDir> OutputDir::Open(const std::string& out, const Plan& plan,
                                          const OutputOptions& options, IoPool& pool) {
  RETURN_IF_ERROR(CheckNamedShards(plan, options));
  absl::StatusOr<OutputDir> dir = OpenOnce(out, plan, options, pool);
  if (dir.ok() || options.overwrite) return dir;
  // Another run may have published the dataset in the meantime, and removed its `.pack`.
  const absl::StatusOr<Manifest> manifest = Manifest::Read(WithoutSlashes(out));
  if (!manifest.ok() || manifest->plan_digest != plan.digest()) return dir;
  return OpenOnce(out, plan, options, pool);
}

absl::StatusOr<OutputDir> OutputDir::OpenOnce(const std::string& out, const Plan& plan,
                                              const OutputOptions& options, IoPool& pool) {
  OutputDir dir;
  dir.out_ = dir.path_ = WithoutSlashes(out);
  dir.options_ = options;
  dir.plan_ = plan.digest();
  absl::Status status = dir.Create();
  if (status.ok()) status = dir.CheckIsOurs(dir.path_);
  if (!status.ok()) return status;

  ASSIGN_OR_RETURN(const bool published, Exists(dir.PathOf(kManifestName)));
  if (published) {
    // First finish a run that was killed after it exchanged the datasets.
    ASSIGN_OR_RETURN(const bool exchanged, IsReplacement(dir.path_));
    const absl::StatusOr<Manifest> manifest = Manifest::Read(dir.path_);
    if (!manifest.ok() && !options.overwrite) return DamagedManifest(dir.path_, manifest.status());
    const bool of_plan = manifest.ok() && manifest->plan_digest == plan.digest();
    const bool finished = of_plan && (exchanged || !options.overwrite);
    // A late worker leaves that to the commit, which may be running now.
    if (exchanged || (finished && !options.worker)) {
      ASSIGN_OR_RETURN(dir.notice_, FinishPublished(dir.path_));
    }
    if (!options.overwrite || finished) {
      status = dir.CheckPublished(plan, *manifest, pool);
      if (!status.ok()) return status;
      dir.complete_ = true;
      return dir;
    }
  }
  ASSIGN_OR_RETURN(const bool begun, Exists(dir.PathOf(kPackFolder)));
  if (options.overwrite && (published || begun)) {
    status = dir.BeginReplacement();
    if (!status.ok()) return status;
  }
  if (options.only_commit) status = dir.BeginCommit(plan, pool);
  if (status.ok()) status = dir.BeginFolder();
  if (status.ok() && dir.replaces()) status = dir.DiscardOtherPlan(plan);
  if (status.ok()) status = dir.BeginStage(plan);
  if (status.ok()) dir.SetWanted(plan.shards().size());
  if (status.ok() && dir.replaces())
    status = dir.ReplaceInPack(kReplacesName, ReplacesText(dir.out_));
  if (status.ok()) status = dir.BeginPlan(plan, pool);
  if (status.ok()) status = dir.CheckFreeSpace(plan);
  if (!status.ok()) return status;

  const std::string journal_name =
      options.worker ? WorkersJournal(dir.stage_->owner()) : std::string(kJournalName);
  ASSIGN_OR_RETURN(dir.journal_, Journal::Open(dir.PathOf(journal_name), options.fsync));
  dir.finished_->others().Follow(std::string(NameInFolder(journal_name)), dir.wanted_,
                                 dir.finished());
  if (options.shares()) RETURN_IF_ERROR(dir.BeginSharing(plan));
  return dir;
}

// An existing dataset is accepted only if it is of this plan, intact as far as a quick check shows,
// and no source file was changed.
absl::Status OutputDir::CheckPublished(const Plan& plan, const Manifest& manifest, IoPool& pool) {
  if (manifest.plan_digest != plan.digest()) {
    std::vector<std::string> lines = DifferencesFrom(path_, manifest, plan);
    if (manifest.listing_digest != plan.listing_digest()) {
      lines.push_back(
          "names, sizes and classes of the inputs are part of the plan: all inputs are packed "
          "again, not those alone that have changed (pack repair puts back what was packed, and "
          "--compare answers for other times alone)");
    }
    return OrOverwrite(PlanDiffers(path_, lines), options_);
  }
  RETURN_IF_ERROR(CheckPublishedFiles(path_, manifest));
  if (options_.compare) return absl::OkStatus();  // the caller reads the source
  return CheckSource(path_, manifest, plan, options_, pool);
}

absl::Status OutputDir::Create() {
  struct stat facts;
  if (::stat(out_.c_str(), &facts) == 0) {
    if (S_ISDIR(facts.st_mode)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the output ", EscapeForTerminal(out_), " is a file; it must be a folder"));
  }
  if (errno != ENOENT && errno != ENOTDIR) return IoStatus("look at", out_, errno);
  // Another run may have made the folder meanwhile.
  if (::lstat(out_.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the output ", EscapeForTerminal(out_), " is a dangling link"));
  }
  std::error_code error;
  std::filesystem::create_directories(out_, error);
  if (error) return IoStatus("create folder", out_, error.value());
  return absl::OkStatus();
}

// What pack has not built is never built over, replaced or removed: it may be the only copy, and
// impossible to make again.
absl::Status OutputDir::CheckIsOurs(const std::string& folder) const {
  RETURN_IF_ERROR(CheckPackFolder(folder));
  RETURN_IF_ERROR(CheckNotIndexed(folder));
  const absl::StatusOr<bool> published =
      Exists(absl::StrCat(folder, "/", std::string(kManifestName)));
  if (!published.ok() || !*published) return published.status();
  const absl::StatusOr<Manifest> manifest = Manifest::Read(folder);
  if (manifest.ok() && manifest->indexed_in_place()) {
    return Conflict(folder,
                    "holds shards that pack index has indexed in place, which are never replaced; "
                    "use another folder");
  }
  if (!manifest.ok() && options_.overwrite) {
    const absl::Status damaged = DamagedManifest(folder, manifest.status());
    if (!absl::IsDataLoss(damaged) || IsUnfinished(folder)) return damaged;
    return absl::DataLossError(
        absl::StrCat(std::string(damaged.message()),
                     "\nWithout one nobody knows whether pack made its shards; remove the folder "
                     "by hand, or use another one"));
  }
  return absl::OkStatus();
}

// Without a plan nothing has been built here, so any content belongs to others. Lists the folder
// first, because another worker may be writing the plan now, and shards after it.
absl::Status OutputDir::CheckHoldsNothingElse() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(path_));
  const absl::StatusOr<bool> planned = Exists(PathOf(kPlanName));
  if (!planned.ok() || *planned) return planned.status();
  // A build whose plan is lost still has a list of the files it made.
  ASSIGN_OR_RETURN(std::set<std::string> made, NotedFiles(path_));
  ASSIGN_OR_RETURN(std::set<std::string> may_be_made, ReadNames(PathOf(kMadeName)));
  made.merge(std::move(may_be_made));      // Publish checks what such a file is
  made.erase(std::string(kManifestName));  // a dataset is never built over
  std::set<std::string> ours = {std::string(kPackFolder)};
  for (const std::string& name : made) ours.insert(name.substr(0, name.find('/')));
  for (const std::string& name : names) {
    if (ours.contains(name)) continue;
    if (std::find(names.begin(), names.end(), kManifestName) != names.end())
      return Conflict(path_, "holds a dataset already; move it away, or use another folder");
    if (HasIndex(names)) return LostManifest(path_);
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
  for (const std::string& path : {out_, out_ + kOverwriteSuffix}) {
    RETURN_IF_ERROR(CheckNotMounted(path));
  }
  absl::Status status;
  const absl::StatusOr<bool> begun = Exists(PathOf(kPackFolder)),
                             published = Exists(PathOf(kManifestName));
  if (!begun.ok()) return begun.status();
  if (!published.ok()) return published.status();
  if (*begun) {  // never replaced while another run works in it
    status = Lock();
    if (status.ok()) status = CheckIsOurs(path_);
    if (status.ok()) status = CheckNoLiveWorkers(path_, options_.stop);
    if (!status.ok()) return status;
  }
  // An intact dataset of ours has no plan any more.
  if (!*published) status = CheckHoldsNothingElse();
  absl::StatusOr<std::set<std::string>> made = MadeFiles(path_);
  if (status.ok()) status = made.status();
  if (status.ok()) {
    status = CheckHoldsOnly(path_, *made,
                            "--overwrite would remove it. Move it away, or use another folder");
  }
  if (!status.ok()) return status;
  path_ = out_ + kOverwriteSuffix;
  return CheckBeside();
}

// Beside OUT there may be anything, even another dataset or build made by pack: only a folder that
// bears the mark of an --overwrite of this OUT is continued or rebuilt.
absl::Status OutputDir::CheckBeside() const {
  struct stat facts;
  if (::lstat(path_.c_str(), &facts) != 0)
    return errno == ENOENT ? absl::OkStatus() : IoStatus("look at", path_, errno);
  const std::string advice = "move it away, or use another folder";
  if (!S_ISDIR(facts.st_mode)) {
    return Conflict(path_, absl::StrCat("is a link or a file, where --overwrite builds what is to "
                                        "take the place of ",
                                        EscapeForTerminal(out_), "; ", advice));
  }
  RETURN_IF_ERROR(CheckIsOurs(path_));
  const absl::StatusOr<std::string> replaces = ReadWholeFile(PathOf(kReplacesName), kMaxNamesBytes);
  if (!replaces.ok() && !absl::IsNotFound(replaces.status())) return replaces.status();
  if (replaces.ok() && *replaces == ReplacesText(out_)) return absl::OkStatus();
  // All that remains of a run killed before it wrote its mark.
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListFolder(path_));
  std::erase(names, kPackFolder);
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(path_));
  ASSIGN_OR_RETURN(const PackEntries entries, ListPackFolder(folder));
  for (const std::string& name : entries.Unfinished()) names.push_back(name);
  names.insert(names.end(), entries.others.begin(), entries.others.end());
  if (names.empty()) return absl::OkStatus();
  return Conflict(path_,
                  absl::StrCat("was not begun by --overwrite of ", EscapeForTerminal(out_),
                               " (first entry: ", EscapeForTerminal(names.front()), "); ", advice));
}

// For an --overwrite that is refused after all: nothing was built here yet.
void OutputDir::RemoveUnused() const {
  const absl::StatusOr<OwnedFolder> folder = OwnedFolder::Open(path_);
  const absl::StatusOr<std::vector<std::string>> names = ListFolder(path_);
  if (!folder.ok() || !names.ok() || *names != std::vector<std::string>{std::string(kPackFolder)})
    return;
  const absl::StatusOr<PackEntries> entries = ListPackFolder(*folder);
  if (!entries.ok() || !entries->others.empty() || !entries->Unfinished().empty()) return;
  if (RemovePackFolder(*folder).ok()) ::rmdir(path_.c_str());  // an error leaves an empty folder
}

// Several commits may run at once: they make the same files. Only a run that works alone in the
// folder keeps them out. A refused commit changes nothing.
absl::Status OutputDir::BeginCommit(const Plan& plan, IoPool& pool) {
  RETURN_IF_ERROR(OpenFolder());
  ASSIGN_OR_RETURN(SharedPackFolder shared, SharePackFolder(path_));
  absl::Status found = FindFinished(plan, FinishedShards::Past{}, pool);
  if (found.ok()) {
    lock_ = std::move(shared.file);
  } else {
    UndoSharing(path_, std::move(shared));
  }
  return found;
}

absl::Status OutputDir::BeginFolder() {
  absl::Status status = replaces() ? MakeDirectory(path_) : absl::OkStatus();
  if (status.ok()) status = CheckHoldsNothingElse();
  if (status.ok()) status = MakeDirectory(PathOf(kPackFolder));
  if (status.ok() && !options_.worker && !options_.only_commit) status = Lock();
  // Check again: another run may have been first.
  if (status.ok()) status = replaces() ? CheckBeside() : CheckIsOurs(path_);
  if (status.ok()) status = CheckHoldsNothingElse();
  if (status.ok()) status = MakeDirectory(PathOf(kStageFolder));
  if (!status.ok() || !replaces()) return status;
  ASSIGN_OR_RETURN(const OwnedFolder beside, OwnedFolder::Open(path_));
  status = TryExchange(beside, out_);
  if (!status.ok()) RemoveUnused();
  return status;
}

absl::Status OutputDir::OpenFolder() {
  ASSIGN_OR_RETURN(OwnedFolder folder, OwnedFolder::Open(path_));
  folder_ = std::make_unique<OwnedFolder>(std::move(folder));
  replaceable_ = std::make_unique<ReplaceableFiles>(path_);
  return absl::OkStatus();
}

absl::Status OutputDir::BeginStage(const Plan& plan) {
  if (folder_ == nullptr) RETURN_IF_ERROR(OpenFolder());
  ASSIGN_OR_RETURN(std::unique_ptr<RunStage> stage, RunStage::Create(path_));
  stage_ = std::move(stage);
  if (options_.shares()) {
    const absl::Status fit = stage_->TestFileSystem(
        "several workers cannot build in it safely. One process can (the same command without "
        "--worker, --join, --shards); or name a folder on another file system");
    if (!fit.ok()) {
      stage_.reset();
      RemoveUnused();
      return fit;
    }
  }
  if (path_ != out_ || !PublishedByOther(plan)) return absl::OkStatus();
  // The folders were created again during a commit: remove them if they are empty.
  stage_.reset();
  (void)folder_->RemoveEmptyFolder(kStageFolder);
  (void)folder_->RemoveEmptyFolder(kPackFolder);
  return Conflict(path_, "was published by another run just now");
}

// A worker that joins the others begins at a place of its own, so that they seldom want the same.
void OutputDir::SetWanted(size_t shards) {
  wanted_.clear();
  std::vector<bool> taken(shards, false);
  const auto add = [&](size_t n) {
    if (taken[n]) return;
    taken[n] = true;
    wanted_.push_back(static_cast<uint32_t>(n));
  };
  const WorkerOptions all{.ranges = {{0, shards}}};
  const WorkerOptions& worker = options_.worker ? *options_.worker : all;
  for (const auto& [begin, end] : worker.ranges) {
    for (size_t n = begin; n < end; ++n) add(n);
  }
  if (!worker.join || shards == 0) return;
  const size_t first = Xxh3_64(AsBytes(stage_->owner())) % shards;
  for (size_t i = 0; i < shards; ++i) add((first + i) % shards);
}

absl::Status OutputDir::FindFinished(const Plan& plan, const FinishedShards::Past& past,
                                     IoPool& pool) {
  finished_ = std::make_unique<FinishedShards>(plan, options_, *folder_, *replaceable_, wanted_);
  return finished_->Find(past, pool);
}

absl::Status OutputDir::BeginPlan(const Plan& plan, IoPool& pool) {
  published_plan_ = std::make_unique<PublishedPlan>(plan, options_, *stage_, *folder_);
  ASSIGN_OR_RETURN(const std::optional<Plan> was, published_plan_->Publish());
  if (!options_.only_commit) {
    // Beside OUT, a manifest is that of a run killed before the exchange.
    RETURN_IF_ERROR(FindFinished(plan,
                                 {.plan = was ? &*was : nullptr,
                                  .plan_was_lost = published_plan_->was_lost(),
                                  .manifest_is_theirs = replaces() && PublishedByOther(plan)},
                                 pool));
  }
  // --overwrite takes the files as they are.
  if (was && !replaces())
    RETURN_IF_ERROR(published_plan_->CheckFreshness(*was, wanted_, *finished_));
  if (was) RETURN_IF_ERROR(published_plan_->Renew(*was, *finished_));
  return finished_->NameIndexes();
}

absl::Status OutputDir::BeginSharing(const Plan& plan) {
  ASSIGN_OR_RETURN(claims_,
                   ShardClaims::Create(path_, *stage_, *options_.worker, plan.shards().size()));
  return absl::OkStatus();
}

absl::Status OutputDir::Lock() {
  absl::StatusOr<File> lock = LockPackFolder(path_);
  if (lock.ok()) lock_ = *std::move(lock);
  return lock.status();
}

// With --overwrite, this run cannot use what an earlier run began beside OUT with another plan.
absl::Status OutputDir::DiscardOtherPlan(const Plan& plan) {
  const absl::StatusOr<PlanFile> file = MapPlan(PathOf(kPlanName));
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  if (!file.ok()) return file.status();
  const absl::StatusOr<Plan> was = Plan::Open(*file, [&](std::string_view name) {
    return name == plan.format().name ? &plan.format() : nullptr;
  });
  if (was.ok() && was->digest() == plan.digest()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::set<std::string> made, MadeFiles(path_));
  absl::Status status = CheckHoldsOnly(
      path_, made, "an earlier run with --overwrite began this folder; move it away and run again");
  ASSIGN_OR_RETURN(const OwnedFolder folder, OwnedFolder::Open(path_));
  if (status.ok()) status = RemoveMade(folder, made);
  // The plan's notes list what the stages hold.
  if (status.ok()) status = RemoveStage(folder);
  if (status.ok()) status = MakeDirectory(PathOf(kStageFolder));
  ASSIGN_OR_RETURN(const PackEntries entries, ListPackFolder(folder));
  // The plan is removed last: as long as it exists, the next run does the same.
  for (const std::string& name : entries.files) {
    if (status.ok() && name.starts_with(".pack/journal")) status = folder.RemoveFile(name);
  }
  for (const std::string_view name : {kMadeName, kMadeExtrasName, kPlanName}) {
    if (status.ok()) status = folder.RemoveFile(name);
  }
  return status;
}

bool OutputDir::PublishedByOther(const Plan& plan) const {
  const absl::StatusOr<Manifest> manifest = Manifest::Read(path_);
  return manifest.ok() && manifest->plan_digest == plan.digest();
}

absl::Status OutputDir::CheckFreeSpace(const Plan& plan) const {
  uint64_t needed = 0;
  std::set<uint32_t> done;
  for (const ShardResult& result : finished()) done.insert(result.shard);
  for (const uint32_t n : wanted_) {
    if (done.count(n) == 0) needed += plan.shards()[n].bound_bytes;
  }
  needed += published_plan_->bytes_to_copy();
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
