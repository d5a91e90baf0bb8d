// Summary: the result of a build, for people (stderr) and for programs (one JSON object).
//
//   SaySummary(run, terminal);
//   results.Write(SummaryJson(report, "OUT", seconds, bytes_read, page));  // schema "shardpack.build/1"
//
// Lifetime: borrows during the call.
// Thread-safety: pure except for the terminal.
// Units: bytes, seconds.
#ifndef SHARDPACK_CLI_COMMANDS_SUMMARY_H_
#define SHARDPACK_CLI_COMMANDS_SUMMARY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/commands/report_page.h"
#include "cli/terminal/terminal.h"
#include "converters/building/build.h"
#include "converters/planning/plan.h"
#include "formats/core/manifest.h"

namespace shardpack::cli {

struct FinishedRun {
  const Plan& plan;
  const RunReport& report;
  std::string out;
  double seconds = 0;
  uint64_t bytes_in = 0;       // bytes read in this run
  bool plan_is_given = false;  // it decides what flags would decide otherwise
  bool part = false;           // a worker's
  std::string source = {};     // as given in this run; "" = that of the plan
};

// Of all shards.
uint64_t ShardBytes(const Manifest& manifest);

// "packed    9,998 of 10,000": aligns the text after the first word.
void SayRow(std::string_view word, std::string_view text, Terminal& terminal);
void SaySummary(const FinishedRun& run, Terminal& terminal);
std::string SummaryJson(const RunReport& report, const std::string& out, double seconds,
                        uint64_t bytes_in, const PublishedPage& page);

// Prints the result of a worker's part, which has no manifest yet.
void SayPart(const FinishedRun& run, Terminal& terminal);
std::string PartJson(const FinishedRun& run);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_SUMMARY_H_
