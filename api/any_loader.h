// AnyLoader: what is behind a shardpack_loader: batches in host memory, on a device, or resident
// there. LoaderState: the loader of a handle until it is closed or taken over.
//
//   ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> loader, UseLoader(handle));
//   ASSIGN_OR_RETURN(Taken taken, loader->Next(wait_ms));
//
// Lifetime: the destructor ends the loader's threads, which takes as long as their reads;
// LoaderState leaves it to a thread.
// Thread-safety: as shardpack_loader in api/shardpack.h. Next, NextInto, EnqueueStep, NextStep and
// Seek: one caller at a time; everything else from any thread.
// Errors: those of readers/loading/loader.h. Unimplemented for what a kind of loader does not have.
#ifndef SHARDPACK_API_ANY_LOADER_H_
#define SHARDPACK_API_ANY_LOADER_H_

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/any_batch.h"
#include "api/handles.h"
#include "api/shardpack.h"
#include "formats/io/signals_blocked.h"
#include "readers/loading/loader.h"
#include "readers/order/cursor.h"

namespace shardpack::api {

// The result of a wait: a batch with SHARDPACK_OK, or none with SHARDPACK_END or SHARDPACK_WAIT.
struct Taken {
  shardpack_code code = SHARDPACK_OK;
  std::shared_ptr<AnyBatch> batch;
};

// Of loaders that are not resident.
inline absl::Status NoSteps() {
  return absl::UnimplementedError("only a resident loader has steps for a graph");
}

class AnyLoader {
 public:
  AnyLoader() = default;
  virtual ~AnyLoader() = default;
  AnyLoader(const AnyLoader&) = delete;
  AnyLoader& operator=(const AnyLoader&) = delete;

  // `wait_ms` as in api/shardpack.h.
  virtual absl::StatusOr<Taken> Next(int64_t wait_ms) = 0;
  // OK or WAIT.
  virtual absl::StatusOr<shardpack_code> Opened(int64_t) { return SHARDPACK_OK; }
  // A batch without pixels.
  virtual absl::StatusOr<Taken> NextInto(int64_t, const shardpack_target&, Stream) {
    return absl::UnimplementedError("only a loader on a device copies to the caller's memory");
  }
  virtual absl::Status EnqueueStep(const shardpack_target&, Stream) { return NoSteps(); }
  // A batch without pixels.
  virtual absl::StatusOr<Taken> NextStep(int64_t, Stream) { return NoSteps(); }
  virtual absl::Status Seek(uint64_t, uint64_t) {
    return absl::UnimplementedError(
        "only a loader of host memory can seek; open another one with a cursor");
  }
  virtual absl::StatusOr<Cursor> cursor() const = 0;
  virtual absl::StatusOr<std::string> StatsJson() const = 0;
  virtual absl::StatusOr<std::string> Explain() const = 0;
  virtual std::vector<BadSample> TakeBadSamples() = 0;
  virtual void Stop() = 0;
};

// Set at the end of work that another thread waits for, with a time limit.
class EndedFlag {
 public:
  void Set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  // False if `wait_ms` passed.
  bool Wait(int64_t wait_ms) {
    std::unique_lock lock(mutex_);
    const auto is_set = [this] { return set_; };
    if (wait_ms >= 0) return changed_.wait_for(lock, LimitedWait(wait_ms), is_set);
    changed_.wait(lock, is_set);
    return true;
  }
  // A wait that no clock overflows by.
  static std::chrono::milliseconds LimitedWait(int64_t wait_ms) {
    constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1000;
    return std::chrono::milliseconds(wait_ms < kYear ? wait_ms : kYear);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// Drops the reference on a thread of its own, then sets the flag. If no thread can be started, it
// is dropped here.
void EndInBackground(std::shared_ptr<void> object, std::shared_ptr<EndedFlag> ended) noexcept;

// The object, given with its only reference: the one who drops the last one, which may be a waiting
// call, leaves the end to a thread.
template <typename T>
std::shared_ptr<T> EndingInBackground(std::shared_ptr<T> object, std::shared_ptr<EndedFlag> ended) {
  T* const address = object.get();
  return std::shared_ptr<T>(address,
                            [object = std::move(object), ended = std::move(ended)](T*) mutable {
                              EndInBackground(std::move(object), std::move(ended));
                            });
}

class LoaderState {
 public:
  explicit LoaderState(std::shared_ptr<AnyLoader> loader);

  bool InOwnProcess() const { return ::getpid() == process_; }
  // FailedPrecondition in another process, and once it was closed or taken.
  absl::StatusOr<std::shared_ptr<AnyLoader>> Use() const;
  // For a loader that takes this one over. `why` is a literal: what this one then says.
  absl::Status Take(const char* why);
  // Stops it; true once its threads have ended.
  bool Close(int64_t wait_ms);
  // The same for the end of the handle: waits two seconds, less what calls of Close have waited.
  void CloseAtLast();

 private:
  absl::Status CheckThere() const;  // under the lock

  const pid_t process_ = ::getpid();
  mutable std::mutex mutex_;
  const std::shared_ptr<EndedFlag> ended_ = std::make_shared<EndedFlag>();
  std::shared_ptr<AnyLoader> loader_;  // ends in the background
  const char* gone_ = "";              // why there is no loader; a literal: no memory is needed
  std::atomic<int64_t> patience_ms_{2000};
};

}  // namespace shardpack::api

struct shardpack_loader : shardpack::api::Handle<std::unique_ptr<shardpack::api::LoaderState>> {
  using Handle::Handle;
};

namespace shardpack::api {

absl::StatusOr<std::shared_ptr<AnyLoader>> UseLoader(const shardpack_loader* handle);
shardpack_loader* NewLoader(std::shared_ptr<AnyLoader> loader);

}  // namespace shardpack::api

#endif  // SHARDPACK_API_ANY_LOADER_H_
