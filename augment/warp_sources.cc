// Where the pixels of a warp's result come from, as a matrix.
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "augment/program.h"

namespace shardpack {
namespace {

double Radians(double degrees) { return degrees * (std::numbers::pi / 180); }

// torchvision's _get_inverse_affine_matrix about the image's centre.
WarpMatrix InverseAffine(double degrees, double dx, double dy, double scale, double shear_x,
                         double shear_y, double center_x, double center_y) {
  const double rotation = Radians(degrees), sx = Radians(shear_x), sy = Radians(shear_y);
  const double a = std::cos(rotation - sy) / std::cos(sy);
  const double b = -a * std::tan(sx) - std::sin(rotation);
  const double c = std::sin(rotation - sy) / std::cos(sy);
  const double d = -c * std::tan(sx) + std::cos(rotation);
  WarpMatrix m = {d / scale, -b / scale, 0, -c / scale, a / scale, 0, 0, 0, 1};
  m[2] = center_x - m[0] * (center_x + dx) - m[1] * (center_y + dy);
  m[5] = center_y - m[3] * (center_x + dx) - m[4] * (center_y + dy);
  return m;
}

// From the unit square to the quadrilateral of x1, y1, ..., x4, y4. Heckbert: "Fundamentals of
// Texture Mapping and Image Warping", 1989, section 2.2.3.
WarpMatrix FromSquare(const double* p) {
  const double dx1 = p[2] - p[4], dx2 = p[6] - p[4], sx = p[0] - p[2] + p[4] - p[6];
  const double dy1 = p[3] - p[5], dy2 = p[7] - p[5], sy = p[1] - p[3] + p[5] - p[7];
  const double area = dx1 * dy2 - dx2 * dy1;
  const double g = (sx * dy2 - dx2 * sy) / area, h = (dx1 * sy - sx * dy1) / area;
  return {p[2] - p[0] + g * p[2],
          p[6] - p[0] + h * p[6],
          p[0],
          p[3] - p[1] + g * p[3],
          p[7] - p[1] + h * p[7],
          p[1],
          g,
          h,
          1};
}

// Whether the four corners turn right all the way round, each by more than nothing.
bool IsConvex(const double* p) {
  for (size_t i = 0; i < 4; ++i) {
    const size_t a = 2 * i, b = 2 * ((i + 1) % 4), c = 2 * ((i + 2) % 4);
    const double turn =
        (p[b] - p[a]) * (p[c + 1] - p[b + 1]) - (p[b + 1] - p[a + 1]) * (p[c] - p[b]);
    if (!(turn > 0)) return false;
  }
  return true;
}

// As torchvision's _get_perspective_coeffs: the centres of the corner pixels, which it counts from
// 0, 0, go to the given places.
std::optional<WarpMatrix> InversePerspective(const double* corners, uint32_t width,
                                             uint32_t height) {
  if (width < 3 || height < 3) return WarpMatrix{1, 0, 0, 0, 1, 0, 0, 0, 1};
  if (!IsConvex(corners)) return std::nullopt;
  WarpMatrix f = FromSquare(corners);
  for (const size_t i : {0u, 3u, 6u}) f[i] /= width - 1.0;
  for (const size_t i : {1u, 4u, 7u}) f[i] /= height - 1.0;
  // The whole image, which is a pixel wider than its centres, lies before the horizon.
  for (const double x : {0.0, double(width)}) {
    for (const double y : {0.0, double(height)}) {
      if (!(f[6] * x + f[7] * y + 1 > 1e-6)) return std::nullopt;
    }
  }
  return WarpMatrix{
      f[4] - f[5] * f[7],        f[2] * f[7] - f[1],        f[1] * f[5] - f[2] * f[4],
      f[5] * f[6] - f[3],        f[0] - f[2] * f[6],        f[2] * f[3] - f[0] * f[5],
      f[3] * f[7] - f[4] * f[6], f[1] * f[6] - f[0] * f[7], f[0] * f[4] - f[1] * f[3]};
}

}  // namespace

std::optional<WarpMatrix> SourceOf(const Operation& warp, uint32_t width, uint32_t height) {
  const double center_x = width * 0.5, center_y = height * 0.5;
  const auto& v = warp.values;
  switch (warp.kind) {
    case OperationKind::kShearX:
      return WarpMatrix{1, v[0], 0, 0, 1, 0, 0, 0, 1};
    case OperationKind::kShearY:
      return WarpMatrix{1, 0, 0, v[0], 1, 0, 0, 0, 1};
    case OperationKind::kTranslateX:
      return WarpMatrix{1, 0, -v[0], 0, 1, 0, 0, 0, 1};
    case OperationKind::kTranslateY:
      return WarpMatrix{1, 0, 0, 0, 1, -v[0], 0, 0, 1};
    case OperationKind::kRotate:
      return InverseAffine(-std::fmod(v[0], 360), 0, 0, 1, 0, 0, center_x, center_y);
    case OperationKind::kAffine:
      return InverseAffine(std::fmod(v[0], 360), v[1], v[2], v[3], v[4], v[5], center_x, center_y);
    case OperationKind::kFlipHorizontal:
      return WarpMatrix{-1, 0, double(width), 0, 1, 0, 0, 0, 1};
    case OperationKind::kFlipVertical:
      return WarpMatrix{1, 0, 0, 0, -1, double(height), 0, 0, 1};
    case OperationKind::kPerspective:
      return InversePerspective(v.data(), width, height);
    case OperationKind::kElastic:
      return std::nullopt;
    default:
      return WarpMatrix{1, 0, 0, 0, 1, 0, 0, 0, 1};
  }
}

}  // namespace shardpack
