// TaskGate: lets tasks in until it is shut, and then waits for those inside, so that what they use
// may be destroyed although a queue still holds tasks: these come to a shut gate.
//
//   auto gate = std::make_shared<TaskGate>();
//   pool.Submit([this, gate] {
//     if (!gate->Enter()) return;    // `this` may be gone
//     Work();
//     gate->Leave();
//   });
//   gate->ShutAndWait();
//
// Lifetime: shared by the tasks.
// Thread-safety: any thread; ShutAndWait not from inside.
#ifndef SHARDPACK_CONVERTERS_BUILDING_TASK_GATE_H_
#define SHARDPACK_CONVERTERS_BUILDING_TASK_GATE_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace shardpack {

class TaskGate {
 public:
  bool Enter() {
    const std::lock_guard lock(mutex_);
    if (!shut_) ++inside_;
    return !shut_;
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();
  }
  void ShutAndWait() {
    std::unique_lock lock(mutex_);
    shut_ = true;
    empty_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  size_t inside_ = 0;
  bool shut_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_TASK_GATE_H_
