#include "formats/io/rank_cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "formats/io/resources.h"

namespace shardpack {
namespace {

// "0-3,8" has five numbers.
int CountOf(const std::string& numbers) {
  int count = 0;
  for (const absl::string_view part : absl::StrSplit(numbers, ',', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last)) return 0;
    count += last - first + 1;
  }
  return count;
}

// Those of the machine, or as many as the control group of this process has (cgroups v2), whatever
// the process itself is bound to.
int CoresOfNode() {
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  std::ifstream membership("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(membership, line)) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  for (const std::string& group : {"/sys/fs/cgroup" + path, std::string("/sys/fs/cgroup")}) {
    std::ifstream file(group + "/cpuset.cpus.effective");
    std::string numbers;
    if (file >> numbers && CountOf(numbers) > 0) return std::min(online, CountOf(numbers));
  }
  return online;
}

}  // namespace

int RanksOfNode() {
  for (const char* const name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    const char* const text = std::getenv(name);
    int ranks = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &ranks) && ranks > 0) return ranks;
  }
  return 1;
}

int ShareOfCores(int node, int own, int ranks) {
  return std::max(1, std::min(own, node / std::max(1, ranks)));
}

int CoresOfRank() {
  const int own = AvailableCores(), node = CoresOfNode(), ranks = RanksOfNode();
  cpu_set_t set;
  const bool bound = ::sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < node;
  // Without a binding of its own all that limits it, such as a quota, is what all ranks share.
  return ranks == 1 ? own : ShareOfCores(bound ? node : own, own, ranks);
}

}  // namespace shardpack
