// The page of `pack report`: as that command makes it, and as --report asks for it once a dataset
// is published.
//
//   RETURN_IF_ERROR(CheckPageOf("shards", line, {"photos"}));          // before the work
//   const PublishedPage page = WritePageOf("shards", line, terminal);  // after it
//   results.Write(SummaryJson(report, out, seconds, bytes, page));
//
// Thread-safety: as Terminal.
// Errors: InvalidArgument for a place where no page may be; FailedPrecondition for a file in the
// way that is not such a page. What goes wrong with the page leaves the dataset as it is.
// Units: bytes.
#ifndef SHARDPACK_CLI_COMMANDS_REPORT_PAGE_H_
#define SHARDPACK_CLI_COMMANDS_REPORT_PAGE_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/flags/command_line.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/terminal.h"
#include "readers/dataset/dataset.h"
#include "validators/looking/dataset_report.h"

namespace shardpack::cli {

// MakeReport with progress.
absl::StatusOr<DatasetReport> MakePage(const Dataset& dataset, const ReportOptions& options,
                                       Terminal& terminal);

// What a person would call a dataset of these paths.
std::string DatasetName(const std::vector<std::string>& paths);

// Whether --report can be done at the end; Ok if it was not given. `out` is the dataset, `inputs`
// what it is made of.
absl::Status CheckPageOf(const std::string& out, const CommandLine& line,
                         const std::vector<std::string>& inputs);

// The page of a run of build, convert or commit.
struct PublishedPage {
  bool asked = false;
  std::string path;
  uint64_t bytes = 0;               // 0: it could not be written
  ExitCode code = ExitCode::kDone;  // of the page alone: also of one that shows damage

  // Adds "report" to the summary, if it was asked for.
  void AddTo(nlohmann::json& summary) const;
};

// Writes what --report asks for, and says so, or why not and what to type; nothing without it.
PublishedPage WritePageOf(const std::string& out, const CommandLine& line, Terminal& terminal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_REPORT_PAGE_H_
