// How the module waits: so that Ctrl-C works, and no hanging read blocks it forever.
//
//   batch = Interruptible([&](const auto& interrupted) { return loader.Next(interrupted); });
//   auto loader = Abandonable([=](const auto& interrupted) { return DeviceLoader::Open(...); });
//   EndInTime(std::move(loader));
//
// Lifetime: objects held by the work of Abandonable may outlive the call, and even the interpreter.
// Thread-safety: with the GIL held; it is released while waiting.
// Errors: the exception raised by a signal handler (KeyboardInterrupt), in place of a result.
#ifndef SHARDPACK_PYTHON_WAITING_H_
#define SHARDPACK_PYTHON_WAITING_H_

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "readers/loading/loader.h"

namespace shardpack::python {

// How often a waiting thread checks for signals, and how long it waits for a thread to end.
inline constexpr std::chrono::milliseconds kLook{50}, kEndPatience{2000};

// Returns true if a signal handler raised an exception, which is then set. Called without the GIL.
inline bool SignalRaised() {
  const pybind11::gil_scoped_acquire acquired;
  return PyErr_CheckSignals() != 0;
}

// Returns the result of `work`, which runs without the GIL.
template <typename Work>
auto Unlocked(const Work& work) {
  const pybind11::gil_scoped_release released;
  return work();
}

// Returns the result of `work`, which runs on this thread and polls `interrupted` while it waits.
template <typename Work>
auto Interruptible(const Work& work) {
  auto result = [&] {
    const pybind11::gil_scoped_release released;
    return work(Interrupted(SignalRaised));
  }();
  if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
  return result;
}

// Set at the end of a thread that another one waits for, with a time limit.
class EndedFlag {
 public:
  void Set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool WaitFor(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// Destroys the object on another thread and waits for it, with a limit: a read that hangs, for
// example on a network file system, would otherwise keep the interpreter from exiting. If the limit
// is reached, one line reports it.
template <typename T>
void EndInTime(std::unique_ptr<T> object) {
  if (object == nullptr) return;
  const pybind11::gil_scoped_release released;
  const auto ended = std::make_shared<EndedFlag>();
  try {
    std::thread([ended, raw = object.get()] {
      delete raw;
      ended->Set();
    }).detach();
  } catch (const std::system_error&) {
    object.reset();  // without a thread it is destroyed here, however long that takes
    return;
  }
  (void)object.release();
  if (!ended->WaitFor(kEndPatience))
    std::fputs("shardpack: a read does not end; its thread is left to the end of the process\n",
               stderr);
}

// Runs `work`, which does not use Python, on a thread of its own. A signal sets `interrupted`; if
// the work does not end then, the thread is abandoned with everything it holds.
template <typename Work>
auto Abandonable(Work work) {
  using Result = decltype(work(Interrupted()));
  struct State {
    explicit State(Work work) : work(std::move(work)) {}
    std::optional<Work> work;
    std::optional<Result> result;
    std::exception_ptr thrown;  // instead of a result
    std::atomic<bool> interrupted{false};
    EndedFlag ended;
  };
  auto state = std::make_shared<State>(std::move(work));
  bool raised = false;
  {
    const pybind11::gil_scoped_release released;
    std::thread([state] {
      try {
        state->result.emplace((*state->work)([state] { return state->interrupted.load(); }));
      } catch (...) {
        state->thrown = std::current_exception();
      }
      state->work.reset();
      state->ended.Set();
    }).detach();
    while (!state->ended.WaitFor(kLook)) {
      if (!SignalRaised()) continue;
      raised = true;
      state->interrupted.store(true);
      (void)state->ended.WaitFor(kEndPatience);
      break;
    }
  }
  if (raised) {
    EndInTime(std::make_unique<std::shared_ptr<State>>(std::move(state)));
    throw pybind11::error_already_set();
  }
  if (state->thrown) std::rethrow_exception(state->thrown);
  return *std::move(state->result);
}

}  // namespace shardpack::python

#endif  // SHARDPACK_PYTHON_WAITING_H_
