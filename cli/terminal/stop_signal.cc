#include "cli/terminal/stop_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <thread>

#include "cli/terminal/exit_code.h"

namespace shardpack::cli {
namespace {

std::atomic<int> stop{0};
std::atomic<bool> at_once{true}, ending{false};
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

// What FinishCommand prints, after the end of a line that is unfinished. Only calls
// async-signal-safe functions.
void WriteJson(std::string_view text) {
  if (!ends_with_json) return;
  if (!within_line) text.remove_prefix(1);
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) return;
}

// An error is ignored: there is nobody to tell.
void WriteError(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void OnSignal(int signal) {
  int none = 0;
  // A run that ends at once is not told, or it could say so as well.
  if (!at_once && stop.compare_exchange_strong(none, signal)) return;
  if (ending.exchange(true)) return;
  EraseBlock();
  WriteError("pack: error: interrupted\n");
  constexpr std::string_view kInterrupted =
      "\n{\"schema\":\"shardpack.error/1\",\"code\":130,\"message\":\"interrupted\"}\n";
  constexpr std::string_view kTerminated =
      "\n{\"schema\":\"shardpack.error/1\",\"code\":143,\"message\":\"interrupted\"}\n";
  constexpr std::string_view kHungUp =
      "\n{\"schema\":\"shardpack.error/1\",\"code\":129,\"message\":\"interrupted\"}\n";
  WriteJson(signal == SIGTERM ? kTerminated : signal == SIGHUP ? kHungUp : kInterrupted);
  ::_exit(128 + signal);
}

// The file that is mapped at an address, by the lines of /proc/self/maps: "BEGIN-END ... PATH".
// Only calls async-signal-safe functions.
std::string_view FileAt(uintptr_t address, std::span<char> path) {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return {};
  uintptr_t begin = 0, number = 0;
  bool in_range = true, here = false;  // within BEGIN-END; the address is between them
  size_t size = 0;
  char text[4096];
  for (ssize_t got; (got = ::read(maps, text, sizeof(text))) > 0;) {
    for (const char c : std::string_view(text, static_cast<size_t>(got))) {
      if (c == '\n') {
        if (here) break;
        in_range = true;
        number = size = 0;
      } else if (in_range && c == '-') {
        begin = number;
        number = 0;
      } else if (in_range && c == ' ') {
        in_range = false;
        here = begin <= address && address < number;
      } else if (in_range) {
        number = 16 * number + static_cast<uintptr_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      } else if (here && (size > 0 || c == '/') && size < path.size()) {
        path[size++] = c == 0x7f || (c >= 0 && c < 32) ? '?' : c;
      }
    }
    if (here && size > 0) break;
  }
  ::close(maps);
  return {path.data(), size};
}

void OnBusError(int signal, siginfo_t* info, void*) {
  static char path[4096];
  if (ending.exchange(true)) return;
  const std::string_view file = FileAt(reinterpret_cast<uintptr_t>(info->si_addr), path);
  if (file.empty()) {  // an error of this program
    ::signal(signal, SIG_DFL);
    return;
  }
  EraseBlock();
  WriteError("pack: error: ");
  WriteError(file);
  WriteError(
      " became shorter while it was in use, or its disk failed. What was finished is kept; the "
      "same command goes on once the file is "
      "whole\n");
  WriteJson(
      "\n{\"schema\":\"shardpack.error/1\",\"code\":6,\"message\":\"a file became shorter while it "
      "was in use, or its disk failed\"}\n");
  ::_exit(static_cast<int>(ExitCode::kIo));
}

}  // namespace

void InstallSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Long reads and writes continue; waiting code checks StopSignal.
  action.sa_flags = SA_RESTART;
  // A signal that was ignored from the start (nohup, a background job) stays ignored.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old = {};
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  struct sigaction bus = {};
  bus.sa_sigaction = OnBusError;
  bus.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &bus, nullptr);
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
