#include "api/any_loader.h"

#include <algorithm>
#include <thread>

#include "formats/io/status_macros.h"

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
  } catch (...) {  // no thread, no memory: the object is gone with the function that did not run
    flag->Set();
  }
}

LoaderState::LoaderState(std::shared_ptr<AnyLoader> loader)
    : loader_(EndingInBackground(std::move(loader), ended_)) {}

absl::Status LoaderState::CheckThere() const {
  if (loader_ == nullptr) return absl::FailedPreconditionError(gone_);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<AnyLoader>> LoaderState::Use() const {
  if (!InOwnProcess()) {
    return absl::FailedPreconditionError(
        "the loader was opened in another process: threads do not survive a fork; open it after");
  }
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(CheckThere());
  return loader_;
}

absl::Status LoaderState::Take(const char* why) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(CheckThere());
  loader_ = nullptr;
  gone_ = why;
  ended_->Set();  // nothing is left to wait for here
  return absl::OkStatus();
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
