// Splits: assigns each row of a listing to a split (train, val, ...).
//
//   absl::StatusOr<SplitPlan> plan =
//       PlanSplits(listing, rows, {{"train", 0.9}, {"val", 0.1}}, SplitBy::kHash, seed);
//   for (size_t s = 0; s < plan->names.size(); ++s) plan->Rows(s);
//
// kHash: by a seeded hash of the path, so a file stays in its split when others are added or
// removed; sizes are approximate. kRandom: exact sizes. kStratified: exact sizes in each class.
// kDir: by the first folder of the path.
//
// Errors: InvalidArgument, naming what cannot be met, such as a split that would be empty.
#ifndef SHARDPACK_CONVERTERS_PLANNING_SPLITS_H_
#define SHARDPACK_CONVERTERS_PLANNING_SPLITS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/listing.h"

namespace shardpack {

enum class SplitBy : uint8_t { kHash, kRandom, kStratified, kDir };
constexpr auto WordsOf(SplitBy) {
  return std::to_array<std::string_view>({"hash", "random", "stratified", "dir"});
}

using SplitFractions = std::vector<std::pair<std::string, double>>;

struct SplitPlan {
  std::vector<std::string> names;
  std::vector<uint32_t> rows;  // grouped by split, each in listing order
  std::vector<uint64_t> ends;  // of each split in `rows`

  std::span<uint32_t> Rows(size_t split) {
    const uint64_t begin = split == 0 ? 0 : ends[split - 1];
    return std::span(rows).subspan(begin, ends[split] - begin);
  }
};

// `rows` is sorted and not empty. No fractions = one split "train" (except with kDir, which takes
// none).
absl::StatusOr<SplitPlan> PlanSplits(const Listing& listing, std::vector<uint32_t> rows,
                                     const SplitFractions& fractions, SplitBy by, uint64_t seed);

// [A-Za-z0-9_-], beginning with a letter or digit, at most 64: valid in every file system and shard
// pattern.
bool IsPortableSplitName(std::string_view name);

// `total` divided exactly in these proportions (not all 0), by largest remainder; ties go to the
// earlier part.
std::vector<uint64_t> DivideExactly(uint64_t total, std::span<const double> fractions);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_SPLITS_H_
