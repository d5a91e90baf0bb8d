#include "api/jobs/job_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// Each of the other verbs takes both flags.
constexpr std::array<std::string_view, 7> kNoProgress = {"info",   "ls",    "cat", "bench",
                                                         "status", "stats", "diff"};
constexpr std::array<std::string_view, 5> kNoJob = {"completions", "man", "help", "--help",
                                                    "--version"};

bool Has(auto words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> JobWords(std::vector<std::string> typed) {
  if (typed.empty() || Has(kNoJob, typed[0])) {
    return absl::InvalidArgumentError(absl::StrCat(
        typed.empty() ? "no arguments" : absl::StrCat("\"", typed[0], "\" is not a job"),
        R"(; expected a command of pack, as in "build", "photos", "-o", "shards")"));
  }
  std::vector<std::string> flags = {"--json"};
  if (!Has(kNoProgress, typed[0])) flags.emplace_back("--progress=json");
  // Of a flag that is given twice the last one wins; there are no flags after "--".
  typed.insert(std::ranges::find(typed, "--"), flags.begin(), flags.end());
  return typed;
}

}  // namespace shardpack
