#include <errno.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/packing.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/seconds_since.h"
#include "cli/terminal/stop_notice.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "converters/indexing/index_folder.h"
#include "converters/publishing/commit.h"
#include "converters/repairing/repair.h"
#include "formats/formats.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/lack_of_resources.h"
#include "formats/io/status_macros.h"
#include "jobs/repair_sources.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

constexpr uint64_t kShownFiles = 20;  // of each kind

// If pack index made the dataset, the shards contain everything that its manifest did. Where shards
// lie beside the indexes, a build may have made these: --overwrite is not offered.
std::string IndexAgain(const std::string& out) {
  if (!HoldsOnlyIndexes(out).value_or(false)) {
    return StrCat("; if pack index made it, of shards where they lie, this makes it again:\n  ",
                  TypedProgram(), " index ", ShellQuoted(out));
  }
  return StrCat("; an index of shards that lie elsewhere is made again by\n  ", TypedProgram(),
                " index SHARDS -o ", ShellQuoted(out), " --overwrite");
}

absl::StatusOr<Manifest> ReadManifest(const std::string& out) {
  absl::StatusOr<Manifest> manifest = Manifest::Read(out);
  if (manifest.ok()) return manifest;
  struct stat facts;
  const int error = ::stat(out.c_str(), &facts) == 0 ? 0 : errno;
  if (error != 0 && !IsAboutThePath(error)) return IoStatus("look at", out, error);
  if (error != 0 || !S_ISDIR(facts.st_mode)) {
    return absl::InvalidArgumentError(
        StrCat(EscapeForTerminal(out), " is not a folder; name a dataset's"));
  }
  if (absl::IsNotFound(manifest.status())) {
    ASSIGN_OR_RETURN(const bool unfinished, Exists(out + "/.pack/plan"));
    return absl::DataLossError(StrCat(
        EscapeForTerminal(out), " has no manifest.json: ",
        unfinished ? StrCat("its build has not finished; run the same pack command again, or, if "
                            "workers built it,\n  ",
                            TypedProgram(), " commit ", ShellQuoted(out))
                   : StrCat("without it nobody knows what the dataset was; restore the file from a "
                            "copy",
                            IndexAgain(out))));
  }
  if (!absl::IsDataLoss(manifest.status())) return manifest.status();
  return absl::DataLossError(
      StrCat(std::string(manifest.status().message()),
             "\nThe manifest says what everything else must be, so that it cannot be rebuilt; "
             "restore the file from a copy, or name a copy of the dataset with --from",
             IndexAgain(out)));
}

// `counts` outlive `progress`.
void Watch(const RepairProgress& counts, Progress& progress) {
  progress.Watch([&counts] {
    ProgressView view;
    view.stage = "looking at";
    view.unit = "files";
    view.done = counts.done_files;
    view.total = counts.total_files;
    view.bytes_in = counts.done_bytes;
    view.bytes_total = counts.total_bytes;
    view.errors = counts.damaged;
    return view;
  });
}

// Takes it from the first copy of the same dataset; `status` says what is wrong with the manifest.
absl::StatusOr<Manifest> TakeManifest(const CommandLine& line, const absl::Status& status,
                                      RepairOptions& options, RepairedFile& taken,
                                      RepairProgress& counts, Terminal& terminal) {
  Progress progress(terminal);
  Watch(counts, progress);
  std::string whys;
  absl::Status unread;
  for (const std::string& path : line.repair().from) {
    absl::StatusOr<RestoredManifest> manifest =
        RestoreManifest(line.arguments[0], path, line.run.expect, options, counts, StopSignal());
    if (manifest.ok()) {
      taken = {std::string(kManifestName), 0, "missing or damaged", path, ""};
      options.whole = std::move(manifest->whole);
      return std::move(manifest->manifest);
    }
    if (IsLackOfResources(manifest.status()) || absl::IsCancelled(manifest.status()))
      return manifest.status();
    // The problem may affect only this copy.
    if (absl::IsPermissionDenied(manifest.status()) || absl::IsUnavailable(manifest.status()))
      unread.Update(manifest.status());
    absl::StrAppend(&whys, "\n  ", std::string(manifest.status().message()));
  }
  return absl::Status(unread.ok() ? absl::StatusCode::kDataLoss : unread.code(),
                      StrCat(std::string(status.message()), whys));
}

RepairOptions OptionsOf(const CommandLine& line) {
  RepairOptions options;
  options.only.assign(line.arguments.begin() + 1, line.arguments.end());
  options.full = line.repair().level != "quick";
  options.dry_run = line.repair().dry_run;
  options.fsync = line.run.fsync;
  options.jobs = line.run.Jobs();
  options.memory_bytes = line.run.MemoryBytes();
  return options;
}

