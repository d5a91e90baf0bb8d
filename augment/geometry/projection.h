// Projection: a map of points that keeps lines straight: an affine map, or a perspective.
//
//   Projection map(AffineOf(crop, 224, 224));
//   map = Then(map, Projection{{1, 0, 0, 0, 1, 0, 0.001, 0, 1}});
//   const Point seen = map({x + 0.5, y + 0.5});
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Errors: Inverse is nullopt for a map onto a line or point, or of numbers that are not finite.
// Units: edge coordinates, as affine.h.
#ifndef SHARDPACK_AUGMENT_GEOMETRY_PROJECTION_H_
#define SHARDPACK_AUGMENT_GEOMETRY_PROJECTION_H_

#include <array>
#include <optional>

#include "augment/geometry/affine.h"

namespace shardpack {

// A 3 x 3 matrix, row by row: of (x, y, 1) the first two results divided by the third, which is
// above 0 for points that are seen.
struct Projection {
  std::array<double, 9> m = {1, 0, 0, 0, 1, 0, 0, 0, 1};

  Projection() = default;
  explicit Projection(const std::array<double, 9>& matrix) : m(matrix) {}
  explicit Projection(const Affine& a) : m{a.xx, a.xy, a.x0, a.yx, a.yy, a.y0, 0, 0, 1} {}

  Point operator()(Point p) const {
    const double scale = m[6] * p.x + m[7] * p.y + m[8];
    return {(m[0] * p.x + m[1] * p.y + m[2]) / scale, (m[3] * p.x + m[4] * p.y + m[5]) / scale};
  }
  // nullopt for a perspective.
  std::optional<Affine> affine() const;
  // How many times larger than in the source a small area is at this point of the source; negative
  // if it is mirrored.
  double AreaScaleAt(Point p) const;
  friend bool operator==(const Projection&, const Projection&) = default;
};

Projection Then(const Projection& first, const Projection& second);
std::optional<Projection> Inverse(const Projection& map);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_PROJECTION_H_
