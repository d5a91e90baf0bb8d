// RunLengths: a mask of one object, as COCO's run lengths.
//
//   absl::StatusOr<RunLengths> mask = ParseRunLengths("PPYo1d0N1...", height, width);
//   std::vector<uint8_t> map(size_t{width} * height, 0);
//   Paint(*mask, label, map);       // a label map of the image
//
// Counts are of pixels outside and inside in turns, outside first, column after column from the
// left, each from the top. The text is that of pycocotools (maskApi.c, rleToString): five bits a
// character from '0' on, the lowest first, the sixth bit on all but the last; from the fourth count
// on the difference to the count before the last.
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Errors: InvalidArgument with the place, for text or counts that are none, or do not fill the mask
// exactly.
// Units: pixels.
#ifndef SHARDPACK_AUGMENT_GEOMETRY_RUN_LENGTHS_H_
#define SHARDPACK_AUGMENT_GEOMETRY_RUN_LENGTHS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "images/pixels/pixels.h"

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

// As pycocotools: the number of pixels inside, and the smallest box around them (0 if there is
// none).
uint64_t AreaOf(const RunLengths& mask);
PixelBox HullOf(const RunLengths& mask);

// Sets what lies inside, in a map of height rows of width labels.
void Paint(const RunLengths& mask, uint8_t label, std::span<uint8_t> map);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_RUN_LENGTHS_H_
