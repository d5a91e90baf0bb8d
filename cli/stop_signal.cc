#include "cli/stop_signal.h"

#include <signal.h>
#include <unistd.h>

namespace shardpack::cli {
namespace {

std::atomic<int> stop{0};
std::atomic<bool> at_once{true};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "only lock-free atomics may be touched by a signal handler");

void OnSignal(int signal) {
  int none = 0;
  if (stop.compare_exchange_strong(none, signal) && !at_once) return;
  // The live block ends without a line end; there is no time to erase it.
  if (::isatty(STDERR_FILENO) == 1 && ::write(STDERR_FILENO, "\n", 1) != 1) ::_exit(128 + signal);
  ::_exit(128 + signal);
}

}  // namespace

void InstallSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Long reads and writes go on; whoever waits looks at StopSignal.
  action.sa_flags = SA_RESTART;
  // A signal that was ignored from the start (nohup, a background job) stays ignored.
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction old = {};
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &action, nullptr);
  ::sigaction(SIGPIPE, &action, nullptr);
}

const std::atomic<int>& StopSignal() { return stop; }

void EndAtOnceOnSignal(bool end) { at_once = end; }

}  // namespace shardpack::cli
