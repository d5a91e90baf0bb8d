#include "validators/validator.h"

#include <errno.h>
#include <sys/stat.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/core/dataset_parts.h"
#include "formats/core/manifest.h"
#include "formats/core/manifests_beside.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"
#include "validators/checks/folder_check.h"
#include "validators/checks/key_hashes.h"
#include "validators/checks/shard_check.h"
#include "validators/checks/unpacked_check.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

// More repeated keys than this are not resolved; nobody would read them.
constexpr size_t kMaxRepeatedKeys = 1000;

CheckRun MakeRun(const ValidateOptions& options, ValidationProgress& progress,
                 const std::atomic<int>& stop, MemoryGates& gates) {
  CheckRun run{.level = options.level,
               .sample_percent = options.sample_percent,
               .against_parts = options.against_parts,
               .open_source = options.open_source,
               .image_limits = options.image_limits,
               .progress = progress,
               .stop = stop,
               .gates = gates};
  if (options.max_seconds > 0) {
    // More than a century would overflow the clock.
    const double seconds = std::min(options.max_seconds, 3e9);
    run.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  }
  return run;
}

absl::Status CheckOptions(const ValidateOptions& options) {
  if (options.subset_count == 0 || options.subset_index >= options.subset_count) {
    return absl::InvalidArgumentError("subset: its number must be below the number of parts");
  }
  if (!(options.sample_percent > 0 && options.sample_percent <= 100)) {
    return absl::InvalidArgumentError("sample: must be more than 0 and at most 100 percent");
  }
  if (options.jobs < 0 || !(options.max_seconds >= 0)) {
    return absl::InvalidArgumentError("jobs and time limit must not be negative");
  }
  return absl::OkStatus();
}

// Runs `check` for the selected shards, several at a time. Returns one outcome per selected shard.
absl::StatusOr<std::vector<ShardOutcome>> ForEachShard(
    const std::vector<size_t>& chosen, int jobs, const CheckRun& run,
    const std::function<void(size_t shard, ShardOutcome&)>& check) {
  std::vector<ShardOutcome> outcomes(chosen.size());
  run.progress.total_shards = chosen.size();
  try {
    tbb::task_arena arena(jobs > 0 ? jobs : tbb::task_arena::automatic);
    arena.execute([&] {
      tbb::parallel_for(size_t{0}, chosen.size(), [&](size_t i) {
        if (run.Stopped()) return;
        check(chosen[i], outcomes[i]);
        run.progress.done_shards.fetch_add(1);
        run.progress.findings.fetch_add(outcomes[i].findings.errors() +
                                        outcomes[i].findings.warnings());
      });
    });
  } catch (const std::exception& error) {
    return StatusOfException("validation", error);
  }
  return outcomes;
}

// Reports records with the same key, after comparing the keys themselves. keys_of returns the keys
// of some records of a shard.
void ReportRepeatedKeys(const std::vector<size_t>& chosen,
                        const std::vector<ShardOutcome>& outcomes,
                        const std::function<std::string(size_t shard)>& name_of,
                        const std::function<absl::StatusOr<std::vector<std::string>>(
                            size_t shard, std::span<const uint64_t>)>& keys_of,
                        FindingTally& findings) {
  std::vector<std::span<const uint64_t>> hashes;
  for (const ShardOutcome& outcome : outcomes) hashes.push_back(outcome.key_hashes);
  const std::vector<uint64_t> repeated = RepeatedHashes(hashes, kMaxRepeatedKeys);
  if (repeated.empty()) return;
  std::map<std::string, std::string> first;  // key -> where
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::vector<uint64_t> records;
    for (uint64_t r = 0; r < outcomes[i].key_hashes.size(); ++r) {
      if (std::binary_search(repeated.begin(), repeated.end(), outcomes[i].key_hashes[r]))
        records.push_back(r);
    }
    if (records.empty()) continue;
    const std::string name = name_of(chosen[i]);
    const absl::StatusOr<std::vector<std::string>> keys = keys_of(chosen[i], records);
    if (!keys.ok()) {
      Finding finding = MakeFinding(FindingId::kReadError, name);
      finding.detail = absl::StrCat("its keys, of which some may be those of other samples: ",
                                    std::string(keys.status().message()));
      findings.Report(std::move(finding));
      continue;
    }
    for (size_t k = 0; k < keys->size(); ++k) {
      const std::string& key = (*keys)[k];
      const auto [place, fresh] =
          first.try_emplace(key, absl::StrCat("record ", records[k], " of ", name));
      if (fresh) continue;
      Finding finding = MakeFinding(FindingId::kKeyDuplicate, name);
      finding.record = records[k];
      finding.key = key;
      finding.detail = absl::StrCat("as ", place->second);
      findings.Report(std::move(finding));
    }
  }
}

