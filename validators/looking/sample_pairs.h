// PairSamples: finds for each sample of one dataset its partner in another, by key, source path or
// image.
//
//   absl::StatusOr<SamplePairs> found = PairSamples(rows, was, now, Identity::kKey, class_of);
//   for (const SamplePair& pair : found->pairs) ...   // ascending by `was`
//
// Lifetime: owns its rows.
// Thread-safety: any thread; works on all cores.
// Errors: those of opening indexes.
// Memory: 16 bytes a row, and 16 a pair.
#ifndef SHARDPACK_VALIDATORS_LOOKING_SAMPLE_PAIRS_H_
#define SHARDPACK_VALIDATORS_LOOKING_SAMPLE_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "validators/looking/sample_rows.h"

namespace shardpack {

enum class Identity : uint8_t { kKey, kPath, kImage };

struct SamplePair {
  uint64_t was, now;
};

struct SamplePairs {
  std::vector<SamplePair> pairs;
  std::vector<uint64_t> only_was, only_now;  // ascending
};

// The class of a label of the first (0) or second (1) dataset, as a number that is equal where the
// classes are. Called by one thread.
using ClassOfLabel = std::function<int64_t(size_t side, int64_t label)>;

// Rows of the first dataset of `rows` against rows of the second. A sample without the identity (no
// path, no image) has no partner.
absl::StatusOr<SamplePairs> PairSamples(const SampleRows& rows, std::vector<uint64_t> was,
                                        std::vector<uint64_t> now, Identity identity,
                                        const ClassOfLabel& class_of);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_SAMPLE_PAIRS_H_
