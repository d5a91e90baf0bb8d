// ChildProcess: a program started with its output on pipes, in a process group of its own.
//
//   absl::StatusOr<ChildProcess> child = ChildProcess::Start("/usr/bin/pack", {"--version"});
//   std::string text = ReadAll(child->out());
//   std::optional<int> status = child->Wait();         // as of waitpid
//
// Standard input is empty. Nothing of the caller's process is changed: its signal handlers, masks
// and working folder stay, a Ctrl-C in its terminal does not reach the child, and the child gets
// none of its descriptors.
//
// Lifetime: the destructor kills the group and waits for the program, if Wait has not.
// Thread-safety: Signal from any thread, also during Wait; the rest one thread at a time.
// Errors: those of the system, with errno and what was to be started.
#ifndef SHARDPACK_API_JOBS_CHILD_PROCESS_H_
#define SHARDPACK_API_JOBS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack {

class Descriptor {  // closes itself
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return number_; }
  void Close();

 private:
  int number_;
};

class ChildProcess {
 public:
  // `program` is a path, `words` follow its name. `folder`: its working folder; "": the caller's.
  static absl::StatusOr<ChildProcess> Start(const std::string& program,
                                            const std::vector<std::string>& words,
                                            const std::string& folder = "");
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  int out() const { return out_.get(); }
  int err() const { return err_.get(); }
  // What the program writes from now on is lost.
  void CloseOutput();
  // To the group; nothing once the program was waited for.
  void Signal(int signal);
  // Readable once the program has ended; -1 where the kernel has no such descriptors.
  int end() const { return end_.get(); }
  // Also if somebody else has waited for it.
  bool HasEnded() const;
  // How it ended. nullopt: somebody else in this process has waited for it.
  std::optional<int> Wait();

 private:
  struct State {
    std::mutex mutex;
    pid_t pid = -1;
    bool waited = false;
  };

  ChildProcess(pid_t pid, Descriptor out, Descriptor err, Descriptor end);

  std::unique_ptr<State> state_;  // nullptr: moved from
  Descriptor out_, err_, end_;
};

}  // namespace shardpack

#endif  // SHARDPACK_API_JOBS_CHILD_PROCESS_H_
