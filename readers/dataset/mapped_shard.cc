#include "readers/dataset/mapped_shard.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// The copy that this thread is making. The handler runs in the same thread.
struct Guard {
  sigjmp_buf back = {};
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  volatile sig_atomic_t armed = 0;
};
// In a shared library, this is allocated on a thread's first use, which may be inside the handler.
// That is safe: the faulting instruction itself raises the signal, so it cannot interrupt an
// allocation.
thread_local constinit Guard guard;

struct sigaction previous;

void OnBusError(int signal, siginfo_t* info, void* context) {
  const auto* const at = static_cast<const std::byte*>(info->si_addr);
  if (guard.armed != 0 && at >= guard.begin && at < guard.end) {
    guard.armed = 0;
    ::siglongjmp(guard.back, 1);
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    ::sigaction(signal, &previous, nullptr);
    // If a process sent the signal, raise it again; otherwise the instruction faults again.
    if (info->si_code <= 0) ::raise(signal);
  }
}

void InstallHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = &OnBusError;
    // Not deferred: the jump leaves the handler without the return that would unblock the signal.
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    ::sigaction(SIGBUS, nullptr, &previous);  // stored before the handler can need it
    ::sigaction(SIGBUS, &action, nullptr);
  });
}

}  // namespace

absl::StatusOr<MappedShard> MappedShard::Open(const File& file, uint64_t bytes) {
  ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Map(file));
  const Bytes all = mapped.bytes();
  if (all.size() != bytes) {
    return absl::DataLossError(absl::StrCat(EscapeForTerminal(file.path()), " has ", all.size(),
                                            " bytes, expected ", bytes));
  }
  InstallHandler();
  // One call instead of a fault per page; if the kernel does not support it, pages are faulted in.
#ifdef MADV_POPULATE_READ
  (void)::madvise(const_cast<std::byte*>(all.data()), all.size(), MADV_POPULATE_READ);
#endif
  return MappedShard(std::move(mapped));
}

bool MappedShard::Copy(uint64_t offset, std::span<std::byte> into) const {
  const Bytes all = file_.bytes();
  if (offset > all.size() || into.size() > all.size() - offset) return false;
  if (into.empty()) return true;
  guard.begin = all.data();
  guard.end = all.data() + all.size();
  if (::sigsetjmp(guard.back, 0) != 0) return false;
  guard.armed = 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(into.data(), all.data() + offset, into.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  guard.armed = 0;
  return true;
}

void MappedShard::Forget(uint64_t offset, uint64_t length) const {
  constexpr uint64_t kPage = 4096;
  const Bytes all = file_.bytes();
  if (offset >= all.size()) return;
  const uint64_t begin = offset & ~(kPage - 1);
  const uint64_t end = offset + std::min<uint64_t>(length, all.size() - offset);
  (void)::madvise(const_cast<std::byte*>(all.data()) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace shardpack
