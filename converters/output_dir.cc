#include "converters/output_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <set>
#include <span>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/pack_lock.h"
#include "converters/plan_differences.h"
#include "formats/core/index_name.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/staged_file.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxPlanBytes = uint64_t{64} << 30;
constexpr char kOverwriteSuffix[] = ".pack-new";

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return IoStatus("list", path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

bool Exists(const std::string& path) {
  struct stat facts;
  return ::lstat(path.c_str(), &facts) == 0;
}

absl::Status Conflict(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(EscapeForTerminal(path), " ", why));
}

absl::Status PlanDiffers(const std::string& out, const std::vector<std::string>& differences) {
  return Conflict(out, absl::StrCat("was made with another plan:\n  ", absl::StrJoin(differences, "\n  "),
                                    "\nUse another folder, the same options, or --overwrite."));
}

// Hashes a file; false when it is not what the entry says.
absl::StatusOr<bool> Matches(const std::string& path, const FileEntry& entry) {
  absl::StatusOr<File> file = File::OpenRead(path);
  if (absl::IsNotFound(file.status())) return false;
  if (!file.ok()) return file.status();
  absl::StatusOr<uint64_t> size = file->Size();
  if (!size.ok()) return size.status();
  if (*size != entry.bytes) return false;
  absl::StatusOr<Digest> digest = SequentialReader(*file, *size).Finish();
  if (!digest.ok()) return digest.status();
  return *digest == entry.xxh3_128;
}

// Older versions of pack named an index after the whole name of its shard. Of a build that one of
// them began the index gets today's name, so that the end is that of an uninterrupted build.
absl::Status RenameOldIndex(const std::string& folder, const std::string& shard, FileEntry& index) {
  const std::string name = IndexName(shard);
  if (index.name == name || index.name != LongIndexName(shard)) return absl::OkStatus();
  absl::Status renamed = RenameNoReplace(absl::StrCat(folder, "/", index.name), absl::StrCat(folder, "/", name));
  if (!renamed.ok() && !absl::IsNotFound(renamed)) return renamed;  // not found: an earlier run has done it
  index.name = name;
  return absl::OkStatus();
}

bool FieldsChanged(const Listing& was, const Listing& now, uint64_t row) {
  const auto times = [&](const Listing& listing) {
    const size_t fields = listing.field_mtime_ns.empty() ? 0 : listing.fields.size();
    return std::span(listing.field_mtime_ns).subspan(fields * row, fields);
  };
  const auto before = times(was), after = times(now);
  return !std::equal(before.begin(), before.end(), after.begin(), after.end());
}

}  // namespace

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

