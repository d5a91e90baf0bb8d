#include "augment/geometry/affine.h"

#include <cmath>
#include <numbers>

namespace shardpack {

Affine AffineOfCrop(const PixelBox& box, double width, double height) {
  const double x = width / (box.right - box.left), y = height / (box.bottom - box.top);
  return {.xx = x, .x0 = -box.left * x, .yy = y, .y0 = -box.top * y};
}

Affine AffineOfFlip(double width) { return {.xx = -1, .x0 = width}; }

Affine AffineOf(const Crop& crop, double width, double height) {
  const Affine resized = AffineOfCrop(crop.box, width, height);
  return crop.flip ? Then(resized, AffineOfFlip(width)) : resized;
}

Affine RotationAbout(Point center, double degrees) {
  const double angle = degrees * std::numbers::pi / 180;
  const double c = std::cos(angle), s = std::sin(angle);
  // y points downwards.
  return {.xx = c,
          .xy = s,
          .x0 = center.x - c * center.x - s * center.y,
          .yx = -s,
          .yy = c,
          .y0 = center.y + s * center.x - c * center.y};
}

Affine Then(const Affine& first, const Affine& second) {
  const Point moved = second({first.x0, first.y0});
  return {.xx = second.xx * first.xx + second.xy * first.yx,
          .xy = second.xx * first.xy + second.xy * first.yy,
          .x0 = moved.x,
          .yx = second.yx * first.xx + second.yy * first.yx,
          .yy = second.yx * first.xy + second.yy * first.yy,
          .y0 = moved.y};
}

std::optional<Affine> Inverse(const Affine& affine) {
  const double area = affine.xx * affine.yy - affine.xy * affine.yx;
  if (!std::isfinite(area) || area == 0) return std::nullopt;
  Affine inverse = {.xx = affine.yy / area,
                    .xy = -affine.xy / area,
                    .yx = -affine.yx / area,
                    .yy = affine.xx / area};
  const Point origin = inverse({affine.x0, affine.y0});
  inverse.x0 = -origin.x;
  inverse.y0 = -origin.y;
  if (!std::isfinite(inverse.xx) || !std::isfinite(inverse.xy) || !std::isfinite(inverse.yx) ||
      !std::isfinite(inverse.yy) || !std::isfinite(inverse.x0) || !std::isfinite(inverse.y0)) {
    return std::nullopt;
  }
  return inverse;
}

}  // namespace shardpack
