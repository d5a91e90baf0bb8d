// StopNotice: prints what a run is waiting for if it has not ended shortly after a stop signal.
//
//   const StopNotice notice(terminal);
//   absl::Status done = WriteAll(...);    // which checks StopSignal() between its writes
//
// Lifetime: borrows the terminal; the destructor joins its thread.
// Thread-safety: one owner.
#ifndef SHARDPACK_CLI_TERMINAL_STOP_NOTICE_H_
#define SHARDPACK_CLI_TERMINAL_STOP_NOTICE_H_

#include <condition_variable>
#include <mutex>
#include <thread>

#include "cli/terminal/terminal.h"

namespace shardpack::cli {

class StopNotice {
 public:
  explicit StopNotice(Terminal& terminal);
  ~StopNotice();
  StopNotice(const StopNotice&) = delete;
  StopNotice& operator=(const StopNotice&) = delete;

 private:
  void Run(Terminal& terminal);

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;  // last, because it uses the others
};

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_STOP_NOTICE_H_
