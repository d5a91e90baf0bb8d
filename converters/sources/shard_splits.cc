#include "converters/sources/shard_splits.h"

#include <algorithm>
#include <array>

namespace shardpack {
namespace {

constexpr std::array<std::string_view, 8> kSplitWords = {
    "train", "training", "val", "valid", "validation", "dev", "test", "testing"};
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz", kDigits = "0123456789";

bool IsSplitWord(std::string_view word) {
  return std::find(kSplitWords.begin(), kSplitWords.end(), word) != kSplitWords.end();
}

// Both remove something from the end.
bool TakeDigits(std::string_view& name) {
  const size_t end = name.find_last_not_of(kDigits) + 1;
  const bool any = end < name.size();
  name = name.substr(0, end);
  return any;
}
bool Take(std::string_view& name, std::string_view what) {
  if (!name.ends_with(what)) return false;
  name.remove_suffix(what.size());
  return true;
}

// tensorflow/datasets: docs/external_tfrecord.md.
std::string_view SplitOfTfdsName(std::string_view name) {
  if (!TakeDigits(name) || !Take(name, "-of-") || !TakeDigits(name) || !Take(name, "-")) return "";
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return "";
  name = name.substr(0, dot);
  const size_t dash = name.rfind('-');
  if (dash == name.npos || dash == 0 || !IsSplitWord(name.substr(dash + 1))) return "";
  return name.substr(dash + 1);
}

}  // namespace

std::string_view SplitOfShardName(std::string_view name) {
  const size_t end = name.find_first_not_of(kLetters);
  const std::string_view word = name.substr(0, end);
  if (!IsSplitWord(word)) return SplitOfTfdsName(name);
  const bool ends = end == name.npos || name[end] == '-' || name[end] == '_' || name[end] == '.' ||
                    (name[end] >= '0' && name[end] <= '9');
  return ends ? word : "";
}

ShardSplits SplitsOfShardNames(std::span<const std::string> names) {
  ShardSplits told;
  size_t count = 0;
  for (const std::string& name : names) {
    told.splits.emplace_back(SplitOfShardName(name));
    count += told.splits.back().empty() ? 0 : 1;
  }
  if (count == names.size()) return told;
  return {.splits = {}, .differ = count > 0};
}

}  // namespace shardpack
