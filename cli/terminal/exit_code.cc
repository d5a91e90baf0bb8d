#include "cli/terminal/exit_code.h"

#include <signal.h>

#include <algorithm>
#include <array>

namespace shardpack::cli {
namespace {

constexpr std::array<ExitCodeSpec, 12> kExitCodes = {{
    {ExitCode::kDone, "done",
     "Done: everything was packed, or everything that was checked is valid."},
    {ExitCode::kInternal, "internal error", "Internal error: please report it."},
    {ExitCode::kUsage, "usage",
     "Usage: a bad flag or value, a source that is missing or empty, an OUT that cannot be one, "
     "a dataset of another version of pack, a --max-duration within which no shard is validated."},
    {ExitCode::kSkipped, "done, inputs skipped",
     "Done, but inputs were skipped or records withheld; all of them are listed."},
    {ExitCode::kDamage, "damage",
     "Damage was found; or more inputs were bad than --max-skip allows, a shard was left without a "
     "sample, or the dataset is not that of --expect: nothing was published."},
    {ExitCode::kConflict, "conflict",
     "Conflict: the output exists, belongs to another plan, or is locked by another run; or a "
     "dataset was replaced while it was read."},
    {ExitCode::kIo, "I/O error or no space",
     "I/O error, no permission or no space left; a build resumes when the same command is run "
     "again."},
    {ExitCode::kHeld, "shards or parts missing or held",
     "Shards or parts of a list are missing, or other workers hold them: nothing was published "
     "yet."},
    {ExitCode::kFound, "found, with --check",
     "Compared, and something was found: a difference, a copy, an empty class; only with --check."},
    {ExitCode::kHungUp, "hung up",
     "Hung up (SIGHUP: the terminal or connection has ended); a build resumes when the same "
     "command is run again."},
    {ExitCode::kInterrupted, "interrupted",
     "Interrupted (SIGINT); a build resumes when the same command is run again."},
    {ExitCode::kTerminated, "terminated",
     "Terminated (SIGTERM); a build resumes when the same command is run again."},
}};

// From least to most severe.
constexpr std::array<ExitCode, 12> kByGravity = {
    ExitCode::kDone,     ExitCode::kFound,    ExitCode::kSkipped,    ExitCode::kUsage,
    ExitCode::kHeld,     ExitCode::kConflict, ExitCode::kIo,         ExitCode::kDamage,
    ExitCode::kInternal, ExitCode::kHungUp,   ExitCode::kTerminated, ExitCode::kInterrupted};

}  // namespace

std::span<const ExitCodeSpec> AllExitCodes() { return kExitCodes; }

ExitCode Worse(ExitCode a, ExitCode b) {
  const auto gravity = [](ExitCode code) {
    return std::find(kByGravity.begin(), kByGravity.end(), code) - kByGravity.begin();
  };
  return gravity(a) < gravity(b) ? b : a;
}

ExitCode ExitCodeOf(const absl::Status& status, int stop_signal) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kDone;
    case absl::StatusCode::kInvalidArgument:
      return ExitCode::kUsage;
    // For a file: it cannot be used this way, although nothing is wrong with it (a compressed
    // shard).
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kUsage;
    case absl::StatusCode::kDataLoss:
      return ExitCode::kDamage;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
      return ExitCode::kConflict;
    case absl::StatusCode::kAborted:
      return ExitCode::kHeld;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kIo;
    case absl::StatusCode::kCancelled:
      if (stop_signal == SIGTERM) return ExitCode::kTerminated;
      if (stop_signal == SIGHUP) return ExitCode::kHungUp;
      return stop_signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kInternal;
    default:
      return ExitCode::kInternal;
  }
}

}  // namespace shardpack::cli
