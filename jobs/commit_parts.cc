#include "jobs/commit_parts.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/publishing/output_dir.h"
#include "converters/publishing/skip_budget.h"
#include "formats/formats.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"

namespace shardpack {

namespace {

absl::StatusOr<RunReport> CommitAll(const Plan& plan, const std::string& out,
                                    const OutputOptions& output, const CommitOptions& options,
                                    IoPool& pool) {
  ASSIGN_OR_RETURN(OutputDir folder, OutputDir::Open(out, plan, output, pool));
  RunReport report;
  if (folder.complete()) {  // another commit finished first
    ASSIGN_OR_RETURN(report.manifest, Manifest::Read(folder.path()));
    report.already_complete = true;
    return report;
  }
  report.kept_shards = folder.finished().size();
  ASSIGN_OR_RETURN(std::vector<Skip> skips, AllSkips(plan, folder.finished()));
  report.skips = SkipsOfToday(plan, plan.listing().root, std::move(skips));
  ASSIGN_OR_RETURN(report.manifest, Commit(plan, folder.finished(), folder, options));
  return report;
}

}  // namespace

absl::StatusOr<CommittedParts> CommitParts(const std::string& out, const OutputOptions& output,
                                           const CommitOptions& options, IoPool& pool) {
  absl::StatusOr<Plan> plan = OutputDir::OpenPlan(out, FindFormat);
  // Another commit may have published it meanwhile, and removed the plan.
  if (!plan.ok() && Manifest::Read(out).ok())
    return absl::NotFoundError(absl::StrCat(EscapeForTerminal(out), " was published just now"));
  if (!plan.ok()) return plan.status();
  OutputOptions only_commit = output;
  only_commit.only_commit = true;
  ASSIGN_OR_RETURN(RunReport report, CommitAll(*plan, out, only_commit, options, pool));
  return CommittedParts{*std::move(plan), std::move(report)};
}

}  // namespace shardpack