void SayFiles(const RepairReport& report, const CommandLine& line, Terminal& terminal) {
  uint64_t shown = 0, lost = 0;
  for (const RepairedFile& file : report.files) {
    const std::string name =
        StrCat(EscapeForTerminal(file.name), " (", EscapeForTerminal(file.damage), ")");
    if (!file.whole()) {
      if (lost++ < kShownFiles)
        terminal.Warn(StrCat(name, " cannot be rebuilt: ", EscapeForTerminal(file.why_not)));
    } else if (shown++ < kShownFiles) {
      terminal.Say(StrCat(line.repair().dry_run ? "would rebuild " : "rebuilt ", name, " from ",
                          EscapeForTerminal(file.from)));
    }
  }
  if (lost > kShownFiles)
    terminal.Warn(StrCat("and ", lost - kShownFiles, " more files; --json lists them all"));
  if (shown > kShownFiles) terminal.Say(StrCat("and ", shown - kShownFiles, " more files"));
  const std::string looked = StrCat(Counted(report.looked_at, "file", "files"),
                                    line.repair().level == "quick" ? " of the right size" : "");
  if (report.files.empty()) {
    terminal.Say(StrCat("nothing is damaged: ", looked,
                        line.repair().level == "quick" ? "" : ", every byte hashed"));
    return;
  }
  terminal.Say(StrCat(line.repair().dry_run ? "would rebuild " : "rebuilt ", shown, " of ",
                      Counted(report.files.size(), "damaged file", "damaged files"),
                      ", byte for byte; ", report.looked_at, " were looked at"));
}

std::string ToJson(const RepairReport& report, const Manifest& manifest, const CommandLine& line,
                   double seconds) {
  nlohmann::json files = nlohmann::json::array();
  for (const RepairedFile& file : report.files) {
    nlohmann::json row = {{"name", PercentEscape(file.name)},
                          {"bytes", file.bytes},
                          {"damage", PercentEscape(file.damage)},
                          {"repaired", file.whole() && !line.repair().dry_run},
                          {"repairable", file.whole()}};
    if (file.whole()) {
      row["from"] = PercentEscape(file.from);
    } else {
      row["why_not"] = PercentEscape(file.why_not);
    }
    files.push_back(std::move(row));
  }
  const nlohmann::json json = {
      {"schema", "shardpack.repair/1"},
      {"out", PercentEscape(line.arguments[0])},
      {"dataset", IdentityText(manifest.Identity())},
      {"level", line.repair().level},
      {"dry_run", line.repair().dry_run},
      {"looked_at", report.looked_at},
      {"hashed_bytes", report.hashed_bytes},
      {"files", std::move(files)},
      {"whole", report.all_whole() && (!line.repair().dry_run || report.files.empty())},
      {"seconds", seconds}};
  return json.dump(1) + "\n";
}

absl::StatusOr<RepairReport> Repair(const Manifest& manifest, bool manifest_taken,
                                    const Format& format, const RepairOptions& options,
                                    const CommandLine& line, RepairProgress& counts,
                                    Terminal& terminal) {
  IoPool pool(line.run.io_depth);
  ShownPlanning shown(terminal);
  ASSIGN_OR_RETURN(std::vector<RepairSource> sources,
                   OpenRepairSources(line.repair().from, manifest, manifest_taken, pool, shown));
  EndAtOnceOnSignal(false);
  Progress progress(terminal);
  Watch(counts, progress);
  const StopNotice notice(terminal);
  return RepairDataset(line.arguments[0], manifest, sources, format, options, pool, counts,
                       StopSignal());
}

}  // namespace

ExitCode RunRepair(const CommandLine& line, Terminal& terminal) {
  const auto begin = std::chrono::steady_clock::now();
  RepairOptions options = OptionsOf(line);
  RepairProgress counts;
  RepairedFile taken;
  absl::StatusOr<Manifest> manifest = ReadManifest(line.arguments[0]);
  if (absl::IsDataLoss(manifest.status()))
    manifest =
        TakeManifest(line, absl::Status(manifest.status()), options, taken, counts, terminal);
  if (!manifest.ok()) return Fail(manifest.status(), terminal);
  if (const absl::Status other = CheckIdentity(*manifest, line.run.expect); !other.ok())
    return Fail(other, terminal);
  const Format* format = FindFormat(manifest->format);
  if (format == nullptr) {
    return Fail(
        absl::InvalidArgumentError(StrCat("the format ", EscapeForTerminal(manifest->format),
                                          " is not one of this version of pack")),
        terminal);
  }
  absl::StatusOr<RepairReport> report =
      Repair(*manifest, taken.whole(), *format, options, line, counts, terminal);
  if (!report.ok()) {
    const ExitCode code = Fail(report.status(), terminal);
    SayHowToGoOn(code, "What was rebuilt is kept.", line, terminal);
    return code;
  }
  if (taken.whole()) report->files.insert(report->files.begin(), taken);
  if (!report->notice.empty()) terminal.Warn(report->notice);
  SayFiles(*report, line, terminal);
  Results results;
  results.Write(line.json ? ToJson(*report, *manifest, line, SecondsSince(begin))
                          : StrCat("dataset ", IdentityText(manifest->Identity()), "\n"));
  return FinishResults(results, report->all_whole() ? ExitCode::kDone : ExitCode::kSkipped,
                       terminal);
}

}  // namespace shardpack::cli
