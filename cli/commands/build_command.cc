#include <stdlib.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/out_folder.h"
#include "cli/commands/packing.h"
#include "cli/commands/report_page.h"
#include "cli/commands/summary.h"
#include "cli/commands/worker_part.h"
#include "cli/flags/failure.h"
#include "cli/flags/parse.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop_notice.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/version.h"
#include "converters/building/build.h"
#include "converters/publishing/commit.h"
#include "converters/publishing/exchange.h"
#include "converters/publishing/skip_budget.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

constexpr char kVerbLetters[] = "abcdefghijklmnopqrstuvwxyz-";

// What makes this run a worker, as it was given.
std::string WorkersFlag(const CommandLine& line) {
  const WorkerFlags& worker = line.pack().worker;
  return !worker.part.empty()     ? "--worker"
         : worker.join            ? "--join"
         : !worker.shards.empty() ? "--shards"
                                  : "--shards-range";
}

absl::Status CheckWorkersWords(const CommandLine& line) {
  const PackFlags& flags = line.pack();
  const WorkerFlags& worker = flags.worker;
  if (worker.stop_with_stdin && !line.arguments.empty() && line.arguments[0] == "-") {
    return absl::InvalidArgumentError(
        "--stop-with-stdin waits for the end of standard input, which - reads as a list");
  }
  if (flags.plan_file.empty() &&
      (flags.IsWorker() || worker.shards.find_first_of(",-") != std::string::npos)) {
    return absl::InvalidArgumentError(
        StrCat(WorkersFlag(line),
               " builds a part of a shared plan; make one with pack plan --write FILE, then give "
               "--plan FILE"));
  }
  if (flags.plan_file.empty() && line.Given("shards") && flags.request.plan.shards == 0)
    return absl::InvalidArgumentError("--shards 0: expected 1 or more");
  if (!flags.IsWorker()) {
    for (const std::string flag : {"wait", "takeover", "stale-after"}) {
      if (line.Given(flag))
        return absl::InvalidArgumentError(
            StrCat(AsTyped(line, flag),
                   " is for workers, which others may be in the way of; with --plan, "
                   "--worker I/N, --join or --shards LIST make one"));
    }
    return absl::OkStatus();
  }
  const int parts =
      (worker.part.empty() ? 0 : 1) + (worker.shards.empty() ? 0 : 1) + (worker.range ? 1 : 0);
  if (parts > 1 || (worker.join && parts == 1 && worker.part.empty())) {
    return absl::InvalidArgumentError(
        "--worker, --shards and --shards-range each say which shards to build; give one of them. "
        "--join goes with --worker, or alone");
  }
  if (flags.output.overwrite) {
    return absl::InvalidArgumentError(StrCat(
        "--overwrite replaces a whole dataset; a worker's part (", WorkersFlag(line), ") cannot"));
  }
  for (const std::string flag : {"expect", "strict", "max-skip", "report"}) {
    if (!line.Given(flag)) continue;
    return absl::InvalidArgumentError(
        StrCat("--", flag, " is about the whole dataset, and a worker makes a part of it (",
               WorkersFlag(line), "); give it to pack commit"));
  }
  return absl::OkStatus();
}

