// How the module waits: so that Ctrl-C works, and so that nothing waits for ever for a read that
// hangs.
//
//   batch = Interruptible([&](const auto& interrupted) { return loader.Next(interrupted); });
//   auto loader = Abandonable([=](const auto& interrupted) { return DeviceLoader::Open(...); });
//   EndInTime(std::move(loader));
//
// Lifetime: what the work of Abandonable holds may outlive the call, and the interpreter's last
// word.
// Thread-safety: with the GIL held; it is given away meanwhile.
// Errors: what a handler of a signal raised (KeyboardInterrupt), in place of a result.
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

// How often a waiting thread looks, and how long it waits for one that is to end.
inline constexpr std::chrono::milliseconds kLook{50}, kEndPatience{2000};

// Whether a signal's handler raised; what it raised is then set. Without the GIL.
inline bool SignalRaised() {
  const pybind11::gil_scoped_acquire acquired;
  return PyErr_CheckSignals() != 0;
}

// What `work` gives, without the GIL.
template <typename Work>
auto Unlocked(const Work& work) {
  const pybind11::gil_scoped_release released;
  return work();
}

// What `work` gives, which is called on this thread and asks `interrupted` now and then while it
// waits.
template <typename Work>
auto Interruptible(const Work& work) {
  auto result = [&] {
    const pybind11::gil_scoped_release released;
    return work(Interrupted(SignalRaised));
  }();
  if (PyErr_Occurred() != nullptr) throw pybind11::error_already_set();
  return result;
}

// Of a thread that one other waits for, for a while.
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

// Destroys it on a thread of its own, and waits for that, but not for ever: a read that hangs, as
// of a network's file system, would keep the interpreter from ending. Then one line says so.
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
    object.reset();  // without a thread it ends here, however long that takes
    return;
  }
  (void)object.release();
  if (!ended->WaitFor(kEndPatience))
    std::fputs("shardpack: a read does not end; its thread is left to the end of the process\n",
               stderr);
}

// Runs `work`, which knows nothing of Python, on a thread of its own. After a signal it is told
// that it is interrupted, and left alone with what it holds if it does not end then.
template <typename Work>
auto Abandonable(Work work) {
  using Result = decltype(work(Interrupted()));
  struct State {
    explicit State(Work work) : work(std::move(work)) {}
    std::optional<Work> work;
    std::optional<Result> result;
    std::exception_ptr thrown;  // in place of a result
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
