#include <errno.h>
#include <sys/stat.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/report_page.h"
#include "cli/commands/summary.h"
#include "cli/flags/failure.h"
#include "cli/terminal/seconds_since.h"
#include "cli/terminal/stop_notice.h"
#include "cli/terminal/stop_signal.h"
#include "cli/terminal/version.h"
#include "converters/building/build.h"
#include "converters/publishing/commit.h"
#include "converters/publishing/output_dir.h"
#include "converters/publishing/published.h"
#include "converters/publishing/skip_budget.h"
#include "formats/io/file.h"
#include "jobs/commit_parts.h"

namespace shardpack::cli {
namespace {

// Prints a dataset that is already published: an earlier commit may have been killed right after.
ExitCode SayPublished(const Manifest& manifest, const CommandLine& line, Terminal& terminal) {
  const auto begin = std::chrono::steady_clock::now();
  const absl::StatusOr<std::string> notice =
      OutputDir::FinishPublished(line.arguments[0], /*with_others=*/true);
  if (!notice.ok()) return Fail(notice.status(), terminal);
  if (!notice->empty()) terminal.Warn(*notice);
  absl::Status status = CheckPublishedFiles(line.arguments[0], manifest);
  if (!status.ok()) return Fail(status, terminal);
  status = CheckIdentity(manifest, line.run.expect);
  if (!status.ok()) return Fail(status, terminal);
  status = CheckBudget(manifest, line.pack().max_skip);
  if (!status.ok()) return Fail(WithCommands(status, line), terminal);
  terminal.Say(
      absl::StrCat(EscapeForTerminal(line.arguments[0]),
                   " is published already, and its files have their sizes; nothing to do"));
  const PublishedPage page = WritePageOf(line.arguments[0], line, terminal);
  Results results;
  if (line.json) {
    const RunReport report = {.manifest = manifest,
                              .kept_shards = manifest.shards.size(),
                              .already_complete = true,
                              .skips = {}};
    results.Write(SummaryJson(report, line.arguments[0], SecondsSince(begin), 0, page));
  } else {
    results.Write(absl::StrCat("dataset ", IdentityText(manifest.Identity()), "\n"));
  }
  const bool lost = manifest.counts.skipped + manifest.counts.failed > 0;
  return FinishResults(results, Worse(page.code, lost ? ExitCode::kSkipped : ExitCode::kDone),
                       terminal);
}

// What a commit may end with when another one publishes the same meanwhile, and removes what this
// one works with. An error of the disk, or a damaged shard, is not one of these.
bool MayBeFromAnother(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status) ||
         absl::IsAlreadyExists(status) || absl::IsAborted(status);
}

}  // namespace

ExitCode RunCommit(const CommandLine& line, Terminal& terminal) {
  const std::string& out = line.arguments[0];
  struct stat facts;
  const int error = ::stat(out.c_str(), &facts) == 0 ? 0 : errno;
  if (error != 0 && !IsAboutThePath(error)) return Fail(IoStatus("look at", out, error), terminal);
  if (error != 0 || !S_ISDIR(facts.st_mode)) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
                    EscapeForTerminal(out), " is not a folder; name the OUT of the workers")),
                terminal);
  }
  if (const absl::Status page = CheckPageOf(out, line, {}); !page.ok()) return Fail(page, terminal);
  const absl::StatusOr<Manifest> manifest = Manifest::Read(out);
  if (manifest.ok()) return SayPublished(*manifest, line, terminal);
  if (!absl::IsNotFound(manifest.status()))
    return Fail(OutputDir::DamagedManifest(out, manifest.status()), terminal);

  const auto begin = std::chrono::steady_clock::now();
  EndAtOnceOnSignal(false);
  IoPool pool(line.run.io_depth);
  OutputOptions output = line.pack().output;
  output.fsync = line.run.fsync;
  output.stop = &StopSignal();
  const absl::StatusOr<CommittedParts> committed = [&] {
    const StopNotice notice(terminal);
    return CommitParts(out, output, {line.pack().max_skip, ToolVersions(), line.run.expect}, pool);
  }();
  if (!committed.ok()) {
    const absl::StatusOr<Manifest> published = Manifest::Read(out);
    if (MayBeFromAnother(committed.status()) && published.ok())
      return SayPublished(*published, line, terminal);
    const ExitCode code = Fail(WithCommands(committed.status(), line), terminal);
    if (absl::IsCancelled(committed.status()))
      SayHowToGoOn(code, "Nothing was published.", line, terminal);
    return code;
  }
  const RunReport& report = committed->report;
  const double seconds = SecondsSince(begin);
  const FinishedRun run = {committed->plan, report, out, seconds, 0, /*plan_is_given=*/true};
  SaySummary(run, terminal);
  const PublishedPage page = WritePageOf(out, line, terminal);
  Results results;
  results.Write(line.json
                    ? SummaryJson(report, out, seconds, 0, page)
                    : absl::StrCat("dataset ", IdentityText(report.manifest.Identity()), "\n"));
  const bool lost = report.manifest.counts.skipped + report.manifest.counts.failed > 0;
  return FinishResults(results, Worse(page.code, lost ? ExitCode::kSkipped : ExitCode::kDone),
                       terminal);
}

}  // namespace shardpack::cli
