#include "api/any_loader.h"

#include <signal.h>

#include <algorithm>
#include <system_error>
#include <thread>

namespace shardpack::api {

void EndInBackground(std::shared_ptr<void> object, std::shared_ptr<EndedFlag> ended) noexcept {
  const SignalsBlocked blocked;
  EndedFlag* const flag = ended.get();
  try {
    // Moved, not copied: otherwise this thread might be the one that destroys it.
    std::thread([object = std::move(object), ended]() mutable {
      object.reset();
      ended->Set();
    }).detach();
  } catch (const std::system_error&) {  // the object is gone with the function that did not run
    flag->Set();
  }
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

LoaderState::LoaderState(std::shared_ptr<AnyLoader> loader)
    : loader_(loader.get(), [loader, ended = ended_](AnyLoader*) mutable {
        EndInBackground(std::move(loader), ended);
      }) {}

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
  ended_->Set();  // nothing is left to wait for here
  return taken;
}

bool LoaderState::Close(int64_t wait_ms) {
  std::shared_ptr<AnyLoader> loader;
  {
    const std::lock_guard lock(mutex_);
    loader.swap(loader_);
    if (loader != nullptr) gone_ = "the loader is closed";
  }
  if (loader != nullptr) {
    loader->Stop();
    loader = nullptr;
  }
  const bool ended = ended_->Wait(wait_ms);
  if (!ended) patience_ms_.store(std::max<int64_t>(patience_ms_.load() - wait_ms, 0));
  return ended;
}

void LoaderState::CloseAtLast() { (void)Close(patience_ms_.load()); }

absl::StatusOr<std::shared_ptr<AnyLoader>> UseLoader(const shardpack_loader* handle) {
  auto content = ContentOf(handle, "loader");
  if (!content.ok()) return content.status();
  return (**content)->Use();
}

shardpack_loader* NewLoader(std::shared_ptr<AnyLoader> loader) {
  return new shardpack_loader(std::make_unique<LoaderState>(std::move(loader)));
}

}  // namespace shardpack::api