absl::Status CheckWords(const CommandLine& line) {
  const PackFlags& flags = line.pack();
  const bool has_source = !line.arguments.empty() && !line.arguments[0].empty();
  if (!has_source && flags.plan_file.empty()) {
    return absl::InvalidArgumentError(
        "which folder shall be packed? As in: pack photos/ -o shards/");
  }
  if (has_source && line.arguments[0] != "-" && !Exists(line.arguments[0]).value_or(true)) {
    const bool like_a_verb = line.arguments[0].find_first_not_of(kVerbLetters) == std::string::npos;
    if (!line.Given("verb") && like_a_verb) return NoSuchVerb(line.arguments[0]);
    return absl::InvalidArgumentError(
        StrCat("source ", EscapeForTerminal(line.arguments[0]), " does not exist"));
  }
  if (flags.out.empty() && !flags.dry_run) {
    const std::string out = has_source ? OutFor(line.arguments[0]) : "shards";
    CommandLine typed = line;
    const auto flags_end = std::find(typed.words.begin(), typed.words.end(), "--");
    typed.words.insert(flags_end, {"-o", out});
    return absl::InvalidArgumentError(StrCat("no output folder. Type:\n  ", TypedCommand(typed)));
  }
  RETURN_IF_ERROR(CheckWorkersWords(line));
  if (flags.output.compare && !flags.plan_file.empty()) {
    return absl::InvalidArgumentError(StrCat(
        "--compare lists the source as it is now, and --plan holds a listing of before. Give "
        "the source with the flags of the plan in its place, as in\n  ",
        TypedProgram(), " build ", has_source ? ShellQuoted(line.arguments[0]) : "SRC", " -o ",
        ShellQuoted(flags.out.empty() ? "OUT" : flags.out), " --compare"));
  }
  if (flags.output.compare && flags.output.overwrite) {
    return absl::InvalidArgumentError(
        "--compare keeps a dataset whose source has the same bytes, --overwrite replaces it; give "
        "one of them");
  }
  return absl::OkStatus();
}

// The bottleneck: the stage with the longest queue of work before it.
std::string LimitingStage(const BuildProgress& progress) {
  const int64_t reading = progress.reading, computing = progress.computing,
                verifying = progress.verifying;
  if (reading + computing + verifying == 0) return "";
  if (reading >= computing && reading >= verifying) return "reading";
  return computing >= verifying ? "packing" : "verifying";
}

ProgressView View(const BuildProgress& progress, uint64_t memory_ceiling) {
  ProgressView view;
  view.stage = "packing";
  view.done = progress.done_rows;
  view.total = progress.total_rows;
  view.bytes_in = progress.bytes_in;
  view.bytes_out = progress.bytes_out;
  view.skipped = progress.skipped_rows;
  view.shards_done = progress.done_shards;
  view.shards_total = progress.total_shards;
  view.memory_bytes = static_cast<uint64_t>(std::max<int64_t>(0, progress.memory_bytes));
  view.memory_ceiling = memory_ceiling;
  view.limit = LimitingStage(progress);
  return view;
}

// `progress.replacing`: this run began, or continued, the dataset next to OUT.
ExitCode FailResumable(const absl::Status& status, const CommandLine& line,
                       const BuildProgress& progress, Terminal& terminal) {
  const ExitCode code = Fail(WithCommands(status, line), terminal);
  if (progress.removed) return code;
  const bool replacing = progress.replacing;
  const std::string beside = OutputDir::BesideOf(line.pack().out);
  if (replacing && Exists(beside).value_or(false)) {
    terminal.Raw(
        IsReplacement(line.pack().out).value_or(false)
            ? StrCat(EscapeForTerminal(line.pack().out), " is the new dataset; ",
                     EscapeForTerminal(beside),
                     " holds what is left of the old one, which the same command removes.\n")
            : StrCat(EscapeForTerminal(line.pack().out), " is as it was; ",
                     EscapeForTerminal(beside),
                     " holds what was built to take its place. The same command goes on with it; "
                     "to give up, "
                     "remove that folder.\n"));
  }
  if (OutputDir::HoldsUnfinished(line.pack().out))
    SayHowToGoOn(code, "Finished shards are kept.", line, terminal);
  return code;
}