absl::StatusOr<OutputDir> OutputDir::Open(const std::string& out, const Plan& plan,
                                          const OutputOptions& options, IoPool& pool) {
  if (absl::Status range = CheckShardsRange(plan, options); !range.ok()) return range;
  OutputDir dir;
  dir.out_ = out;
  while (dir.out_.size() > 1 && dir.out_.back() == '/') dir.out_.pop_back();
  dir.path_ = dir.out_;
  dir.options_ = options;
  absl::Status status = dir.Create();
  if (status.ok()) status = dir.CheckIsOurs();
  if (!status.ok()) return status;

  if (Exists(dir.PathOf(std::string(kManifestName)))) {
    absl::StatusOr<Manifest> manifest = Manifest::Read(dir.path_);
    if (!options.overwrite) {
      if (!manifest.ok()) {
        return Conflict(dir.path_, absl::StrCat("holds a damaged manifest: ",
                                                std::string(manifest.status().message())));
      }
      if (manifest->plan_digest != plan.digest()) {
        std::vector<std::string> lines = OptionDifferences(manifest->options, plan.options().ToMap());
        if (manifest->format != plan.format().name) {
          lines.push_back(absl::StrCat("--format was ", manifest->format, ", is ",
                                       std::string(plan.format().name)));
        }
        if (manifest->listing_digest != plan.listing().ComputeDigest()) {
          lines.push_back(absl::StrCat("the source's files differ (", manifest->source_files, " were packed, ",
                                       plan.listing().rows(), " are listed)"));
        }
        if (lines.empty()) lines.push_back("made by another version of pack");
        return PlanDiffers(dir.path_, lines);
      }
      if (Exists(dir.PackFolder())) {
        status = dir.Lock();
        if (status.ok()) status = RemoveTree(dir.PackFolder());
        if (!status.ok()) return status;
      }
      dir.complete_ = true;
      return dir;
    }
  }
  if (options.overwrite && (Exists(dir.PathOf(std::string(kManifestName))) || Exists(dir.PackFolder()))) {
    status = dir.BeginReplacement();
    if (!status.ok()) return status;
  }
  status = dir.BeginFolder();
  if (!status.ok()) return status;

  bool had_plan = false;
  status = dir.AdoptPlan(plan, &had_plan);
  if (status.ok() && had_plan) status = dir.KeepFinished(plan, pool);
  if (status.ok()) status = dir.CheckFreeSpace(plan);
  if (!status.ok()) return status;

  const std::string journal_name =
      options.shards_range ? absl::StrCat("/journal-", options.shards_range->first, "-",
                                          options.shards_range->second, ".jsonl")
                           : "/journal.jsonl";
  absl::StatusOr<std::unique_ptr<Journal>> journal =
      Journal::Open(dir.PackFolder() + journal_name, options.fsync);
  if (!journal.ok()) return journal.status();
  dir.journal_ = *std::move(journal);
  return dir;
}

