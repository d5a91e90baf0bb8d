// WarpLabels: the label map of a warped image.
//
//   const std::optional<Affine> back = Inverse(RotationAbout({112, 112}, 15));
//   if (back) WarpLabels<uint8_t>({map, 224, 224}, *back, /*ignore=*/255, {warped, 224, 224});
//
// Each label of the result is that of the pixel in which the centre of the result's pixel comes to
// lie; outside of the map it is `ignore`.
//
// Lifetime: borrows both maps during the call; they do not overlap.
// Thread-safety: a pure function.
// Errors: none.
// Units: pixels; rows have no gaps.
#ifndef SHARDPACK_AUGMENT_GEOMETRY_LABEL_WARP_H_
#define SHARDPACK_AUGMENT_GEOMETRY_LABEL_WARP_H_

#include <cstdint>

#include "augment/geometry/affine.h"

namespace shardpack {

template <typename Label>
struct LabelMapOf {
  Label* labels = nullptr;
  uint32_t width = 0, height = 0;
};

// `back` maps points of the result to the map. Label is uint8_t or uint16_t.
template <typename Label>
void WarpLabels(LabelMapOf<const Label> map, const Affine& back, Label ignore,
                LabelMapOf<Label> result);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_LABEL_WARP_H_
