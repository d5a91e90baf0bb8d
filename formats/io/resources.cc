#include "formats/io/resources.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace shardpack {
namespace {

// The folders of this process's control group, from its own up to the root (cgroups v2).
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

uint64_t PeakMemoryBytes() {
  struct rusage usage;
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace shardpack