ExitCode ShowResult(const FinishedRun& run, const CommandLine& line, Terminal& terminal) {
  // The share of bad inputs; for a worker's part, the commit checks it.
  if (run.report.already_complete && !line.pack().IsWorker()) {
    const absl::Status allowed = CheckBudget(run.report.manifest, line.pack().max_skip);
    if (!allowed.ok()) return Fail(WithCommands(allowed, line), terminal);
  }
  const bool part = line.pack().IsWorker() && !run.report.already_complete;
  PublishedPage page;
  Results results;
  if (part) {
    SayPart(run, terminal);
    if (line.json && run.report.held.ok()) results.Write(PartJson(run));
  } else {
    SaySummary(run, terminal);
    page = WritePageOf(run.out, line, terminal);
    const std::string identity =
        StrCat("dataset ", IdentityText(run.report.manifest.Identity()), "\n");
    results.Write(line.json ? SummaryJson(run.report, run.out, run.seconds, run.bytes_in, page)
                            : identity);
  }
  if (!run.report.held.ok())
    return FinishResults(results, Fail(run.report.held, terminal), terminal);
  const ManifestCounts& counts = run.report.manifest.counts;
  // The commit judges what a worker had to leave out: to the caller, the worker is done.
  const bool lost = !line.pack().IsWorker() && counts.skipped + counts.failed > 0;
  return FinishResults(results, Worse(page.code, lost ? ExitCode::kSkipped : ExitCode::kDone),
                       terminal);
}

}  // namespace

ExitCode RunBuild(const CommandLine& line, Terminal& terminal) {
  const PackFlags& flags = line.pack();
  absl::Status status = CheckWords(line);
  if (!status.ok()) return Fail(status, terminal);
  if (flags.dry_run) return RunPlan(line, terminal);
  if (flags.worker.stop_with_stdin) StopWithStandardInput();
  for (const std::string& source : line.arguments) {
    status = CheckOut(flags.out, source);
    if (!status.ok()) return Fail(status, terminal);
  }
  status = CheckPageOf(flags.out, line, line.arguments);
  if (!status.ok()) return Fail(status, terminal);

  const auto begin = std::chrono::steady_clock::now();
  IoPool pool(line.run.io_depth);
  absl::StatusOr<Prepared> prepared = Prepare(line, pool, terminal);
  if (!prepared.ok()) return Fail(prepared.status(), terminal);
  if (line.arguments.empty()) {
    const std::string& root = prepared->plan.listing().root;
    status = CheckOut(flags.out, root);
    if (status.ok()) status = CheckPageOf(flags.out, line, {root});
    if (!status.ok()) return Fail(status, terminal);
  }

  BuildOptions options;
  options.out = flags.out;
  options.jobs = line.run.Jobs();
  options.memory_bytes = line.run.MemoryBytes();
  options.output = flags.output;
  options.output.fsync = line.run.fsync;
  if (flags.IsWorker()) {
    const absl::StatusOr<WorkerOptions> worker =
        WorkerOf(flags.worker, prepared->plan.shards().size(),
                 [](const char* name) -> const char* { return ::getenv(name); });
    if (!worker.ok()) return Fail(worker.status(), terminal);
    options.output.worker = *worker;
    status = CheckNamedShards(prepared->plan, options.output);
    if (!status.ok()) return Fail(status, terminal);
  }
  options.output.planned_source = prepared->planned_source;
  options.max_skip = flags.max_skip;
  options.plan_is_given = !flags.plan_file.empty();
  options.tool = ToolVersions();
  options.expect = line.run.expect;
  // From here on a signal must not end the process at once: there is work to finish.
  EndAtOnceOnSignal(false);
  BuildProgress counts;
  Progress progress(terminal);
  progress.Watch([&] { return View(counts, options.memory_bytes); });
  absl::StatusOr<RunReport> report = [&] {
    const StopNotice notice(terminal);
    return Build(prepared->plan, *prepared->source, options, pool, counts, StopSignal());
  }();
  progress.End();
  if (!report.ok()) return FailResumable(report.status(), line, counts, terminal);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const FinishedRun run = {prepared->plan,   *report,
                           flags.out,        seconds,
                           counts.bytes_in,  options.plan_is_given,
                           flags.IsWorker(), options.output.planned_source};
  return ShowResult(run, line, terminal);
}

}  // namespace shardpack::cli
