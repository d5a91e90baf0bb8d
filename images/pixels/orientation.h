// Orientation: an EXIF orientation as a transposition and two mirrors.
//
//   const Orientation turn = OrientationOf(info.orientation);
//   const PixelRegion stored = ToStored(turn, shown, info.width, info.height);
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Errors: none; values not defined by EXIF count as 1.
// Units: pixels. "Stored" is as in the file, "shown" as it should be displayed.
#ifndef SHARDPACK_IMAGES_PIXELS_ORIENTATION_H_
#define SHARDPACK_IMAGES_PIXELS_ORIENTATION_H_

#include <cstdint>
#include <utility>

#include "images/pixels/pixels.h"

namespace shardpack {

// From stored to shown: first swap rows and columns, then mirror.
struct Orientation {
  bool transpose = false;
  bool mirror_x = false, mirror_y = false;

  bool identity() const { return !transpose && !mirror_x && !mirror_y; }
};

// CIPA DC-008 (EXIF 2.32), 4.6.4 A, Orientation.
constexpr Orientation OrientationOf(uint8_t exif) {
  switch (exif) {
    case 2:
      return {false, true, false};
    case 3:
      return {false, true, true};
    case 4:
      return {false, false, true};
    case 5:
      return {true, false, false};
    case 6:
      return {true, true, false};
    case 7:
      return {true, true, true};
    case 8:
      return {true, false, true};
    default:
      return {};
  }
}

// Maps a region or box of the shown image to the stored image of this size.
constexpr PixelBox ToStored(const Orientation& turn, PixelBox box, double stored_width,
                            double stored_height) {
  const double shown_width = turn.transpose ? stored_height : stored_width;
  const double shown_height = turn.transpose ? stored_width : stored_height;
  if (turn.mirror_x) box = {shown_width - box.right, box.top, shown_width - box.left, box.bottom};
  if (turn.mirror_y) box = {box.left, shown_height - box.bottom, box.right, shown_height - box.top};
  if (turn.transpose) box = {box.top, box.left, box.bottom, box.right};
  return box;
}

// Maps a box of the stored image of this size to the shown image.
constexpr PixelBox ToShown(const Orientation& turn, PixelBox box, double stored_width,
                           double stored_height) {
  if (turn.transpose) {
    box = {box.top, box.left, box.bottom, box.right};
    std::swap(stored_width, stored_height);
  }
  if (turn.mirror_x) box = {stored_width - box.right, box.top, stored_width - box.left, box.bottom};
  if (turn.mirror_y) {
    box = {box.left, stored_height - box.bottom, box.right, stored_height - box.top};
  }
  return box;
}

constexpr PixelRegion ToStored(const Orientation& turn, PixelRegion region, uint32_t stored_width,
                               uint32_t stored_height) {
  const uint32_t shown_width = turn.transpose ? stored_height : stored_width;
  const uint32_t shown_height = turn.transpose ? stored_width : stored_height;
  if (turn.mirror_x) region.left = shown_width - region.left - region.width;
  if (turn.mirror_y) region.top = shown_height - region.top - region.height;
  if (turn.transpose) {
    std::swap(region.left, region.top);
    std::swap(region.width, region.height);
  }
  return region;
}

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_ORIENTATION_H_
