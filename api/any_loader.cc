#include "api/any_loader.h"

#include <signal.h>

#include <system_error>
#include <thread>

namespace shardpack::api {

std::shared_ptr<EndedFlag> EndInBackground(std::shared_ptr<void> object) noexcept {
  auto ended = std::make_shared<EndedFlag>();
  const SignalsBlocked blocked;
  try {
    std::thread([ended, object]() mutable {
      object.reset();
      ended->Set();
    }).detach();
  } catch (const std::system_error&) {
    object.reset();
    ended->Set();
  }
  return ended;
}

SignalsBlocked::SignalsBlocked() {
  sigset_t others;
  ::sigfillset(&others);
  // What a thread itself causes: blocked, these end the process.
  for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF})
    ::sigdelset(&others, own);
  ::pthread_sigmask(SIG_BLOCK, &others, &before_);
}

SignalsBlocked::~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

absl::StatusOr<std::shared_ptr<AnyLoader>> LoaderState::Use() const {
  if (!InOwnProcess()) {
    return absl::FailedPreconditionError(
        "the loader was opened in another process: threads do not survive a fork; open it after");
  }
  const std::lock_guard lock(mutex_);
  if (loader_ == nullptr) return absl::FailedPreconditionError(gone_);
  return loader_;
}

absl::StatusOr<std::shared_ptr<AnyLoader>> LoaderState::Take(const char* taker) {
  absl::StatusOr<std::shared_ptr<AnyLoader>> taken = Use();
  if (!taken.ok()) return taken;
  const std::lock_guard lock(mutex_);
  loader_ = nullptr;
  gone_ = std::string(taker) + " has taken this loader over";
  return taken;
}

bool LoaderState::Close(int64_t wait_ms) {
  std::shared_ptr<EndedFlag> ended;
  {
    const std::lock_guard lock(mutex_);
    if (loader_ != nullptr) {
      loader_->Stop();
      ended_ = EndInBackground(std::move(loader_));
      loader_ = nullptr;
      gone_ = "the loader is closed";
    }
    ended = ended_;
  }
  return ended == nullptr || ended->Wait(wait_ms);
}

absl::StatusOr<std::shared_ptr<AnyLoader>> UseLoader(const shardpack_loader* handle) {
  auto content = ContentOf(handle, "loader");
  if (!content.ok()) return content.status();
  return (**content)->Use();
}

shardpack_loader* NewLoader(std::shared_ptr<AnyLoader> loader) {
  return new shardpack_loader(std::make_unique<LoaderState>(std::move(loader)));
}

}  // namespace shardpack::api
