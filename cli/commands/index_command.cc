#include <chrono>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/commands/packing.h"
#include "cli/commands/summary.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "cli/terminal/version.h"
#include "converters/indexing/index_shards.h"
#include "converters/listing/first_few.h"
#include "formats/formats.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

constexpr size_t kNamedOthers = 5;

absl::StatusOr<IndexOptions> Options(const CommandLine& line) {
  const IndexFlags& flags = line.index();
  IndexOptions options;
  options.out = flags.out;
  options.split = flags.split;
  options.jobs = line.run.Jobs();
  options.overwrite = flags.overwrite;
  options.fsync = line.run.fsync;
  options.tool = ToolVersions();
  if (!flags.classes_file.empty()) {
    ASSIGN_OR_RETURN(options.classes, ReadClasses(flags.classes_file));
  }
  return options;
}

void SayResult(const IndexReport& report, double seconds, Terminal& terminal) {
  const Manifest& manifest = report.manifest;
  for (const std::string& warning : report.warnings) terminal.Warn(warning);
  if (report.other_files > 0) {
    std::vector<std::string> names;
    for (const std::string& path : report.others) {
      if (names.size() < kNamedOthers) names.push_back(EscapeForTerminal(path));
    }
    terminal.Say(StrCat(
        "left out  ",
        Counted(report.other_files, "file that is not a shard: ", "files that are not shards: "),
        AndMore(names, report.other_files)));
  }
  if (!report.hidden.empty()) {
    terminal.Say(StrCat("left out  as hidden: ", FirstFew(report.hidden, kNamedOthers),
                        "; give them other names to index them"));
  }
  if (!report.kept.empty())
    terminal.Say(StrCat("kept      what pack has not made: ", FirstFew(report.kept, kNamedOthers)));
  const std::string out = EscapeForTerminal(report.out);
  if (report.unchanged) {
    terminal.Say(StrCat(out, " is unchanged: every shard is as its index says"));
  }
  const uint64_t bytes = ShardBytes(manifest);
  std::string text =
      StrCat("indexed   ", Counted(manifest.counts.packed, "sample", "samples"), " in ",
             Counted(manifest.shards.size(), "shard", "shards"), " of ", manifest.format, ", ",
             FormatBytes(bytes), ", in ", FormatDuration(seconds));
  if (seconds > 0) {
    absl::StrAppend(&text, " (",
                    FormatBytes(static_cast<uint64_t>(static_cast<double>(bytes) / seconds)),
                    "/s)");
  }
  terminal.Say(StrCat(text, ", peak memory ", FormatBytes(PeakMemoryBytes())));
  std::vector<std::string> splits;
  for (const auto& [name, records] : manifest.splits)
    splits.push_back(StrCat(name, " ", FormatCount(records)));
  terminal.Say(StrCat("splits    ", absl::StrJoin(splits, ", ")));
  terminal.Say(StrCat("next      ", TypedProgram(), " validate ", ShellQuoted(report.out)));
}

std::string Json(const IndexReport& report, double seconds) {
  std::vector<std::string> warnings;
  for (const std::string& warning : report.warnings) warnings.push_back(PercentEscape(warning));
  std::vector<std::string> others;
  for (const std::string& path : report.others) others.push_back(PercentEscape(path));
  std::vector<std::string> hidden;
  for (const std::string& path : report.hidden) hidden.push_back(PercentEscape(path));
  const nlohmann::json json = {{"schema", "shardpack.index/1"},
                               {"dataset", IdentityText(report.manifest.Identity())},
                               {"out", PercentEscape(report.out)},
                               {"format", report.manifest.format},
                               {"unchanged", report.unchanged},
                               {"shards", report.manifest.shards.size()},
                               {"records", report.manifest.counts.packed},
                               {"bytes", ShardBytes(report.manifest)},
                               {"splits", report.manifest.splits},
                               {"classes", report.manifest.classes.size()},
                               {"other_files", report.other_files},
                               {"others", others},
                               {"hidden", hidden},
                               {"warnings", warnings},
                               {"seconds", seconds},
                               {"peak_memory_bytes", PeakMemoryBytes()}};
  return json.dump() + "\n";
}

}  // namespace

ExitCode RunIndex(const CommandLine& line, Terminal& terminal) {
  const absl::StatusOr<IndexOptions> options = Options(line);
  if (!options.ok()) return Fail(options.status(), terminal);
  const auto begin = std::chrono::steady_clock::now();
  EndAtOnceOnSignal(false);
  IndexProgress counts;
  Progress progress(terminal);
  progress.Watch([&] {
    ProgressView view;
    view.stage = "indexing";
    view.unit = "shards";
    view.done = counts.done_shards;
    view.total = counts.total_shards;
    view.bytes_in = counts.done_bytes;
    view.bytes_total = counts.total_bytes;
    return view;
  });
  const absl::StatusOr<IndexReport> report =
      IndexShards(line.arguments, AllFormats(), *options, counts, StopSignal());
  progress.End();
  if (!report.ok()) return Fail(WithCommands(report.status(), line), terminal);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  SayResult(*report, seconds, terminal);
  Results results;
  results.Write(line.json ? Json(*report, seconds)
                          : StrCat("dataset ", IdentityText(report->manifest.Identity()), "\n"));
  return FinishResults(results, ExitCode::kDone, terminal);
}

}  // namespace shardpack::cli
