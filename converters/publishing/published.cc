#include "converters/publishing/published.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/find_skip.h"
#include "converters/listing/first_few.h"
#include "converters/listing/offered_flags.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/plan_differences.h"
#include "converters/publishing/changed_inputs.h"
#include "converters/publishing/commit.h"
#include "converters/publishing/shard_results.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxLooks = 1000;
constexpr uint64_t kMaxSkippedBytes = uint64_t{4} << 30;
constexpr char kNewPlan[] =
    "\nTo pack it as it is now, make a new plan with pack plan, and build it in another folder.";

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

absl::Status AddRows(const Plan& plan, size_t n, std::vector<uint32_t>& rows) {
  RETURN_IF_ERROR(plan.CheckSlice(n));
  const PlannedShard& shard = plan.shards()[n];
  for (uint64_t p = shard.first; p < shard.first + shard.count; ++p) rows.push_back(plan.row(p));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PublishedAt(const std::string& dataset) {
  const std::string path = PathInDataset(dataset, std::string(kManifestName));
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0) return IoStatus("look at", path, errno);
  return Nanoseconds(facts.st_mtim);
}

using Rows = absl::flat_hash_set<uint64_t>;

// Rows missing from the dataset because their files were not as planned: changes to these files do
// not affect it.
absl::StatusOr<Rows> RowsNotAsPlanned(const std::string& dataset, const Manifest& manifest,
                                      const Plan& plan) {
  const Listing& listing = plan.listing();
  const bool any = std::any_of(manifest.files.begin(), manifest.files.end(),
                               [](const FileEntry& file) { return file.name == kSkippedName; });
  if (!any) return Rows();
  ASSIGN_OR_RETURN(
      const std::string text,
      ReadWholeFile(PathInDataset(dataset, std::string(kSkippedName)), kMaxSkippedBytes));
  absl::flat_hash_set<std::string> paths;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!value.is_object() || !value.value("path", nlohmann::json()).is_string() ||
        !value.value("reason", nlohmann::json()).is_string())
      continue;  // damaged: ignored
    const std::optional<SkipReason> reason =
        ParseSkipReason(value["reason"].get_ref<const std::string&>());
    std::optional<std::string> path = PercentUnescape(value["path"].get_ref<const std::string&>());
    if (reason && path && MayBeBack({0, *reason, ""})) paths.insert(*std::move(path));
  }
  Rows rows;
  if (!paths.empty()) RETURN_IF_ERROR(plan.CheckAllSlices());
  for (uint64_t row = 0; row < listing.rows() && !paths.empty(); ++row) {
    if (paths.contains(listing.Path(row))) rows.insert(row);
  }
  return rows;
}

// The files of a listing, with modification times as listed or as they are now.
class SourceFiles {
 public:
  // `rows`: those to check; null = all. `passed_over`: those to ignore.
  SourceFiles(const Plan& plan, const std::string& root, const std::vector<uint32_t>* rows,
              Rows passed_over = {})
      : plan_(plan),
        listing_(plan.listing()),
        root_(root),
        rows_(rows),
        passed_over_(std::move(passed_over)) {}

  // One stat per file. Finds files written after the dataset, even if they have an older mtime:
  // their ctime cannot be set. `planned`: takes the times from the files, and compares their sizes.
  absl::Status Look(int64_t published, bool planned, IoPool& pool) {
    looked_ = true;
    return ForEachFile(pool, [&](const SourceFile& file, const struct stat* facts) {
      ++files_;
      const bool written = facts == nullptr || std::max(Nanoseconds(facts->st_mtim),
                                                        Nanoseconds(facts->st_ctim)) > published;
      if (written) written_.Add(EscapeForTerminal(file.path));
      if (planned) Compare(file, facts);
    });
  }

