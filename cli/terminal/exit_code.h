// ExitCode: the table of `pack`'s exit codes, and the mapping of outcomes to them.
//
//   ExitCode code = ExitCodeOf(status, stop_signal);
//   code = Worse(code, ExitCode::kSkipped);   // 4 beats 6 beats 5 beats 7 beats 2 beats 3 beats 0
//   return static_cast<int>(code);
#ifndef SHARDPACK_CLI_TERMINAL_EXIT_CODE_H_
#define SHARDPACK_CLI_TERMINAL_EXIT_CODE_H_

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace shardpack::cli {

enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,
  kUsage = 2,
  kSkipped = 3,
  kDamage = 4,
  kConflict = 5,
  kIo = 6,
  kHeld = 7,
  kFound = 8,
  kHungUp = 129,
  kInterrupted = 130,
  kTerminated = 143,
};

struct ExitCodeSpec {
  ExitCode code;
  std::string_view brief;    // for the end of a help page
  std::string_view meaning;  // for the manual
};

// All exit codes, ascending.
std::span<const ExitCodeSpec> AllExitCodes();

// The exit code for several outcomes of one run: signal > 1 > 4 > 6 > 5 > 7 > 2 > 3 > 8 > 0.
ExitCode Worse(ExitCode a, ExitCode b);

// `stop_signal`: the signal that asked the run to end, 0 for none; it decides the code of a
// Cancelled status.
ExitCode ExitCodeOf(const absl::Status& status, int stop_signal);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_EXIT_CODE_H_
