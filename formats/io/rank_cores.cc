#include "formats/io/rank_cores.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "formats/io/resources.h"

namespace shardpack {
namespace {

// What launchers tell each rank, and not themselves.
constexpr const char* kRankVariables[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"};
// Processes above one another that are looked at.
constexpr int kMostAncestors = 32;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What follows the name at the beginning of a line.
std::string LineOf(const std::string& text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, name)) return std::string(absl::StripAsciiWhitespace(line));
  }
  return "";
}

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

// Whether a launcher started it as a rank: by the environment that it began with, which another
// user's process does not show.
bool IsRank(const std::string& folder) {
  for (const absl::string_view variable :
       absl::StrSplit(Contents(absl::StrCat(folder, "/environ")), '\0')) {
    for (const char* const name : kRankVariables) {
      if (absl::StartsWith(variable, absl::StrCat(name, "="))) return true;
    }
  }
  return false;
}

// In cores; 0: none.
int QuotaOf(const std::string& root, const std::string& folder) {
  std::string group = LineOf(Contents(absl::StrCat(folder, "/cgroup")), "0::");
  int least = 0;
  for (;;) {
    const std::vector<std::string> words =
        absl::StrSplit(Contents(absl::StrCat(root, "/sys/fs/cgroup", group, "/cpu.max")),
                       absl::ByAnyChar(" \n"), absl::SkipEmpty());
    double quota = 0, period = 0;
    if (words.size() == 2 && absl::SimpleAtod(words[0], &quota) &&
        absl::SimpleAtod(words[1], &period) && period > 0) {
      const int cores = std::max(1, static_cast<int>(std::lround(quota / period)));
      least = least == 0 ? cores : std::min(least, cores);
    }
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos || group.size() <= 1) return least;
    group.resize(slash);
  }
}

}  // namespace

int RanksOfNode() {
  for (const char* const name : kRankVariables) {
    const char* const text = std::getenv(name);
    int ranks = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &ranks) && ranks > 0) return ranks;
  }
  return 1;
}

int ShareOfCores(int node, int own, int ranks) {
  return std::max(1, std::min(own, node / std::max(1, ranks)));
}

int CoresOfLauncher(const std::string& root, int process) {
  const auto folder_of = [&](int id) { return absl::StrCat(root, "/proc/", id); };
  for (int above = 0; above < kMostAncestors; ++above) {
    if (!absl::SimpleAtoi(LineOf(Contents(folder_of(process) + "/status"), "PPid:"), &process) ||
        process <= 0) {
      return 0;
    }
    if (!IsRank(folder_of(process))) break;
  }
  const std::string launcher = folder_of(process);
  const int bound = CountOf(LineOf(Contents(launcher + "/status"), "Cpus_allowed_list:"));
  const int quota = QuotaOf(root, launcher);
  return bound == 0 || quota == 0 ? bound : std::min(bound, quota);
}

int CoresOfRank() {
  const int own = AvailableCores(), ranks = RanksOfNode();
  if (ranks == 1) return own;
  const int node = CoresOfLauncher("", ::getpid());
  return ShareOfCores(node == 0 ? own : node, own, ranks);
}

}  // namespace shardpack
