#include "cli/failure.h"

#include <string>

#include "cli/stop_signal.h"

namespace shardpack::cli {

ExitCode Fail(const absl::Status& status, Terminal& terminal) {
  const int signal = StopSignal();
  if (absl::IsCancelled(status) && signal != 0) {
    terminal.Error("interrupted");
  } else {
    terminal.Error(std::string(status.message()));
  }
  return ExitCodeOf(status, signal);
}

ExitCode FinishResults(Results& results, ExitCode code, Terminal& terminal) {
  const absl::Status written = results.Finish();
  return written.ok() ? code : Worse(code, Fail(written, terminal));
}

ExitCode PrintResult(std::string_view text, Terminal& terminal) {
  Results results;
  results.Write(text);
  return FinishResults(results, ExitCode::kDone, terminal);
}

}  // namespace shardpack::cli
