// AnyLoader: what is behind a shardpack_loader: batches in host memory, on a device, or resident
// there. LoaderState: the loader of a handle until it is closed or taken over.
//
//   ASSIGN_OR_RETURN(const std::shared_ptr<AnyLoader> loader, UseLoader(handle));
//   ASSIGN_OR_RETURN(Taken taken, loader->Next(wait_ms));
//
// Lifetime: the destructor ends the loader's threads, which takes as long as their reads;
// LoaderState::Close leaves it to a thread.
// Thread-safety: as shardpack_loader in api/shardpack.h. Next, NextInto and Seek: one caller at a
// time; everything else from any thread.
// Errors: those of readers/loading/loader.h. Unimplemented for what a kind of loader does not have.
#ifndef SHARDPACK_API_ANY_LOADER_H_
#define SHARDPACK_API_ANY_LOADER_H_

#include <signal.h>
#include <unistd.h>

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
#include "readers/loading/loader.h"
#include "readers/order/cursor.h"

namespace shardpack::api {

// The result of a wait: a batch with SHARDPACK_OK, or none with SHARDPACK_END or SHARDPACK_WAIT.
struct Taken {
  shardpack_code code = SHARDPACK_OK;
  std::shared_ptr<AnyBatch> batch;
};

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

// Destroys the object on a thread of its own; the flag is set afterwards. Without a thread it is
// destroyed here.
std::shared_ptr<EndedFlag> EndInBackground(std::shared_ptr<void> object) noexcept;

// While it exists, threads that this one starts get no signals but those of their own faults: a
// program's handlers run on its own threads.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

class LoaderState {
 public:
  explicit LoaderState(std::shared_ptr<AnyLoader> loader) : loader_(std::move(loader)) {}

  bool InOwnProcess() const { return ::getpid() == process_; }
  // FailedPrecondition in another process, and once it was closed or taken.
  absl::StatusOr<std::shared_ptr<AnyLoader>> Use() const;
  // For a loader that takes this one over. `taker` is for messages: "a loader on a device".
  absl::StatusOr<std::shared_ptr<AnyLoader>> Take(const char* taker);
  // Stops it; true once its threads have ended.
  bool Close(int64_t wait_ms);

 private:
  const pid_t process_ = ::getpid();
  mutable std::mutex mutex_;
  std::shared_ptr<AnyLoader> loader_;
  std::shared_ptr<EndedFlag> ended_;  // once it is being closed
  std::string gone_;                  // why there is no loader
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