void AddOutcomes(const std::vector<ShardOutcome>& outcomes, ValidationReport& report) {
  uint64_t animated = 0;
  for (const ShardOutcome& outcome : outcomes) {
    report.shards_checked += outcome.complete ? 1 : 0;
    report.records_checked += outcome.records_checked;
    report.bytes_read += outcome.bytes_read;
    report.sources_compared += outcome.sources_compared;
    report.images_checked += outcome.images_checked;
    report.images_decoded += outcome.images_decoded;
    animated += outcome.animated;
    report.findings.Add(outcome.findings);
    for (const std::string& gap : outcome.not_checked) {
      constexpr size_t kMaxGaps = 100;
      const bool told = std::find(report.not_checked.begin(), report.not_checked.end(), gap) !=
                        report.not_checked.end();  // the same text for every shard
      if (!told && report.not_checked.size() < kMaxGaps) report.not_checked.push_back(gap);
    }
  }
  if (animated > 0) {
    report.not_checked.push_back(absl::StrCat("frames and pages after the first of ", animated,
                                              " images that have several"));
  }
}

// Reports what the options exclude and what was cut short.
void SayWhatWasLeftOut(const ValidateOptions& options, const CheckRun& run, bool foreign,
                       ValidationReport& report) {
  const auto gap = [&](const std::string& text) { report.not_checked.push_back(text); };
  const int signal = run.stop.load();
  report.stopped = signal != 0 || Clock::now() > run.deadline;
  if (report.stopped) {
    gap(absl::StrCat(
        signal != 0 ? "stopped by signal " + absl::StrCat(signal) : "the time limit was reached",
        ": ", report.shards - report.shards_checked, " of ", report.shards,
        " shards are not or not wholly checked"));
  }
  if (options.subset_count > 1) {
    gap(absl::StrCat(
        "shards outside part ", options.subset_index + 1, " of ", options.subset_count,
        "; the same key in two parts",
        options.visit_source ? "; which files of the source are not in the dataset" : ""));
  }
  if (options.level == ValidationLevel::kQuick && foreign) {
    gap("everything but the first bytes of each shard, and its size where a manifest lists it: "
        "without an index only levels full and deep read records");
  } else if (options.level == ValidationLevel::kQuick) {
    gap("the bytes of the shards but for their beginning and the first and last record; files "
        "beside the shards");
  } else if (options.sample_percent < 100) {
    gap(absl::StrCat(foreign ? "shards" : "records", " outside a sample of ",
                     options.sample_percent, " %",
                     foreign ? "" : "; container structure and file hashes of the shards"));
  }
  if (options.level != ValidationLevel::kDeep) gap("whether the images can be decoded");
}

std::vector<size_t> ChooseShards(size_t count, const ValidateOptions& options) {
  std::vector<size_t> chosen;
  for (size_t i = options.subset_index; i < count; i += options.subset_count) chosen.push_back(i);
  return chosen;
}

void ReportManifest(const absl::Status& status, const std::string& name, FindingTally& findings) {
  FindingId id = FindingId::kManifestInvalid;
  if (absl::IsNotFound(status)) {
    id = FindingId::kManifestMissing;
  } else if (absl::IsUnimplemented(status)) {
    id = FindingId::kOtherVersion;
  } else if (!absl::IsDataLoss(status)) {
    id = FindingId::kReadError;
  } else if (DefectOf(status) == ManifestDefect::kSelfHash) {
    id = FindingId::kManifestSelfHash;
  } else if (DefectOf(status) == ManifestDefect::kAccounting) {
    id = FindingId::kAccounting;
  }
  Finding finding = MakeFinding(id, name);
  if (id != FindingId::kManifestMissing) finding.detail = std::string(status.message());
  findings.Report(std::move(finding));
}

// False if there is no manifest to continue with.
bool ReadManifest(const std::string& dataset, ValidationReport& report, Manifest& manifest) {
  absl::StatusOr<Manifest> read = Manifest::Read(dataset);
  if (!read.ok()) {
    ReportManifest(read.status(), std::string(kManifestName), report.findings);
    const absl::StatusOr<bool> leftover = Exists(dataset + "/.pack");
    if (!leftover.ok()) {
      Finding finding = MakeFinding(FindingId::kReadError, ".pack");
      finding.detail = std::string(leftover.status().message());
      report.findings.Report(std::move(finding));
    } else if (absl::IsNotFound(read.status()) && *leftover) {
      report.findings.Report(MakeFinding(FindingId::kLeftoverPackFolder, ".pack"));
    }
    report.not_checked.push_back(
        "all files beside manifest.json: without a manifest there is nothing to compare them with");
    return false;
  }
  manifest = *std::move(read);
  report.format = manifest.format;
  report.identity = manifest.Identity();
  report.indexed_in_place = manifest.indexed_in_place();
  report.shards = manifest.shards.size();
  for (const ManifestShard& shard : manifest.shards) report.records += shard.records;
  for (const FileEntry& file : manifest.files) report.bytes += file.bytes;
  for (const ManifestShard& shard : manifest.shards) {
    if (shard.location.empty()) continue;
    report.bytes += shard.bytes;
    report.elsewhere.insert({shard.name, shard.location});
  }
  return true;
}

