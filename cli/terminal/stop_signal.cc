#include "cli/terminal/stop_signal.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <string_view>
#include <thread>

namespace shardpack::cli {
namespace {

std::atomic<int> stop{0};
std::atomic<bool> at_once{true};
std::atomic<int> lines_drawn{0};
std::atomic<bool> ends_with_json{false}, within_line{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "only lock-free atomics may be touched by a signal handler");

// Only calls async-signal-safe functions.
void EraseBlock() {
  if (lines_drawn == 0) {
    if (::isatty(STDERR_FILENO) == 1 && ::write(STDERR_FILENO, "\n", 1) < 0) return;
    return;
  }
  char text[64] = "\r";
  size_t size = 1;
  // Other output of the terminal, such as ^C, is in the block's last line.
  for (int up = lines_drawn; up > 1 && size + 8 < sizeof(text); --up) {
    for (const char c : {'\033', '[', 'A'}) text[size++] = c;
  }
  for (const char c : {'\033', '[', 'J'}) text[size++] = c;
  if (::write(STDERR_FILENO, text, size) < 0) return;
}

// What FinishCommand prints. Only calls async-signal-safe functions.
void WriteJson(int signal) {
  if (!ends_with_json) return;
  constexpr std::string_view kInterrupted =
      "\n{\"schema\":\"shardpack.error/1\",\"code\":130,\"message\":\"interrupted\"}\n";
  constexpr std::string_view kTerminated =
      "\n{\"schema\":\"shardpack.error/1\",\"code\":143,\"message\":\"interrupted\"}\n";
  std::string_view text = signal == SIGTERM ? kTerminated : kInterrupted;
  if (!within_line) text.remove_prefix(1);
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) return;
}

void OnSignal(int signal) {
  int none = 0;
  if (stop.compare_exchange_strong(none, signal) && !at_once) return;
  EraseBlock();
  constexpr std::string_view kText = "pack: error: interrupted\n";
  if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) {
    // There is nobody to tell.
  }
  WriteJson(signal);
  ::_exit(128 + signal);
}

}  // namespace

void InstallSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Long reads and writes continue; waiting code checks StopSignal.
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

void StopWithStandardInput() {
  std::thread([] {
    char unused[4096];
    for (;;) {
      const ssize_t got = ::read(STDIN_FILENO, unused, sizeof(unused));
      if (got > 0 || (got < 0 && errno == EINTR)) continue;
      OnSignal(SIGTERM);
      return;
    }
  }).detach();
}

const std::atomic<int>& StopSignal() { return stop; }

void EndAtOnceOnSignal(bool end) { at_once = end; }

void EndWithJson(bool json) { ends_with_json = json; }

void SetWithinLine(bool within) { within_line = within; }

void EraseOnSecondSignal(int lines) { lines_drawn = lines; }

}  // namespace shardpack::cli
