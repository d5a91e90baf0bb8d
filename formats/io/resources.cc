#include "formats/io/resources.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// Visits this process's cgroups, from its own up to the root (cgroups v2).
template <typename Visit>
void ForEachControlGroup(Visit visit) {
  std::ifstream membership("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(membership, line)) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  for (;;) {
    visit("/sys/fs/cgroup" + path);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path.size() <= 1) return;
    path.resize(slash);
  }
}

}  // namespace

int AvailableCores() {
  cpu_set_t set;
  int cores = ::sched_getaffinity(0, sizeof(set), &set) == 0
                  ? CPU_COUNT(&set)
                  : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  ForEachControlGroup([&](const std::string& group) {
    std::ifstream file(group + "/cpu.max");
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0) {
      const double share = std::stod(quota) / period;
      cores = std::min(cores, static_cast<int>(std::max(1.0, share + 0.5)));
    }
  });
  return std::max(1, cores);
}

uint64_t AvailableMemoryBytes() {
  uint64_t bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  ForEachControlGroup([&](const std::string& group) {
    std::ifstream file(group + "/memory.max");
    uint64_t limit = 0;
    if (file >> limit) bytes = std::min(bytes, limit);
  });
  return bytes;
}

size_t OpenFilesLimit() {
  constexpr size_t kMost = 1 << 16;  // if there is no limit
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return static_cast<size_t>(std::min<rlim_t>(limit.rlim_cur, kMost));
}

bool IsLackOfResources(const std::exception& error) {
  // TBB reports only in the message text that it could not start a thread.
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         dynamic_cast<const std::system_error*>(&error) != nullptr ||
         std::string_view(error.what()).find("pthread_create") != std::string_view::npos;
}

std::string_view DescribeLackOfResources() {
  thread_local char text[200];
  constexpr uint64_t kMegabyte = 1 << 20;
  struct rlimit space = {RLIM_INFINITY, RLIM_INFINITY}, threads = space;
  ::getrlimit(RLIMIT_AS, &space);
  ::getrlimit(RLIMIT_NPROC, &threads);
  char pages[32] = "0";
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    if (::read(file, pages, sizeof(pages) - 1) < 0) pages[0] = '0';
    ::close(file);
  }
  const uint64_t in_use = std::strtoull(pages, nullptr, 10) *
                          static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) / kMegabyte;
  const auto limit = [](char* into, size_t room, const char* flag, rlim_t value, uint64_t unit) {
    if (value == RLIM_INFINITY) {
      into[0] = '\0';
    } else {
      std::snprintf(into, room, ", ulimit %s is %llu", flag,
                    static_cast<unsigned long long>(value / unit));
    }
  };
  char of_space[48], of_threads[48];
  limit(of_space, sizeof(of_space), "-v", space.rlim_cur, 1024);
  limit(of_threads, sizeof(of_threads), "-u", threads.rlim_cur, 1);
  const int length = std::snprintf(
      text, sizeof(text), "out of memory or threads: more than the %llu MiB in use are wanted%s%s",
      static_cast<unsigned long long>(in_use), of_space, of_threads);
  return {text, std::min(static_cast<size_t>(std::max(length, 0)), sizeof(text) - 1)};
}

absl::Status StatusOfException(std::string_view work, const std::exception& error) {
  if (IsLackOfResources(error)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(std::string(work), ": ", std::string(DescribeLackOfResources())));
  }
  return absl::InternalError(absl::StrCat(std::string(work), ": ", error.what()));
}

uint64_t PeakMemoryBytes() {
  struct rusage usage;
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace shardpack
