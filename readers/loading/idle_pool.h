// IdlePool: objects that threads borrow one at a time and return for reuse.
//
//   absl::Status done = pool.With(make, [&](Pipelines& own) { return own.Run(bytes, slot); });
//
// As many are made as threads ask at once.
//
// Lifetime: owns the objects.
// Thread-safety: any thread; each object is used by one at a time.
// Errors: those of `make` (absl::StatusOr<std::unique_ptr<Object>>()) and of the work.
#ifndef SHARDPACK_READERS_LOADING_IDLE_POOL_H_
#define SHARDPACK_READERS_LOADING_IDLE_POOL_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "formats/io/status_macros.h"

namespace shardpack {

template <typename Object>
class IdlePool {
 public:
  template <typename Make, typename Work>
  absl::Status With(const Make& make, const Work& work) {
    std::unique_ptr<Object> object = TakeIdle();
    if (object == nullptr) {
      ASSIGN_OR_RETURN(object, make());
    }
    absl::Status done = work(*object);
    Put(std::move(object));
    return done;
  }

  void Put(std::unique_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(object));
  }

 private:
  std::unique_ptr<Object> TakeIdle() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Object> last = std::move(idle_.back());
    idle_.pop_back();
    return last;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Object>> idle_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_IDLE_POOL_H_
