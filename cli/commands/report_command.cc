#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/commands/report_page.h"
#include "cli/commands/result_file.h"
#include "cli/commands/selection.h"
#include "cli/flags/failure.h"
#include "cli/flags/given_file.h"
#include "cli/terminal/units.h"
#include "formats/io/escape.h"
#include "formats/io/status_macros.h"
#include "validators/looking/dataset_report.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

constexpr uint64_t kMaxValidationBytes = uint64_t{64} << 20;

// The exit code is that of the page: the validation has had its own.
void WarnValidation(const ValidationFacts& facts, const std::string& identity, Terminal& terminal) {
  if (facts.identity != identity) {
    terminal.Warn("the validation is not of this dataset; the page says so");
  } else if (facts.errors > 0) {
    terminal.Warn(StrCat("the validation has found ", Counted(facts.errors, "error", "errors"),
                         "; the page shows them"));
  }
}

absl::StatusOr<DatasetReport> Report(const CommandLine& line, Terminal& terminal) {
  const LookFlags& flags = line.look();
  if (flags.out.empty())
    return InvalidArgumentError("where does the page go? pack report OUT -o report.html");
  std::vector<std::string> inputs = line.arguments;
  if (!flags.validation.empty()) inputs.push_back(flags.validation);
  RETURN_IF_ERROR(CheckResultFile("-o", flags.out, inputs));
  RETURN_IF_ERROR(CheckFolderOf("-o", flags.out));
  ReportOptions options;
  options.name = DatasetName(line.arguments);
  options.thumbs = flags.thumbs;
  options.max_bytes = flags.max_bytes;
  options.near = flags.near;
  options.distance = flags.distance;
  options.jobs = line.run.Jobs();
  if (!flags.validation.empty()) {
    ASSIGN_OR_RETURN(const std::string text,
                     ReadGivenFile("--validation", flags.validation, kMaxValidationBytes));
    absl::StatusOr<ValidationFacts> facts = ParseValidation(text);
    if (!facts.ok()) {
      return InvalidArgumentError(StrCat("--validation ", EscapeForTerminal(flags.validation), ": ",
                                         std::string(facts.status().message())));
    }
    options.validation = *std::move(facts);
  }
  absl::StatusOr<Dataset> dataset =
      OpenShownDamaged(line.arguments, terminal, options.damaged_files);
  RETURN_IF_ERROR(dataset.status());
  if (options.validation)
    WarnValidation(*options.validation, IdentityText(dataset->identity()), terminal);
  if (dataset->manifest() != nullptr) options.folder = line.arguments[0];
  return MakePage(*dataset, options, terminal);
}

}  // namespace

ExitCode RunReportPage(const CommandLine& line, Terminal& terminal) {
  if (!line.look().near && line.Given("distance"))
    return Fail(InvalidArgumentError("--distance is for --near"), terminal);
  const absl::StatusOr<DatasetReport> report = Report(line, terminal);
  if (!report.ok()) return Fail(report.status(), terminal);
  const std::string& out = line.look().out;
  if (const absl::Status written = WriteResultFile(out, report->html); !written.ok())
    return Fail(written, terminal);
  if (report->damaged)
    terminal.Warn("the dataset is damaged; the page says which parts could be read");
  Results results;
  if (line.json) {
    const nlohmann::json json = {{"schema", "shardpack.report/1"},
                                 {"out", PercentEscape(out)},
                                 {"bytes", report->html.size()},
                                 {"damaged", report->damaged}};
    results.Write(json.dump() + "\n");
  } else if (!line.quiet) {
    results.Write(
        StrCat("wrote ", FormatBytes(report->html.size()), " to ", EscapeForTerminal(out), "\n"));
  }
  return FinishResults(results, report->damaged ? ExitCode::kDamage : ExitCode::kDone, terminal);
}

}  // namespace shardpack::cli
