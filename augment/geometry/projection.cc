#include "augment/geometry/projection.h"

#include <cmath>
#include <cstddef>

namespace shardpack {
namespace {

double Determinant(const std::array<double, 9>& m) {
  return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
         m[2] * (m[3] * m[7] - m[4] * m[6]);
}

}  // namespace

std::optional<Affine> Projection::affine() const {
  if (m[6] != 0 || m[7] != 0 || m[8] != 1) return std::nullopt;
  return Affine{m[0], m[1], m[2], m[3], m[4], m[5]};
}

double Projection::AreaScaleAt(Point p) const {
  const double scale = m[6] * p.x + m[7] * p.y + m[8];
  return Determinant(m) / (scale * scale * scale);
}

Projection Then(const Projection& first, const Projection& second) {
  Projection all;
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      all.m[3 * row + column] = second.m[3 * row] * first.m[column] +
                                second.m[3 * row + 1] * first.m[3 + column] +
                                second.m[3 * row + 2] * first.m[6 + column];
    }
  }
  return all;
}

std::optional<Projection> Inverse(const Projection& map) {
  if (const auto affine = map.affine()) {
    const std::optional<Affine> inverse = Inverse(*affine);
    if (!inverse) return std::nullopt;
    return Projection(*inverse);
  }
  const std::array<double, 9>& m = map.m;
  const double all = Determinant(m);
  if (!std::isfinite(all) || all == 0) return std::nullopt;
  Projection inverse(
      {m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
       m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
       m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]});
  for (double& number : inverse.m) {
    number /= all;
    if (!std::isfinite(number)) return std::nullopt;
  }
  return inverse;
}

}  // namespace shardpack
