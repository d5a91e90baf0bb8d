// FindNearCopies: images that look alike, by their perceptual hashes.
//
//   absl::StatusOr<NearCopies> near = FindNearCopies(rows, {.distance = 6}, progress, stop);
//   for (const NearGroup& group : near->groups) ...
//
// Every image is read, checked against its hash, and decoded at a reduced scale. A group has all
// images that are connected by pairs within the distance, so two of its members may differ by more;
// the distance to its first member is given. Groups whose images are all equal byte for byte are
// left out: FindExactCopies finds them. Crops, rotations and mirrored images are not found.
//
// Lifetime: owns its rows.
// Thread-safety: works on all cores.
// Errors: those of opening indexes; Cancelled if `stop` becomes nonzero. Images that cannot be read
// or decoded are counted.
// Memory: 48 bytes an image, and what decoding takes.
// Units: images; bits of the hash.
#ifndef SHARDPACK_VALIDATORS_LOOKING_NEAR_COPIES_H_
#define SHARDPACK_VALIDATORS_LOOKING_NEAR_COPIES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "validators/looking/exact_copies.h"
#include "validators/looking/looking_options.h"
#include "validators/looking/sample_rows.h"

namespace shardpack {

struct NearOptions {
  int distance = kNearDistance;  // 0 to kMaxNearDistance
};

struct NearProgress {
  std::atomic<uint64_t> done{0}, total{0}, bytes{0}, bad{0};
};

struct NearGroup {
  CopyGroup group;
  std::vector<int> distances;  // of each row to the first
};

struct NearCopies {
  std::vector<NearGroup> groups;  // in the order of SortGroups
  uint64_t hashed = 0;
  uint64_t flat = 0;     // left out, because nearly all pixels are the same
  UnreadSamples unread;  // cannot be read or decoded, or were not tried
  uint64_t damaged = 0;  // of `unread`: cannot be read
  uint64_t huge = 0;     // of `unread`: not tried, because they are larger than kMaxImageFileBytes
  // Rows, ascending, at most kMostRows.
  std::vector<uint64_t> first_flat, first_undecodable, first_huge;
  static constexpr size_t kMostRows = 5;
};

absl::StatusOr<NearCopies> FindNearCopies(const SampleRows& rows, const NearOptions& options,
                                          NearProgress& progress, const std::atomic<int>& stop);

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_NEAR_COPIES_H_
