#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/out_folder.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/seconds_since.h"
#include "cli/terminal/stop_notice.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/units.h"
#include "converters/listing/first_few.h"
#include "formats/io/escape.h"
#include "formats/io/shell_quoted.h"
#include "jobs/shared_list.h"

namespace shardpack::cli {

using absl::StrAppend;
using absl::StrCat;

namespace {

constexpr size_t kNamedUnread = 3;

std::string Unread(const SharedListReport& report) {
  std::vector<std::string> folders;
  std::set<std::string> parts;
  bool leaves = false;
  for (const auto& each : report.unread) {
    leaves = leaves || each.reason == SkipReason::kOutsideRoot;
    folders.push_back(StrCat(each.path, " (", std::string(SkipReasonName(each.reason)), ")"));
    parts.insert(each.part);
  }
  const std::string them = folders.size() == 1 ? "it" : "them";
  std::string text =
      StrCat(Counted(folders.size(), "folder", "folders"),
             " could not be listed: ", FirstFew(folders, kNamedUnread),
             "; the list holds nothing of ", them,
             leaves ? ". Links that leave the source are listed with --follow, "
                      "which takes a new list"
                    : "",
             ". To list ", them, " again, run this command again with --join, after\n  rm");
  for (const std::string& part : parts) StrAppend(&text, " ", ShellQuoted(part));
  return text;
}

}  // namespace

ExitCode RunList(const CommandLine& line, Terminal& terminal) {
  const PackFlags& flags = line.pack();
  if (flags.write_plan.empty()) {
    const std::string source = ShellQuoted(line.arguments[0]);
    return Fail(absl::InvalidArgumentError(StrCat(
                    "no folder for the lists of files, which pack plan --from takes. Type:\n  ",
                    TypedProgram(), " list ", source, " --write lists\n",
                    "The samples of a dataset are shown by pack ls ", source)),
                terminal);
  }
  const absl::Status fits = CheckLists(flags.write_plan, line.arguments[0]);
  if (!fits.ok()) return Fail(fits, terminal);
  const SharedListRequest request{.source = line.arguments[0],
                                  .lists = flags.write_plan,
                                  .options = flags.request.source,
                                  .join = flags.worker.join,
                                  .stale_seconds = flags.worker.stale_seconds};
  const auto begin = std::chrono::steady_clock::now();
  EndAtOnceOnSignal(false);
  IoPool pool(line.run.io_depth);
  std::atomic<uint64_t> listed = 0;
  Progress progress(terminal);
  progress.Watch([&] {
    ProgressView view;
    view.stage = "listing";
    view.unit = "files";
    view.done = listed;
    return view;
  });
  SharedListReport report;
  const absl::Status status = [&] {
    const StopNotice notice(terminal);
    return ListShared(request, pool, listed, StopSignal(), report);
  }();
  progress.End();
  if (!report.unread.empty()) terminal.Warn(Unread(report));
  if (!status.ok()) {
    const ExitCode code = Fail(status, terminal);
    if (HoldsList(flags.write_plan).value_or(false)) {
      SayHowToGoOn(code, "What was listed is kept.", line, terminal,
                   flags.worker.join ? FlagWords() : FlagWords{"--join"});
    }
    return code;
  }
  const double seconds = SecondsSince(begin);
  terminal.Say(StrCat("listed    ", Counted(listed, "file", "files"), " in ", report.my_parts,
                      " of ", report.parts, " parts, in ", FormatDuration(seconds),
                      "; all parts are listed"));
  terminal.Say(
      StrCat("next      ", TypedProgram(), " plan --from ", ShellQuoted(flags.write_plan)));
  if (!line.json) return ExitCode::kDone;
  nlohmann::json unread = nlohmann::json::array();
  for (const auto& each : report.unread) {
    unread.push_back({{"path", PercentEscape(each.path)},
                      {"reason", std::string(SkipReasonName(each.reason))},
                      {"part", PercentEscape(each.part)}});
  }
  Results results;
  const nlohmann::json json = {
      {"schema", "shardpack.listed/1"}, {"root", PercentEscape(report.root)},
      {"parts", report.parts},          {"my_parts", report.my_parts},
      {"my_files", listed.load()},      {"seconds", seconds},
      {"unread", std::move(unread)}};
  results.Write(json.dump() + "\n");
  return FinishResults(results, ExitCode::kDone, terminal);
}

}  // namespace shardpack::cli
