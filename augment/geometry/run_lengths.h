// RunLengths: a mask of one object, as COCO's run lengths.
//
//   absl::StatusOr<RunLengths> mask = ParseRunLengths("PPYo1d0N1...", height, width);
//   ForEachRun(*mask, [&](uint64_t begin, uint64_t end) { area += end - begin; });
//
// Counts are of pixels outside and inside alternately, outside first, column after column from the
// left, each from the top. The text is that of pycocotools (maskApi.c, rleToString): five bits a
// character from '0' on, the lowest first, the sixth bit on all but the last; from the fourth count
// on the difference to the count before the last.
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Errors: InvalidArgument with the place, for invalid text or counts, or counts that do not fill
// the mask exactly.
// Units: pixels.
#ifndef SHARDPACK_AUGMENT_GEOMETRY_RUN_LENGTHS_H_
#define SHARDPACK_AUGMENT_GEOMETRY_RUN_LENGTHS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace shardpack {

struct RunLengths {
  uint32_t height = 0, width = 0;
  std::vector<uint32_t> counts;  // their sum is height x width

  friend bool operator==(const RunLengths&, const RunLengths&) = default;
};

absl::StatusOr<RunLengths> ParseRunLengths(std::string_view text, uint32_t height, uint32_t width);
// The uncompressed form: a list of counts.
absl::StatusOr<RunLengths> CheckedRunLengths(std::vector<uint32_t> counts, uint32_t height,
                                             uint32_t width);

// Calls `run(begin, end)` for each run of pixels inside, by their numbers column after column:
// pixel n is in row n % height of column n / height.
template <typename Run>
void ForEachRun(const RunLengths& mask, const Run& run) {
  uint64_t at = 0;
  for (size_t i = 0; i < mask.counts.size(); ++i) {
    const uint64_t begin = at;
    at += mask.counts[i];
    if (i % 2 == 1 && at > begin) run(begin, at);
  }
}

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_RUN_LENGTHS_H_
