// PackJob: a command of `pack` under way in a child process.
//
//   auto job = PackJob::Start(program, *JobWords({"validate", "shards"}));
//   while ((*job)->Poll(-1, &progress) != PackJob::Seen::kEnd) Show(progress);
//   std::string result = (*job)->result();                        // JSON
//
// A thread of its own, with all signals blocked, takes the child's output, so the child never waits
// for a slow caller.
//
// Lifetime: the destructor interrupts a job that still runs, waits for it for kPatience, then kills
// it: what it has written is then as after a crash, and the same command goes on with it.
// Thread-safety: Cancel, ended and result from any thread; one caller of Poll at a time. Not in a
// forked child: there everything does nothing, and Poll says kEnd.
// Errors: those of starting it. That pack fails is a result.
// Units: bytes, seconds, milliseconds.
#ifndef SHARDPACK_API_JOBS_PACK_JOB_H_
#define SHARDPACK_API_JOBS_PACK_JOB_H_

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "api/jobs/child_process.h"

namespace shardpack {

// A line of pack's --progress json. The text lives as long as the job.
struct JobProgress {
  std::string_view stage;
  uint64_t done = 0, total = 0;  // total 0: not known
  uint64_t bytes_in = 0, bytes_total = 0;
  double seconds = 0, eta_seconds = -1;  // eta < 0: not known
};

class PackJob {
 public:
  static constexpr int kPatienceSeconds = 10;
  enum class Seen { kProgress, kNothing, kEnd };

  // `words` are those of JobWords. `at_end` is called with the exit code, on another thread, before
  // the job counts as ended.
  static absl::StatusOr<std::unique_ptr<PackJob>> Start(
      const std::string& program, const std::vector<std::string>& words,
      const std::string& folder = "", std::function<void(int exit_code)> at_end = nullptr);
  ~PackJob();
  PackJob(const PackJob&) = delete;
  PackJob& operator=(const PackJob&) = delete;

  // Until there is news (if `progress` is not nullptr: it gets the newest), the job has ended, or
  // `wait_ms` (-1: for ever) have passed.
  Seen Poll(int64_t wait_ms, JobProgress* progress);
  // As Ctrl-C: pack ends what must not be cut off, and can go on later. A second time it ends at
  // once.
  void Cancel();
  bool ended() const;
  bool InOwnProcess() const;
  // As a shell gives it: 128 + N for signal N; -1 before the end, or if somebody else in this
  // process has waited for the child.
  int exit_code() const;
  // A JSON object (docs/library.md); "" before the end. The text lives as long as the job.
  const std::string& result() const;

 private:
  struct Core;
  explicit PackJob(std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;
};

}  // namespace shardpack

#endif  // SHARDPACK_API_JOBS_PACK_JOB_H_
