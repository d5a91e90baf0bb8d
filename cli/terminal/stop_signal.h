// StopSignal: SIGINT, SIGTERM and SIGHUP as a number that a run checks; the second signal ends the
// process at once.
//
//   InstallSignals();
//   const std::atomic<int>& stop = StopSignal();   // 0, or the signal's number
//   EndAtOnceOnSignal(false);                      // the run now has work to finish
//
// SIGXFSZ and SIGPIPE are ignored: a file-size limit and a closed pipe become errors of write().
// SIGBUS of a mapped file that was cut, or whose disk failed, ends the process with 6 and names it.
//
// Lifetime: the process.
// Thread-safety: any thread.
#ifndef SHARDPACK_CLI_TERMINAL_STOP_SIGNAL_H_
#define SHARDPACK_CLI_TERMINAL_STOP_SIGNAL_H_

#include <atomic>

namespace shardpack::cli {

void InstallSignals();
const std::atomic<int>& StopSignal();

// From now on the end of standard input is a SIGTERM. It ends when the program that started this
// one is gone, however that has ended.
void StopWithStandardInput();

// Whether the first signal ends the process, with 128 + its number. This is the initial state,
// correct as long as nothing has been written. Otherwise the signal only sets StopSignal.
void EndAtOnceOnSignal(bool at_once);

// Whether a signal that ends the process also writes the last line that --json promises, an object
// of the schema "shardpack.error/1", on standard output. Set once the command line is read.
void EndWithJson(bool json);

// Whether the last line on standard output is unfinished: the object begins a new one.
void SetWithinLine(bool within);

// The number of lines of the live block, the last ones on the terminal, with the cursor in the
// last. A process that ends at once erases them, so that the shell's prompt does not appear among
// them. 0: no block.
void EraseOnSecondSignal(int lines);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_STOP_SIGNAL_H_
