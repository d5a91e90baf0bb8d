#include <sys/stat.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/stop_signal.h"
#include "cli/summary.h"
#include "cli/version.h"
#include "converters/commit.h"
#include "converters/output_dir.h"
#include "formats/formats.h"
#include "formats/io/file.h"

namespace shardpack::cli {
namespace {

// A dataset that is published already.
ExitCode SayPublished(const Manifest& manifest, const CommandLine& line, Terminal& terminal) {
  const std::string identity = IdentityText(manifest.Identity());
  if (line.expect.has_value() && *line.expect != manifest.Identity()) {
    return Fail(absl::DataLossError(absl::StrCat("this dataset is ", identity, ", --expect says ",
                                                 IdentityText(*line.expect))),
                terminal);
  }
  terminal.Say(absl::StrCat(EscapeForTerminal(line.arguments[0]),
                            " is published already; nothing to do"));
  return PrintResult(absl::StrCat("dataset ", identity, "\n"), terminal);
}

absl::StatusOr<RunReport> Publish(const Plan& plan, const CommandLine& line, IoPool& pool) {
  absl::StatusOr<OutputDir> out = OutputDir::Open(line.arguments[0], plan, line.output, pool);
  if (!out.ok()) return out.status();
  RunReport report;
  report.kept_shards = out->finished().size();
  report.skips = AllSkips(plan, out->finished());
  absl::StatusOr<Manifest> manifest =
      Commit(plan, out->finished(), *out, {line.max_skip, ToolVersions(), line.expect});
  if (!manifest.ok()) return manifest.status();
  report.manifest = *std::move(manifest);
  return report;
}

}  // namespace

ExitCode RunCommit(const CommandLine& line, Terminal& terminal) {
  const std::string& out = line.arguments[0];
  struct stat facts;
  if (::stat(out.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
                    EscapeForTerminal(out), " is not a folder; name the OUT of the workers")),
                terminal);
  }
  const absl::StatusOr<Manifest> manifest = Manifest::Read(out);
  if (manifest.ok()) return SayPublished(*manifest, line, terminal);
  if (!absl::IsNotFound(manifest.status())) return Fail(manifest.status(), terminal);

  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<std::string> bytes = OutputDir::ReadPlanBytes(out);
  if (!bytes.ok()) return Fail(bytes.status(), terminal);
  absl::StatusOr<Plan> plan = Plan::FromBytes(*bytes, FindFormat);
  if (!plan.ok()) return Fail(plan.status(), terminal);
  EndAtOnceOnSignal(false);
  IoPool pool(line.io_depth);
  absl::StatusOr<RunReport> report = Publish(*plan, line, pool);
  if (!report.ok()) return Fail(report.status(), terminal);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const FinishedRun run = {*plan, *report, out, seconds, 0};
  SaySummary(run, terminal);
  Results results;
  results.Write(line.json
                    ? SummaryJson(run)
                    : absl::StrCat("dataset ", IdentityText(report->manifest.Identity()), "\n"));
  const bool lost = report->manifest.counts.skipped + report->manifest.counts.failed > 0;
  return FinishResults(results, lost ? ExitCode::kSkipped : ExitCode::kDone, terminal);
}

}  // namespace shardpack::cli
