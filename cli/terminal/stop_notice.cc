#include "cli/terminal/stop_notice.h"

#include <chrono>

#include "cli/terminal/stop_signal.h"

namespace shardpack::cli {

StopNotice::StopNotice(Terminal& terminal) : thread_([this, &terminal] { Run(terminal); }) {}

StopNotice::~StopNotice() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void StopNotice::Run(Terminal& terminal) {
  std::unique_lock lock(mutex_);
  int waited = 0;
  while (!wake_.wait_for(lock, std::chrono::milliseconds(200), [&] { return ended_; })) {
    if (StopSignal() == 0 || ++waited != 5) continue;
    terminal.Warn(
        "stopping: waiting for what is being written right now; a second Ctrl-C (or SIGTERM) ends "
        "at once, and what is finished is kept either way");
  }
}

}  // namespace shardpack::cli
