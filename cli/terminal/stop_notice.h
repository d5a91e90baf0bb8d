// StopNotice: says what a run waits for that was told to stop by a signal and has not ended a
// moment later.
//
//   const StopNotice notice(terminal);
//   absl::Status done = WriteAll(...);    // which looks at StopSignal() between its writes
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
  std::thread thread_;  // last: it uses the others
};

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_STOP_NOTICE_H_
