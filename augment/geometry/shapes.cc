#include "augment/geometry/shapes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

PixelBox Clipped(const PixelBox& box, const PixelBox& to) {
  return {std::clamp(box.left, to.left, to.right), std::clamp(box.top, to.top, to.bottom),
          std::clamp(box.right, to.left, to.right), std::clamp(box.bottom, to.top, to.bottom)};
}

double AreaOf(const PixelBox& box) { return (box.right - box.left) * (box.bottom - box.top); }

// A number that is not finite is small, too.
bool IsSmall(const PixelBox& box) {
  return !(box.right - box.left >= 1 && box.bottom - box.top >= 1);
}

double Share(const PixelBox& part, const PixelBox& whole) {
  const double area = AreaOf(whole);
  return area > 0 ? AreaOf(part) / area : 0;
}

// The hull of the mapped corners.
template <typename Map>
PixelBox Mapped(const PixelBox& box, const Map& map) {
  const Point corners[] = {map({box.left, box.top}), map({box.right, box.top}),
                           map({box.right, box.bottom}), map({box.left, box.bottom})};
  PixelBox hull = {corners[0].x, corners[0].y, corners[0].x, corners[0].y};
  for (const Point& corner : corners) {
    hull.left = std::min(hull.left, corner.x);
    hull.top = std::min(hull.top, corner.y);
    hull.right = std::max(hull.right, corner.x);
    hull.bottom = std::max(hull.bottom, corner.y);
  }
  return hull;
}

// Keeps the part of a ring on one side of a line: `inside` is how far a point is within, negative
// outside. Sutherland, Hodgman: "Reentrant polygon clipping", CACM 17, 1974.
template <typename Inside>
Ring ClipSide(std::span<const Point> ring, const Inside& inside) {
  Ring kept;
  for (size_t i = 0; i < ring.size(); ++i) {
    const Point &from = ring[(i + ring.size() - 1) % ring.size()], &to = ring[i];
    const double before = inside(from), here = inside(to);
    if ((before < 0) != (here < 0)) {
      const double at = before / (before - here);
      kept.push_back({from.x + (to.x - from.x) * at, from.y + (to.y - from.y) * at});
    }
    if (here >= 0) kept.push_back(to);
  }
  return kept;
}

PixelBox Whole(double width, double height) { return {0, 0, width, height}; }

// Whether Clip has left nothing of a ring but a way along the border there and back, whose hull may
// be the whole result: that of an outline which leads around the crop.
bool IsAlongBorder(std::span<const Point> ring, const PixelBox& border) {
  constexpr double kNear = 1e-6, kNoArea = 1e-3;  // far above roundings
  double twice = 0;
  for (size_t i = 0; i < ring.size(); ++i) {
    const Point &a = ring[i], &b = ring[(i + 1) % ring.size()];
    const double inside =
        std::min({a.x - border.left, border.right - a.x, a.y - border.top, border.bottom - a.y});
    if (inside > kNear) return false;
    twice += a.x * b.y - b.x * a.y;
  }
  return std::abs(twice) < 2 * kNoArea;
}

// The crop may reach beyond the image by a rounding.
PixelBox PartOf(const Movement& movement) {
  return Clipped(movement.crop.box, Whole(movement.source_width, movement.source_height));
}

}  // namespace

Projection Movement::map() const {
  Projection all(AffineOf(crop, width, height));
  for (const Projection& warp : warps) all = Then(all, warp);
  return all;
}

MovedBox MoveBox(const PixelBox& box, const Movement& movement) {
  MovedBox moved;
  const PixelBox seen = Clipped(box, Whole(movement.source_width, movement.source_height));
  moved.outside = seen != box;
  const PixelBox part = Clipped(seen, PartOf(movement));
  moved.visible = Share(part, seen);
  const PixelBox result = Whole(movement.width, movement.height);
  // Rounding must not lead beyond the border.
  moved.box =
      Clipped(Mapped(part, AffineOf(movement.crop, movement.width, movement.height)), result);
  moved.small = IsSmall(moved.box);
  for (const Projection& warp : movement.warps) {
    const PixelBox hull = Mapped(moved.box, warp);
    moved.box = Clipped(hull, result);
    moved.visible *= Share(moved.box, hull);
    moved.small = moved.small || IsSmall(moved.box);
  }
  return moved;
}