// Errors that a consistent manifest can still contain: classes or splits that cannot be used.
void CheckNames(const Manifest& manifest, const Format* format, FindingTally& findings) {
  std::set<std::string_view> classes;
  for (const std::string& name : manifest.classes) {
    if (classes.insert(name).second) continue;
    Finding finding = MakeFinding(FindingId::kClassDuplicate, kManifestName);
    finding.detail = name;
    findings.Report(std::move(finding));
  }
  // Shards indexed in place may have any names.
  if (manifest.indexed_in_place() || format == nullptr ||
      FindLayout(*format, manifest.layout) == nullptr)
    return;
  std::map<std::string_view, uint32_t> total, next;
  for (const ManifestShard& shard : manifest.shards) ++total[shard.split];
  for (const ManifestShard& shard : manifest.shards) {
    const std::string expected =
        ShardName(*format, manifest.layout, shard.split, next[shard.split]++, total[shard.split]);
    if (shard.name == expected) continue;
    Finding finding = MakeFinding(FindingId::kSplitMismatch, shard.name);
    finding.detail = "split " + shard.split;
    finding.expected = expected;
    finding.actual = shard.name;
    findings.Report(std::move(finding));
  }
}

// The rows of these shards in the manifests beside them. Reports manifests that cannot be read.
std::vector<ManifestsBeside::Found> FindRows(std::span<const std::string> paths,
                                             ManifestsBeside& manifests, ValidationReport& report) {
  std::vector<ManifestsBeside::Found> rows;
  std::set<std::string> unreadable;
  size_t unlisted = 0;
  for (const std::string& path : paths) {
    const ManifestsBeside::Found& found = rows.emplace_back(manifests.Find(path));
    if (!found.status.ok() && unreadable.insert(found.folder).second) {
      const std::string name = absl::StrCat(found.folder, "/", std::string(kManifestName));
      ReportManifest(found.status, name, report.findings);
      report.beside[name] = {found.folder, false};
    }
    if (found.shard == nullptr) {
      ++unlisted;
    } else {
      report.beside[path] = {found.folder, found.manifest->indexed_in_place()};
    }
  }
  if (unlisted > 0) {
    report.not_checked.push_back(
        absl::StrCat("sizes and hashes of ", unlisted, " of ", paths.size(),
                     " files: no manifest that can be read lies beside them and lists them"));
  }
  return rows;
}

absl::Status CheckFolderItself(const std::string& dataset) {
  struct stat facts;
  if (::stat(dataset.c_str(), &facts) != 0) return IoStatus("open", dataset, errno);
  if (!S_ISDIR(facts.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(dataset), " is not a folder"));
  }
  const std::string manifest = absl::StrCat(dataset, "/", std::string(kManifestName));
  const absl::StatusOr<bool> there = Exists(manifest);
  if (!there.ok() || *there) return there.status();
  ASSIGN_OR_RETURN(const bool parts, HoldsDatasetParts(dataset));
  if (!parts) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(dataset),
                     " is not a packed dataset (it has no manifest.json, no index and no .pack "
                     "folder); name third-party shards one by one"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ValidationReport> ValidateDataset(const std::string& dataset,
                                                 std::span<const Format* const> formats,
                                                 const ValidateOptions& options,
                                                 ValidationProgress& progress,
                                                 const std::atomic<int>& stop) {
  const Clock::time_point begin = Clock::now();
  absl::Status usable = CheckOptions(options);
  if (usable.ok()) usable = CheckFolderItself(dataset);
  if (!usable.ok()) return usable;
  MemoryGates gates;
  const CheckRun run = MakeRun(options, progress, stop, gates);
  ValidationReport report;
  report.subject = dataset;
  report.level = options.level;
  Manifest manifest;
  if (!ReadManifest(dataset, report, manifest)) return report;
  if (options.expect && *options.expect != *report.identity) {
    Finding finding = MakeFinding(FindingId::kIdentity, kManifestName);
    finding.expected = IdentityText(*options.expect);
    finding.actual = IdentityText(*report.identity);
    report.findings.Report(std::move(finding));
  }
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [&](const Format* row) { return row->name == manifest.format; });
  const Format* const format = found == formats.end() ? nullptr : *found;
  if (format == nullptr) {
    Finding finding = MakeFinding(FindingId::kUnknownFormat, kManifestName);
    finding.actual = manifest.format;
    report.findings.Report(std::move(finding));
    report.not_checked.push_back("records and container structure: the format is not known here");
  }
  CheckNames(manifest, format, report.findings);
  const FolderCheck folder = CheckFolder(dataset, manifest, format, report.findings);
  const std::vector<size_t> chosen = ChooseShards(manifest.shards.size(), options);
  progress.total_bytes = report.bytes;
  const auto task_of = [&](size_t shard) {
    return ShardTask{
        .root = dataset, .manifest = manifest, .shard = shard, .format = format, .folder = folder};
  };
  ASSIGN_OR_RETURN(std::vector<ShardOutcome> outcomes,
                   ForEachShard(chosen, options.jobs, run, [&](size_t shard, ShardOutcome& out) {
                     CheckShard(task_of(shard), run, out);
                   }));
  AddOutcomes(outcomes, report);
  ReportRepeatedKeys(
      chosen, outcomes, [&](size_t shard) { return manifest.shards[shard].name; },
      [&](size_t shard, std::span<const uint64_t> records) {
        return KeysOfShard(task_of(shard), records);
      },
      report.findings);
  if (options.level != ValidationLevel::kQuick && !run.Stopped()) {
    // SayWhatWasLeftOut reports a cancellation.
    (void)CheckOtherFiles(dataset, manifest, folder, run, report.bytes_read, report.findings);
  }
  if (options.visit_source && options.subset_count == 1 && !run.Stopped()) {
    CheckForUnpacked(dataset, manifest, options.visit_source, run, report.findings,
                     report.not_checked);
  }
  SayWhatWasLeftOut(options, run, /*foreign=*/false, report);
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return report;
}