  absl::Status CheckPlanned(const std::string& dataset) const {
    if (differing_.count() == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        EscapeForTerminal(dataset), " is whole, but the source ", EscapeForTerminal(root_),
        " is not as planned any more:\n  ", differing_.Text(), kNewPlan));
  }

  // Ok if the shards were built from these files as planned. A missing file says nothing about what
  // was packed.
  absl::Status CheckBuilt(const std::string& out) const {
    if (rewritten_.count() == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(EscapeForTerminal(out), " holds shards that were built before files of ",
                     EscapeForTerminal(root_), " were changed:\n  ", rewritten_.Text(), kNewPlan,
                     "\nOnce all shards are built, what was packed is published by\n  ",
                     TypedProgram(), " commit ", ShellQuoted(out)));
  }

  // Of the listing as planned, with the times of today that differ.
  absl::StatusOr<std::string> Times() const {
    if (changed_.empty()) return plan_.times_digest().ToHex();
    RETURN_IF_ERROR(plan_.CheckAllSlices());
    const uint64_t fields = listing_.field_mtime_ns.empty() ? 0 : listing_.fields.size();
    std::vector<int64_t> times(listing_.mtime_ns.size()), field_times(listing_.rows() * fields);
    for (uint64_t row = 0; row < listing_.rows(); ++row) {
      const uint64_t at = plan_.source_row(row);
      if (!times.empty()) times[at] = Time(row, 0);
      for (size_t f = 0; f < fields; ++f) field_times[at * fields + f] = Time(row, 1 + f);
    }
    return TimesDigest(times, field_times).ToHex();
  }

  bool AnyModifiedAfter(int64_t time) const {
    const int64_t today = std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::system_clock::now().time_since_epoch())
                              .count();
    const auto changed = [&](int64_t each) { return each > time && each <= today; };
    const auto any = [&](std::span<const int64_t> times) {
      return std::any_of(times.begin(), times.end(), changed);
    };
    return any(listing_.mtime_ns) || any(listing_.field_mtime_ns) ||
           std::any_of(changed_.begin(), changed_.end(),
                       [&](const auto& each) { return changed(each.second); });
  }

  // `whole`: images were packed unchanged; `planned`: by a run of a given plan.
  absl::Status Changed(const std::string& dataset, int64_t published, bool whole, bool planned,
                       IoPool& pool) {
    const bool compare = whole && !planned;
    struct stat facts;
    const bool archive = ::stat(root_.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode);
    if (!archive && !looked_) {
      RETURN_IF_ERROR(Look(published, /*planned=*/false, pool));
    }
    std::string what;
    if (archive) {
      what = absl::StrCat(
          "the archive ", EscapeForTerminal(root_),
          " has its members with their names and sizes, but not the time that it had when it was "
          "packed, as a copy that does not keep the time (cp -a and rsync -t keep it)");
    } else if (written_.count() == 0) {
      what =
          "the files of the source have the sizes, but not the times that they had when it was "
          "packed";
    } else if (written_.count() == files_ && files_ > 1) {
      what = absl::StrCat("all ", files_, " files of ",
                          rows_ == nullptr ? "the source" : "these shards",
                          " were written after it was packed, with the sizes that they had, as in "
                          "a copy that does not keep the times (cp -a and rsync -t keep them)");
    } else {
      what = absl::StrCat("files of the source were changed after it was packed:\n  ",
                          written_.Text());
    }
    const absl::Status changed = absl::FailedPreconditionError(absl::StrCat(
        EscapeForTerminal(dataset), " is whole, but ", what,
        whole ? "\nWhether the bytes are the same is told by\n  "
              : "\nPixels were changed when it was packed, so that bytes cannot be compared. What "
                "is missing, new or of another class is told by\n  ",
        TypedProgram(), " validate ", ShellQuoted(dataset), " --against ", ShellQuoted(root_),
        planned            ? kNewPlan
        : rows_ != nullptr ? ""  // a worker replaces nothing
        : compare ? "\n--compare reads the source too, and where every byte is the one that "
                    "was packed takes it as it is now; --overwrite packs it again"
                  : "\n--overwrite packs the files as they are now"));
    if (planned || rows_ != nullptr) return changed;
    return compare ? OfferFlags(changed, {{"--compare"}, {"--overwrite"}})
                   : OfferFlags(changed, {{"--overwrite"}});
  }

 private:
  struct SourceFile {
    uint64_t row;
    size_t field;      // 0 = the image, else 1 + the field's index
    std::string path;  // below the root
  };

  void Compare(const SourceFile& file, const struct stat* facts) {
    const uint64_t bytes =
        file.field == 0 ? listing_.bytes[file.row] : listing_.FieldBytes(file.row, file.field - 1);
    const std::string path = EscapeForTerminal(file.path);
    if (facts == nullptr || !S_ISREG(facts->st_mode)) {
      differing_.Add(absl::StrCat(path, facts == nullptr ? " is missing" : " is not a file"));
      return;
    }
    const int64_t today = Nanoseconds(facts->st_mtim);
    const bool same_time = Time(file.row, file.field) == today;
    if (!same_time) changed_[{file.row, file.field}] = today;
    const bool same_size = static_cast<uint64_t>(facts->st_size) == bytes;
    if (!same_time || !same_size) rewritten_.Add(path);
    if (same_size) return;
    differing_.Add(absl::StrCat(path, " has ", facts->st_size, " bytes, planned were ", bytes));
  }

  // Of a file, as listed, or as it is today.
  int64_t Time(uint64_t row, size_t field) const {
    const auto changed = changed_.find({row, field});
    if (changed != changed_.end()) return changed->second;
    return field == 0 ? listing_.mtime_ns[row]
                      : listing_.field_mtime_ns[row * listing_.fields.size() + field - 1];
  }

  // One stat per file, many in parallel; calls `take` for one file at a time, with null if it does
  // not exist. Also ignores inputs that were unusable when listed.
  absl::Status ForEachFile(
      IoPool& pool, const std::function<void(const SourceFile&, const struct stat*)>& take) const {
    constexpr uint64_t kRows = 1024;
    std::mutex mutex;
    absl::Status failed;
    const uint64_t rows = rows_ == nullptr ? listing_.rows() : rows_->size();
    pool.ForEach((rows + kRows - 1) / kRows, [&](size_t chunk) {
      const uint64_t end = std::min(rows, (chunk + 1) * kRows);
      std::vector<std::pair<SourceFile, std::optional<struct stat>>> found;
      const auto look = [&](SourceFile file) {
        const std::string path = absl::StrCat(root_, "/", file.path);
        struct stat facts;
        const int error = ::stat(path.c_str(), &facts) == 0 ? 0 : errno;
        if (error != 0 && error != ENOENT && error != ENOTDIR && error != ELOOP)
          return IoStatus("look at", path, error);
        found.emplace_back(std::move(file), error == 0 ? std::optional(facts) : std::nullopt);
        return absl::OkStatus();
      };
      absl::Status status;
      for (uint64_t n = chunk * kRows; n < end && status.ok(); ++n) {
        const uint64_t row = rows_ == nullptr ? n : (*rows_)[n];
        if (FindSkip(listing_.skips, row) != nullptr || passed_over_.contains(row)) continue;
        std::string path = listing_.Path(row);
        for (size_t f = 0;
             f < listing_.fields.size() && status.ok() && !listing_.field_mtime_ns.empty(); ++f) {
          if (!listing_.HasField(row, f) || listing_.fields[f].suffix.empty()) continue;
          status = look(
              {row, f + 1, absl::StrCat(std::string(Stem(path)), ".", listing_.fields[f].suffix)});
        }
        if (status.ok()) status = look({row, 0, std::move(path)});
      }
      const std::lock_guard lock(mutex);
      if (!status.ok()) failed = status;
      for (const auto& [file, facts] : found) take(file, facts ? &*facts : nullptr);
    });
    return failed;
  }

  const Plan& plan_;
  const Listing& listing_;
  const std::string root_;
  const std::vector<uint32_t>* const rows_;
  const Rows passed_over_;
  absl::flat_hash_map<std::pair<uint64_t, size_t>, int64_t> changed_;  // by row and field
  bool looked_ = false;
  uint64_t files_ = 0;  // number checked
  FirstLines differing_, rewritten_, written_;
};

}  // namespace