bool IsKept(const MovedBox& moved, double min_visible) {
  return !moved.small && moved.visible >= min_visible;
}

Ring Clip(std::span<const Point> ring, const PixelBox& box) {
  Ring kept = ClipSide(ring, [&](const Point& p) { return p.x - box.left; });
  kept = ClipSide(kept, [&](const Point& p) { return box.right - p.x; });
  kept = ClipSide(kept, [&](const Point& p) { return p.y - box.top; });
  kept = ClipSide(kept, [&](const Point& p) { return box.bottom - p.y; });
  // An intersection may be a rounding beyond the border.
  for (Point& point : kept) {
    point.x = std::clamp(point.x, box.left, box.right);
    point.y = std::clamp(point.y, box.top, box.bottom);
  }
  return kept;
}

PixelBox HullOf(std::span<const Ring> rings) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  PixelBox hull = {kFar, kFar, -kFar, -kFar};
  for (const Ring& ring : rings) {
    for (const Point& point : ring) {
      hull.left = std::min(hull.left, point.x);
      hull.top = std::min(hull.top, point.y);
      hull.right = std::max(hull.right, point.x);
      hull.bottom = std::max(hull.bottom, point.y);
    }
  }
  return hull.left > hull.right ? PixelBox() : hull;
}

MovedRings MoveRings(std::span<const Ring> rings, const Movement& movement) {
  const PixelBox part = PartOf(movement), result = Whole(movement.width, movement.height);
  const Affine affine = AffineOf(movement.crop, movement.width, movement.height);
  MovedRings moved;
  for (const Ring& ring : rings) {
    Ring& kept = moved.rings.emplace_back(Clip(ring, part));
    for (Point& point : kept) {
      point = affine(point);
      point.x = std::clamp(point.x, 0.0, movement.width);
      point.y = std::clamp(point.y, 0.0, movement.height);
    }
  }
  const auto keep_seen = [&] {
    std::erase_if(moved.rings, [&](const Ring& ring) { return IsAlongBorder(ring, result); });
    moved.small = moved.small || IsSmall(HullOf(moved.rings));
  };
  keep_seen();
  for (const Projection& warp : movement.warps) {
    for (Ring& ring : moved.rings) {
      for (Point& point : ring) point = warp(point);
      ring = Clip(ring, result);
    }
    keep_seen();
  }
  return moved;
}

Keypoint MoveKeypoint(const Keypoint& point, const Movement& movement) {
  if (point.visibility == 0) return {};
  const PixelBox result = Whole(movement.width, movement.height);
  const auto inside = [&](const Point& p) {
    return p.x >= 0 && p.y >= 0 && p.x < result.right && p.y < result.bottom;
  };
  Point at =
      AffineOf(movement.crop, movement.width, movement.height)({point.x + 0.5, point.y + 0.5});
  // What a crop or warp has moved out is gone, even if a later warp moves its place back in.
  if (!inside(at)) return {};
  for (const Projection& warp : movement.warps) {
    at = warp(at);
    if (!inside(at)) return {};
  }
  return {at.x - 0.5, at.y - 0.5, point.visibility};
}

absl::Status CheckPairs(std::span<const KeypointPair> pairs, uint32_t count) {
  std::set<uint32_t> seen;
  for (const auto& [a, b] : pairs) {
    for (const uint32_t each : {a, b}) {
      if (each >= count) {
        return absl::InvalidArgumentError(
            absl::StrCat("a pair names keypoint ", each, " of ", count, ", counted from 0"));
      }
      if (!seen.insert(each).second)
        return absl::InvalidArgumentError(absl::StrCat("keypoint ", each, " is in pairs twice"));
    }
  }
  return absl::OkStatus();
}

void SwapPairs(std::span<const KeypointPair> pairs, std::span<Keypoint> points) {
  for (const auto& [a, b] : pairs) std::swap(points[a], points[b]);
}

}  // namespace shardpack
