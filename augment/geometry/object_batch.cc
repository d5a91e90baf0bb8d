#include "augment/geometry/object_batch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

void AppendBox(const PixelBox& box, BoxFormat format, std::vector<float>& boxes) {
  const bool sizes = format == BoxFormat::kXywh;
  for (const double number : {box.left, box.top, sizes ? box.right - box.left : box.right,
                              sizes ? box.bottom - box.top : box.bottom}) {
    boxes.push_back(static_cast<float>(number));
  }
}

// Of a perspective: at the middle of what the crop shows of the box. Negative: mirrored.
double AreaScale(const PixelBox& box, const Movement& movement) {
  const Projection map = movement.map();
  if (map.affine()) return map.AreaScaleAt({});
  const PixelBox& crop = movement.crop.box;
  return map.AreaScaleAt({(std::max(box.left, crop.left) + std::min(box.right, crop.right)) / 2,
                          (std::max(box.top, crop.top) + std::min(box.bottom, crop.bottom)) / 2});
}

absl::Status AppendKeypoints(size_t number, const ImageObject& object, const Movement& movement,
                             bool mirrored, const ObjectOptions& options, MovedObjects& moved) {
  if (options.keypoints == 0) return absl::OkStatus();
  std::vector<Keypoint> points(options.keypoints);
  if (!object.keypoints.empty() && object.keypoints.size() != points.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "object ", number, " has ", object.keypoints.size(), " keypoints, not ", points.size()));
  }
  for (size_t i = 0; i < object.keypoints.size(); ++i)
    points[i] = MoveKeypoint(object.keypoints[i], movement);
  if (mirrored) SwapPairs(options.pairs, points);
  for (const Keypoint& point : points) {
    moved.keypoints.push_back(static_cast<float>(point.x));
    moved.keypoints.push_back(static_cast<float>(point.y));
    moved.keypoints.push_back(point.visibility);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckObjectOptions(const ObjectOptions& options) {
  if (!(options.min_visible >= 0 && options.min_visible <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("min_visible is a share from 0 to 1, and not ", options.min_visible));
  }
  constexpr uint32_t kMost = 1024;
  if (options.keypoints > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("keypoints: ", options.keypoints, " of each object; at most ", kMost));
  }
  return CheckPairs(options.pairs, options.keypoints);
}

absl::StatusOr<MovedObjects> MoveObjects(std::span<const ImageObject> objects,
                                         const Movement& movement, const ObjectOptions& options) {
  MovedObjects moved;
  for (size_t i = 0; i < objects.size(); ++i) {
    const ImageObject& object = objects[i];
    MovedBox box = MoveBox(object.box, movement);
    moved.outside += box.outside ? 1 : 0;
    MovedRings shape;
    const bool from_polygon = options.box_from_polygon && !object.polygons.empty();
    if (from_polygon || options.polygons) shape = MoveRings(object.polygons, movement);
    if (from_polygon) {
      box.box = HullOf(shape.rings);
      box.small = shape.small;
    }
    if (!IsKept(box, options.min_visible)) {
      ++moved.dropped;
      continue;
    }
    const double scale = AreaScale(object.box, movement);
    AppendBox(box.box, options.format, moved.boxes);
    moved.areas.push_back(static_cast<float>(object.area * std::abs(scale)));
    moved.labels.push_back(object.label);
    moved.crowds.push_back(object.crowd ? 1 : 0);
    moved.keep.push_back(static_cast<uint32_t>(i));
    RETURN_IF_ERROR(AppendKeypoints(i, object, movement, scale < 0, options, moved));
    if (!options.polygons) continue;
    moved.rings.push_back(static_cast<uint32_t>(shape.rings.size()));
    for (const Ring& ring : shape.rings) {
      moved.points.push_back(static_cast<uint32_t>(ring.size()));
      for (const Point& point : ring) {
        moved.polygons.push_back(static_cast<float>(point.x));
        moved.polygons.push_back(static_cast<float>(point.y));
      }
    }
  }
  return moved;
}

void ObjectBatch::Add(const MovedObjects& more) {
  Append(more.boxes, boxes);
  Append(more.areas, areas);
  Append(more.labels, labels);
  Append(more.crowds, crowds);
  Append(more.keep, keep);
  Append(more.keypoints, keypoints);
  Append(more.polygons, polygons);
  for (const uint32_t count : more.rings) ring_offsets.push_back(ring_offsets.back() + count);
  for (const uint32_t count : more.points) point_offsets.push_back(point_offsets.back() + count);
  offsets.push_back(offsets.back() + static_cast<int64_t>(more.labels.size()));
  dropped += more.dropped;
  outside += more.outside;
}

}  // namespace shardpack