absl::StatusOr<ValidationReport> ValidateShards(std::span<const std::string> shard_paths,
                                                std::span<const Format* const> formats,
                                                const ValidateOptions& options,
                                                ValidationProgress& progress,
                                                const std::atomic<int>& stop) {
  const Clock::time_point begin = Clock::now();
  RETURN_IF_ERROR(CheckOptions(options));
  if (shard_paths.empty()) return absl::InvalidArgumentError("no shards given");
  if (options.expect || options.open_source) {
    return absl::InvalidArgumentError("expect and against need a dataset with a manifest");
  }
  MemoryGates gates;
  const CheckRun run = MakeRun(options, progress, stop, gates);
  ValidationReport report;
  report.level = options.level;
  report.shards = shard_paths.size();
  if (shard_paths.size() == 1) report.subject = shard_paths[0];
  for (const std::string& path : shard_paths) {
    struct stat facts;
    if (::stat(path.c_str(), &facts) == 0) {
      progress.total_bytes += static_cast<uint64_t>(facts.st_size);
    } else if (errno == ENOENT || errno == ENOTDIR) {
      return IoStatus("open", path, errno);
    }
  }
  ManifestsBeside manifests;
  const std::vector<ManifestsBeside::Found> rows = FindRows(shard_paths, manifests, report);
  std::vector<size_t> chosen = ChooseShards(shard_paths.size(), options);
  if (options.sample_percent < 100) {
    const auto wanted =
        static_cast<size_t>(static_cast<double>(chosen.size()) * options.sample_percent / 100);
    // Evenly spread, at least one.
    std::vector<size_t> some;
    const size_t count = std::max<size_t>(wanted, std::min<size_t>(chosen.size(), 1));
    for (size_t i = 0; i < count; ++i) some.push_back(chosen[i * chosen.size() / count]);
    chosen = std::move(some);
  }
  ASSIGN_OR_RETURN(std::vector<ShardOutcome> outcomes,
                   ForEachShard(chosen, options.jobs, run, [&](size_t shard, ShardOutcome& out) {
                     CheckForeignShard(shard_paths[shard], rows[shard], formats, run, out);
                   }));
  AddOutcomes(outcomes, report);
  std::set<std::string> found_formats;
  uint64_t unlabelled = 0;
  for (const ShardOutcome& outcome : outcomes) {
    report.bytes += outcome.bytes;
    report.records += outcome.records;
    found_formats.insert(outcome.format);
    unlabelled += outcome.unlabelled;
  }
  if (unlabelled > 0) {
    report.not_checked.push_back(absl::StrCat("the labels of ", unlabelled, " of ", report.records,
                                              " records: they have none, or -1, which every "
                                              "command takes for none"));
  }
  if (found_formats.size() == 1) report.format = *found_formats.begin();
  ReportRepeatedKeys(
      chosen, outcomes, [&](size_t shard) { return shard_paths[shard]; },
      [&](size_t shard, std::span<const uint64_t> records) {
        return KeysOfForeignShard(shard_paths[shard], formats, records);
      },
      report.findings);
  SayWhatWasLeftOut(options, run, /*foreign=*/true, report);
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return report;
}

}  // namespace shardpack