std::vector<std::string> DifferencesFrom(const std::string& dataset, const Manifest& was,
                                         const Plan& plan) {
  std::vector<std::string> lines = OptionDifferences(was.options, plan.options().ToMap());
  if (was.format != plan.format().name) {
    lines.push_back(
        absl::StrCat("--format was ", was.format, ", is ", std::string(plan.format().name)));
  }
  if (was.listing_digest != plan.listing_digest()) {
    const std::string first =
        plan.CheckAllSlices().ok() ? FirstChangedInput(dataset, was, plan.listing()) : "";
    const std::string classes = ClassesDifference(was.classes, plan.listing().classes);
    if (!classes.empty()) lines.push_back(classes);
    // Otherwise only the classes are known to differ.
    const bool files = !first.empty() || was.source_files != plan.listing().rows();
    if (classes.empty() || files)
      lines.push_back(
          absl::StrCat("the source's files differ (", was.source_files, " were listed, ",
                       plan.listing().rows(), " are now)",
                       !first.empty() ? absl::StrCat(": ", first)
                       : was.counts.skipped > 0
                           ? "; some were skipped then, see skipped.jsonl, and may be mended"
                           : ""));
  }
  if (lines.empty()) lines.push_back("made by another version of pack");
  return lines;
}

absl::Status CheckPublishedFiles(const std::string& dataset, const Manifest& manifest) {
  FirstLines lines;
  for (const FileEntry& file : manifest.files) {
    const std::string path = PathInDataset(dataset, file.name);
    struct stat facts;
    if (::stat(path.c_str(), &facts) != 0) {
      if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        return IoStatus("look at", path, errno);
      lines.Add(absl::StrCat(EscapeForTerminal(file.name), " is missing"));
    } else if (!S_ISREG(facts.st_mode)) {
      lines.Add(absl::StrCat(EscapeForTerminal(file.name), " is not a file"));
    } else if (static_cast<uint64_t>(facts.st_size) != file.bytes) {
      lines.Add(absl::StrCat(EscapeForTerminal(file.name), " has ", facts.st_size,
                             " bytes, expected ", file.bytes));
    }
  }
  const uint64_t count = lines.count();
  if (count == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      EscapeForTerminal(dataset), " is damaged: ", count, " of its ", manifest.files.size(),
      count == 1 ? " files is" : " files are", " not what the manifest says:\n  ", lines.Text(),
      "\nTo build these alone again:\n  ", TypedProgram(), " repair ", ShellQuoted(dataset)));
}

