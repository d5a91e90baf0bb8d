#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/flags/failure.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop_signal.h"
#include "converters/threads/io_pool.h"
#include "formats/core/manifest.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"
#include "jobs/against_source.h"
#include "jobs/open_input.h"
#include "jobs/unlisted_shards.h"
#include "validators/validator.h"

namespace shardpack::cli {
namespace {

absl::StatusOr<ValidateOptions> Options(const CommandLine& line) {
  const ValidateFlags& flags = line.validate();
  const bool quick = flags.level == "quick";
  if (quick && line.Given("sample")) {
    return absl::InvalidArgumentError(
        "--sample is for --level full and deep; quick reads little anyway");
  }
  if (quick && !flags.against.empty()) {
    return absl::InvalidArgumentError("--against compares every byte; give it with --level full");
  }
  if (flags.sample <= 0)
    return absl::InvalidArgumentError("--sample: expected a share above 0, as in 5%");
  if (flags.subsets > UINT32_MAX)
    return absl::InvalidArgumentError("--subset: expected fewer parts");
  ValidateOptions options;
  options.level = quick                   ? ValidationLevel::kQuick
                  : flags.level == "deep" ? ValidationLevel::kDeep
                                          : ValidationLevel::kFull;
  options.jobs = line.run.Jobs();
  options.subset_index = static_cast<uint32_t>(flags.subset - 1);
  options.subset_count = static_cast<uint32_t>(flags.subsets);
  options.sample_percent = flags.sample * 100;
  options.max_seconds = flags.max_seconds;
  options.expect = line.run.expect;
  return options;
}

absl::StatusOr<ValidationReport> Validate(const CommandLine& line, Terminal& terminal) {
  const ValidateFlags& flags = line.validate();
  ASSIGN_OR_RETURN(const ValidateOptions options, Options(line));
  ASSIGN_OR_RETURN(const InputKind kind, KindOfInput(line.arguments));
  const bool dataset = kind == InputKind::kDataset;
  if (!dataset && (line.run.expect.has_value() || !flags.against.empty())) {
    return absl::InvalidArgumentError(
        "--expect and --against need a dataset with a manifest, not lone shards");
  }
  ValidateOptions against = options;
  std::string gap;
  if (!flags.against.empty()) {
    IoPool pool(line.run.io_depth);
    const absl::StatusOr<Manifest> manifest =
        Manifest::Read(line.arguments[0]);  // the validator reports damage
    ASSIGN_OR_RETURN(AgainstSource source,
                     OpenAgainst(flags.against, manifest.ok() ? *manifest : Manifest(), pool));
    against.open_source = std::move(source.open);
    against.against_parts = std::move(source.parts);
    against.visit_source = std::move(source.visit);
    gap = std::move(source.gap);
  }
  EndAtOnceOnSignal(false);
  ValidationProgress counts;
  Progress progress(terminal);
  progress.Watch([&] {
    ProgressView view;
    view.stage = "validating";
    view.unit = "shards";
    view.done = counts.done_shards;
    view.total = counts.total_shards;
    view.bytes_in = counts.done_bytes;
    view.bytes_total = counts.total_bytes;
    view.errors = counts.findings;
    return view;
  });
  if (dataset) {
    absl::StatusOr<ValidationReport> report =
        ValidateDataset(line.arguments[0], AllFormats(), against, counts, StopSignal());
    if (report.ok() && !gap.empty()) report->not_checked.push_back(gap);
    const absl::StatusOr<Manifest> manifest = Manifest::Read(line.arguments[0]);
    // In a folder made by pack this is an error, which was already reported.
    if (report.ok() && manifest.ok() && manifest->indexed_in_place()) {
      std::string unlisted = UnlistedShards(line.arguments[0], *manifest);
      if (!unlisted.empty()) report->not_checked.push_back(std::move(unlisted));
    }
    return report;
  }
  return ValidateShards(line.arguments, AllFormats(), options, counts, StopSignal());
}

}  // namespace

ExitCode RunValidate(const CommandLine& line, Terminal& terminal) {
  absl::StatusOr<ValidationReport> report = Validate(line, terminal);
  if (!report.ok()) return Fail(report.status(), terminal);
  const bool nothing = report->shards > 0 && report->shards_checked == 0 && report->errors() == 0;
  const bool too_short = nothing && report->stopped && StopSignal() == 0;
  if (nothing && line.Given("subset"))
    report->not_checked.push_back("any shard: --subset has none");
  Results results;
  results.Write(line.json ? ToJson(*report) : line.quiet ? FindingsText(*report) : ToText(*report));
  ExitCode code = report->errors() > 0 ? ExitCode::kDamage : ExitCode::kDone;
  if (too_short) {
    code = Fail(absl::InvalidArgumentError(
                    "no shard was checked: --max-duration was over before the first one"),
                terminal);
  } else if (nothing && StopSignal() == 0) {
    terminal.Warn("no shard was checked");
  }
  if (const int signal = StopSignal(); report->stopped && signal != 0) {
    terminal.Error("interrupted");  // the report is the result, also with --json
    code = Worse(code, ExitCodeOf(absl::CancelledError(), signal));
  }
  return FinishResults(results, code, terminal);
}

}  // namespace shardpack::cli