absl::Status OutputDir::Create() {
  struct stat facts;
  if (::stat(out_.c_str(), &facts) == 0) {
    if (S_ISDIR(facts.st_mode)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the output ", EscapeForTerminal(out_), " is a file; it must be a folder"));
  }
  if (errno != ENOENT && errno != ENOTDIR) return IoStatus("look at", out_, errno);
  if (Exists(out_)) {
    return absl::InvalidArgumentError(absl::StrCat("the output ", EscapeForTerminal(out_), " is a dangling link"));
  }
  std::error_code error;
  std::filesystem::create_directories(out_, error);
  if (error) return IoStatus("create folder", out_, error.value());
  return absl::OkStatus();
}

// What pack has not built is never built over, replaced or removed: it may be the only copy, and nobody could make it
// again.
absl::Status OutputDir::CheckIsOurs() const {
  absl::Status status = CheckPackFolder(path_);
  if (!status.ok()) return status;
  if (Exists(PathOf(std::string(kIndexMark)))) {
    return Conflict(path_, "holds shards that pack index works on, or has not finished with; run pack index there "
                           "again, or use another folder");
  }
  if (!Exists(PathOf(std::string(kManifestName)))) return absl::OkStatus();
  const absl::StatusOr<Manifest> manifest = Manifest::Read(path_);
  if (manifest.ok() && manifest->adopted()) {
    return Conflict(path_, "holds shards that pack index has indexed in place, which are never replaced; use another folder");
  }
  if (!manifest.ok() && options_.overwrite) {
    return Conflict(path_, absl::StrCat("holds a damaged manifest (", std::string(manifest.status().message()),
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
  if (Exists(PackFolder() + "/plan")) return absl::OkStatus();
  for (const std::string& name : *names) {
    if (name == ".pack") continue;
    return Conflict(path_, absl::StrCat("is not empty and holds no dataset of pack (first entry: ",
                                        EscapeForTerminal(name), "); use another folder"));
  }
  return absl::OkStatus();
}

// With --overwrite: from here on the dataset is built beside OUT.
absl::Status OutputDir::BeginReplacement() {
  absl::Status status;
  if (Exists(PackFolder())) {  // never replaced while another run works in it
    status = Lock();
    if (status.ok()) status = CheckIsOurs();
    if (!status.ok()) return status;
  }
  // A whole dataset of ours has no plan any more.
  if (!Exists(PathOf(std::string(kManifestName)))) status = CheckHoldsNothingElse();
  if (!status.ok()) return status;
  path_ = out_ + kOverwriteSuffix;
  status = MakeDirectory(path_);
  return status.ok() ? CheckIsOurs() : status;
}

absl::Status OutputDir::BeginFolder() {
  absl::Status status = CheckHoldsNothingElse();
  if (status.ok()) status = MakeDirectory(PackFolder());
  if (status.ok() && !options_.shards_range) status = Lock();
  if (status.ok()) status = CheckIsOurs();  // again: another run may have been first
  if (status.ok()) status = CheckHoldsNothingElse();
  return status.ok() ? MakeDirectory(PackFolder() + "/stage") : status;
}

absl::Status OutputDir::Lock() {
  absl::StatusOr<File> lock = LockPackFolder(path_);
  if (lock.ok()) lock_ = *std::move(lock);
  return lock.status();
}

absl::Status OutputDir::AdoptPlan(const Plan& plan, bool* had_plan) {
  const std::string path = PackFolder() + "/plan";
  absl::StatusOr<std::string> bytes = ReadWholeFile(path, kMaxPlanBytes);
  if (absl::IsNotFound(bytes.status())) {
    // Workers may share a folder over machines, so a process number alone is not unique.
    const std::string temporary =
        options_.shards_range ? absl::StrCat(path, ".", options_.shards_range->first, "-",
                                             options_.shards_range->second)
                              : path + ".new";
    absl::Status status = RemoveFile(temporary);
    if (!status.ok()) return status;
    absl::StatusOr<std::unique_ptr<StagedFile>> staged = StagedFile::Create(temporary);
    if (!staged.ok()) return staged.status();
    const std::string text = plan.ToBytes();
    status = (*staged)->Append(AsBytes(text));
    if (status.ok()) status = options_.fsync ? (*staged)->SyncData() : (*staged)->Flush();
    if (status.ok()) status = (*staged)->Publish(path);
    if (status.ok() && options_.fsync) status = SyncDirectory(PackFolder());
    if (!absl::IsAlreadyExists(status)) return status;
    bytes = ReadWholeFile(path, kMaxPlanBytes);  // another worker was first
  }
  if (!bytes.ok()) return bytes.status();
  *had_plan = true;
  absl::StatusOr<Plan> was = Plan::FromBytes(*bytes, [&plan](std::string_view name) {
    return name == plan.format().name ? &plan.format() : nullptr;
  });
  if (!was.ok()) {
    return Conflict(path_, absl::StrCat("holds an unfinished build that cannot be resumed: ",
                                        std::string(was.status().message()),
                                        "; use another folder or --overwrite"));
  }
  if (was->digest() != plan.digest()) return PlanDiffers(path_, Plan::Differences(*was, plan));
  return CheckFreshness(*was, plan);
}

// Sizes are part of the digest; a file rewritten with the same size shows in its mtime. What is already packed was
// proven against the bytes of its time, so only shards still to build matter.
absl::Status OutputDir::CheckFreshness(const Plan& was, const Plan& now) const {
  absl::StatusOr<std::vector<ShardResult>> results = ReadJournals(PackFolder());
  if (!results.ok()) return results.status();
  std::set<uint32_t> done;
  for (const ShardResult& result : *results) done.insert(result.shard);
  for (uint32_t n = 0; n < now.shards().size(); ++n) {
    if (done.count(n) > 0) continue;
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

absl::Status OutputDir::KeepFinished(const Plan& plan, IoPool& pool) {
  absl::StatusOr<std::vector<ShardResult>> results = ReadJournals(PackFolder());
  if (!results.ok()) return results.status();
  const auto [begin, end] =
      options_.shards_range.value_or(std::pair<size_t, size_t>(0, plan.shards().size()));
  std::vector<ShardResult> candidates;
  std::set<uint32_t> vouched;
  for (ShardResult& result : *results) {
    if (result.shard < begin || result.shard >= end) continue;
    if (result.file.name != plan.DataFile(result.shard)) continue;
    const auto is_row = [&](const Skip& skip) { return skip.row < plan.listing().rows(); };
    if (!std::all_of(result.skips.begin(), result.skips.end(), is_row)) continue;
    absl::Status renamed = RenameOldIndex(path_, plan.shards()[result.shard].name, result.index);
    if (!renamed.ok()) return renamed;
    candidates.push_back(std::move(result));
  }
  std::vector<char> good(candidates.size(), 0);
  std::mutex mutex;
  absl::Status failed;
  pool.ForEach(candidates.size(), [&](size_t i) {
    absl::StatusOr<bool> shard = Matches(PathOf(candidates[i].file.name), candidates[i].file);
    absl::StatusOr<bool> index = Matches(PathOf(candidates[i].index.name), candidates[i].index);
    for (const auto* match : {&shard, &index}) {
      if (match->ok()) continue;
      const std::lock_guard lock(mutex);
      failed = match->status();
    }
    good[i] = shard.ok() && index.ok() && *shard && *index;
  });
  if (!failed.ok()) return failed;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!good[i]) continue;
    vouched.insert(candidates[i].shard);
    finished_.push_back(std::move(candidates[i]));
  }
  // What no journal line vouches for is built again.
  for (size_t n = begin; n < end; ++n) {
    if (vouched.count(static_cast<uint32_t>(n)) > 0) continue;
    const std::string& name = plan.shards()[n].name;
    for (const std::string& file : {name, IndexName(name), LongIndexName(name)}) {
      for (const std::string& path : {PathOf(file), StagePathOf(file)}) {
        absl::Status removed = RemoveTree(path);
        if (!removed.ok()) return removed;
      }
    }
  }
  return absl::OkStatus();
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

absl::Status OutputDir::Publish(StagedFile& staged, const std::string& name) const {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return staged.Publish(PathOf(name));
  const std::string folder = PathOf(name.substr(0, slash));
  absl::Status status = MakeDirectory(folder);
  if (status.ok()) status = staged.Publish(PathOf(name));
  if (status.ok() && options_.fsync) status = SyncDirectory(folder);
  return status;
}

absl::StatusOr<FileEntry> OutputDir::WriteFile(const std::string& name, std::string_view bytes) const {
  std::string stage_name = name;
  std::replace(stage_name.begin(), stage_name.end(), '/', '_');
  const std::string staged_path = StagePathOf(stage_name);
  absl::Status status = RemoveFile(staged_path);
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<StagedFile>> staged = StagedFile::Create(staged_path);
  if (!staged.ok()) return staged.status();
  status = (*staged)->Append(AsBytes(bytes));
  if (status.ok() && options_.fsync) status = (*staged)->SyncData();
  if (status.ok()) status = Publish(**staged, name);
  if (!status.ok()) return status;
  return FileEntry{name, bytes.size(), Xxh3_128(AsBytes(bytes))};
}

absl::Status OutputDir::SyncFolder() const {
  return options_.fsync ? SyncDirectory(path_) : absl::OkStatus();
}

absl::Status OutputDir::Close() {
  absl::Status status;
  if (path_ != out_) {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, out_.c_str(), RENAME_EXCHANGE) != 0) {
      return IoStatus("exchange with the new dataset", out_, errno);
    }
    status = RemoveTree(path_);  // now the old dataset
    path_ = out_;
  }
  if (status.ok()) status = RemoveTree(PackFolder());
  if (status.ok()) status = SyncFolder();
  const std::filesystem::path parent = std::filesystem::absolute(out_).parent_path();
  if (status.ok() && options_.fsync) status = SyncDirectory(parent.string());
  return status;
}

}  // namespace shardpack
