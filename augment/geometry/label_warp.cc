#include "augment/geometry/label_warp.h"

namespace shardpack {

template <typename Label>
void WarpLabels(LabelMapOf<const Label> map, const Affine& back, Label ignore,
                LabelMapOf<Label> result) {
  Label* to = result.labels;
  for (uint32_t y = 0; y < result.height; ++y) {
    for (uint32_t x = 0; x < result.width; ++x, ++to) {
      const Point at = back({x + 0.5, y + 0.5});
      // Written so that NaN counts as outside.
      const bool inside = at.x >= 0 && at.y >= 0 && at.x < map.width && at.y < map.height;
      *to = inside
                ? map.labels[static_cast<uint64_t>(at.y) * map.width + static_cast<uint64_t>(at.x)]
                : ignore;
    }
  }
}

template void WarpLabels(LabelMapOf<const uint8_t>, const Affine&, uint8_t, LabelMapOf<uint8_t>);
template void WarpLabels(LabelMapOf<const uint16_t>, const Affine&, uint16_t, LabelMapOf<uint16_t>);

}  // namespace shardpack