absl::Status CheckBuiltFrom(const std::string& out, const Plan& plan, const std::string& root,
                            std::span<const uint32_t> shards, IoPool& pool) {
  if (shards.empty() || plan.listing().mtime_ns.empty()) return absl::OkStatus();
  std::vector<uint32_t> rows;
  for (const uint32_t n : shards) RETURN_IF_ERROR(AddRows(plan, n, rows));
  SourceFiles files(plan, root, &rows);
  RETURN_IF_ERROR(files.Look(/*published=*/0, /*planned=*/true, pool));
  return files.CheckBuilt(out);
}

// Looks at files until one decides: for an unchanged source, after one stat. For a changed source,
// a sample of files says as much as all of them.
absl::Status CheckSourceFits(const Plan& plan, const std::string& root,
                             std::span<const uint32_t> shards) {
  const Listing& listing = plan.listing();
  uint64_t files = 0, gone = 0;
  if (listing.mtime_ns.empty()) return absl::OkStatus();
  for (const uint32_t n : shards) {
    if (files == kMaxLooks) break;
    const PlannedShard& shard = plan.shards()[n];
    RETURN_IF_ERROR(plan.CheckSlice(n));
    for (uint64_t p = shard.first; p < shard.first + shard.count && files < kMaxLooks; ++p) {
      const uint32_t row = plan.row(p);
      struct stat facts;
      ++files;
      if (::stat(absl::StrCat(root, "/", listing.Path(row)).c_str(), &facts) != 0) {
        if ((errno != ENOENT && errno != ENOTDIR) || ++gone < files) return absl::OkStatus();
        continue;
      }
      const bool same =
          S_ISREG(facts.st_mode) && static_cast<uint64_t>(facts.st_size) == listing.bytes[row];
      if (gone > 0 || !same || Nanoseconds(facts.st_mtim) == listing.mtime_ns[row])
        return absl::OkStatus();
    }
  }
  if (files < 2) return absl::OkStatus();  // it may really have been changed, or removed
  const std::string all =
      absl::StrCat(files == kMaxLooks ? "the first " : "all ", files, " files of these shards");
  if (gone > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        all, " are missing in ", EscapeForTerminal(root),
        ", as where a disk is not mounted. Mount it, or name the folder that holds them, and run "
        "again; to pack what is there now, make a new plan with pack plan, and build it in another "
        "folder"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      all, " in ", EscapeForTerminal(root),
      " have the sizes, but not the times that they were planned with, as in a copy that does not "
      "keep the times; nothing was built. Copy them with their times (cp -a and rsync -t keep "
      "them) "
      "and run the same command again; or make a plan of this copy with pack plan, and build it in "
      "another folder"));
}

absl::Status CheckSource(const std::string& dataset, const Manifest& manifest, const Plan& plan,
                         const OutputOptions& options, IoPool& pool) {
  const Listing& listing = plan.listing();
  const bool planned = !options.planned_source.empty();
  std::vector<uint32_t> rows;
  // A worker only answers for its own part.
  if (options.worker) {
    for (const auto& [begin, end] : options.worker->ranges) {
      for (size_t n = begin; n < end; ++n) RETURN_IF_ERROR(AddRows(plan, n, rows));
    }
    if (rows.empty()) return absl::OkStatus();
  }
  Rows passed_over;
  if (planned) {
    ASSIGN_OR_RETURN(passed_over, RowsNotAsPlanned(dataset, manifest, plan));
  }
  SourceFiles files(plan, planned ? options.planned_source : listing.root,
                    options.worker ? &rows : nullptr, std::move(passed_over));
  ASSIGN_OR_RETURN(const int64_t published, PublishedAt(dataset));
  if (planned) {
    RETURN_IF_ERROR(files.Look(published, planned, pool));
    RETURN_IF_ERROR(files.CheckPlanned(dataset));
  }
  if (!manifest.source_times.empty()) {
    ASSIGN_OR_RETURN(const std::string times, files.Times());
    if (times == manifest.source_times) return absl::OkStatus();
  }
  if (manifest.source_times.empty() && !files.AnyModifiedAfter(published)) return absl::OkStatus();
  return files.Changed(dataset, published, plan.options().pixels.identity(), planned, pool);
}

}  // namespace shardpack
