// StopSignal: SIGINT and SIGTERM as a number that a run looks at; the second one ends the process
// at once.
//
//   InstallSignals();
//   const std::atomic<int>& stop = StopSignal();   // 0, or the signal's number
//   EndAtOnceOnSignal(false);                      // a run has something to finish now
//
// SIGXFSZ and SIGPIPE are ignored: a file-size limit and a reader that went away become errors of
// write().
//
// Lifetime: of the process.
// Thread-safety: any thread.
#ifndef SHARDPACK_CLI_TERMINAL_STOP_SIGNAL_H_
#define SHARDPACK_CLI_TERMINAL_STOP_SIGNAL_H_

#include <atomic>

namespace shardpack::cli {

void InstallSignals();
const std::atomic<int>& StopSignal();

// Whether the first signal ends the process, with 128 + its number: the right thing as long as
// nothing has been written (the beginning). Otherwise it only sets StopSignal.
void EndAtOnceOnSignal(bool at_once);

// The last so many lines on the terminal are a live block, which a process that ends at once takes
// away, so that the shell's prompt does not stand in it. 0: none. The cursor is in the last one.
void EraseOnSecondSignal(int lines);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_STOP_SIGNAL_H_
