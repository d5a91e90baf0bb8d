// std::condition_variable::wait for libstdc++ 11 (RHEL 9). That of libstdc++ 12 differs in nothing
// but its version, GLIBCXX_3.4.30, which is the only one that pack would need beyond 3.4.29.
#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace shardpack {

// The name that callers compiled with any libstdc++ use. Hidden: it serves this program or library
// alone.
__attribute__((visibility("hidden"))) void
Wait(std::condition_variable& condition, std::unique_lock<std::mutex>& lock) __asm__(
    "_ZNSt18condition_variable4waitERSt11unique_lockISt"
    "5mutexE");

void Wait(std::condition_variable& condition, std::unique_lock<std::mutex>& lock) {
  ::pthread_cond_wait(condition.native_handle(), lock.mutex()->native_handle());
}

}  // namespace shardpack
