// The handles of the C interface: a count of references around a C++ object.
//
//   struct shardpack_order : shardpack::api::Handle<shardpack::Order> { using Handle::Handle; };
//   return new shardpack_order(*std::move(order));
//   ASSIGN_OR_RETURN(const Order* const order, ContentOf(handle, "order"));
//   Release(handle);                    // with the last reference the object is destroyed
//
// A build without NDEBUG keeps released handles, so that it can end the program when one is used or
// released again; otherwise that is undefined.
//
// Thread-safety: counting from any thread; the content as it is.
// Errors: InvalidArgument for a null handle.
#ifndef SHARDPACK_API_HANDLES_H_
#define SHARDPACK_API_HANDLES_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/any_batch.h"
#include "api/errors.h"
#include "api/shardpack.h"
#include "cuda/device/open_device.h"
#include "readers/dataset/dataset.h"
#include "readers/order/order.h"

namespace shardpack::api {

struct CountedHandle {
  std::atomic<uint32_t> references{1};
  CountedHandle* buried_before = nullptr;  // of the released ones that are kept
};

[[noreturn]] void EndForReleasedHandle();
// Keeps the memory of a handle whose content is gone.
void Bury(CountedHandle* handle);

#if defined(NDEBUG) && !defined(SHARDPACK_KEEP_RELEASED_HANDLES)
inline constexpr bool kKeepReleasedHandles = false;
#else
inline constexpr bool kKeepReleasedHandles = true;
#endif

template <typename C>
struct Handle : CountedHandle {
  using Content = C;
  explicit Handle(C made) : content(std::move(made)) {}
  std::optional<C> content;
};

template <typename H>
H* Retain(H* handle) noexcept {
  if (handle == nullptr) return nullptr;
  if (handle->references.fetch_add(1, std::memory_order_relaxed) == 0) EndForReleasedHandle();
  return handle;
}

template <typename H>
void Release(H* handle) noexcept {
  if (handle == nullptr) return;
  const uint32_t before = handle->references.fetch_sub(1, std::memory_order_acq_rel);
  if (before == 0) EndForReleasedHandle();
  if (before != 1) return;
  handle->content.reset();
  if (kKeepReleasedHandles) {
    Bury(handle);
  } else {
    delete handle;
  }
}

// The content, const if the handle is.
template <typename H>
auto ContentOf(H* handle, const char* name) -> absl::StatusOr<decltype(&*handle->content)> {
  if (auto given = NotNull(handle, name); !given.ok()) return given;
  if (kKeepReleasedHandles && handle->references.load() == 0) EndForReleasedHandle();
  return &*handle->content;
}

}  // namespace shardpack::api

// Their names are those of the C interface.
struct shardpack_dataset : shardpack::api::Handle<shardpack::Dataset> {
  using Handle::Handle;
  std::atomic<bool> map_shards{false};
};
struct shardpack_order : shardpack::api::Handle<shardpack::Order> {
  using Handle::Handle;
};
struct shardpack_device : shardpack::api::Handle<shardpack::OpenedDevice> {
  using Handle::Handle;
  const pid_t process = ::getpid();
};
struct shardpack_batch : shardpack::api::Handle<std::shared_ptr<shardpack::api::AnyBatch>> {
  using Handle::Handle;
};

namespace shardpack::api {

// FailedPrecondition after a fork: its locks and threads are those of the parent.
inline absl::StatusOr<const OpenedDevice*> UseDevice(const shardpack_device* handle) {
  auto content = ContentOf(handle, "device");
  if (!content.ok()) return std::move(content).status();
  if (handle->process != ::getpid()) {
    return absl::FailedPreconditionError(
        "the device was opened before this process was forked: open it again here; for a GPU, "
        "nothing may have used CUDA before the fork, so start the process by spawn");
  }
  return *content;
}

// Keeps the batch while its parts are looked at.
inline absl::StatusOr<std::shared_ptr<AnyBatch>> Use(const shardpack_batch* handle) {
  auto content = ContentOf(handle, "batch");
  if (!content.ok()) return std::move(content).status();
  return **content;
}

}  // namespace shardpack::api

#endif  // SHARDPACK_API_HANDLES_H_
