// Any bytes as the objects of an image: an error, or objects that stay within the result wherever
// they are moved, and can be painted.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "augment/geometry/coco_objects.h"
#include "augment/geometry/object_batch.h"
#include "augment/geometry/object_labels.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;
  const auto objects = ParseObjects(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!objects.ok()) {
    Check(!objects.status().message().empty());
    return 0;
  }
  Check(objects->size() <= kMaxObjects);
  for (const ImageObject& object : *objects) {
    const PixelBox& box = object.box;
    for (const double edge : {box.left, box.top, box.right, box.bottom}) Check(std::isfinite(edge));
    Check(box.left <= box.right && box.top <= box.bottom);
    Check(object.outlined || (object.polygons.empty() && !object.mask));
  }
  const Projection turn =
      size % 5 == 0 ? Projection({1, 0.1, 0, 0, 1, 0, 0.003, 0.001, 1})
                    : Projection(RotationAbout({20, 30}, static_cast<double>(size % 360)));
  const Movement movement = {.source_width = 100,
                             .source_height = 80,
                             .crop = {.box = {10, 5, 70, 60}, .flip = size % 2 == 0},
                             .width = 40,
                             .height = 60,
                             .warps = std::span(&turn, 1)};
  const auto moved =
      MoveObjects(*objects, movement, {.box_from_polygon = size % 3 == 0, .polygons = true});
  Check(moved.ok());
  Check(moved->labels.size() + moved->dropped == objects->size());
  Check(moved->boxes.size() == 4 * moved->labels.size());
  for (size_t i = 0; i < moved->boxes.size(); ++i)
    Check(moved->boxes[i] >= 0 && moved->boxes[i] <= (i % 2 == 0 ? 40 : 60));
  for (size_t i = 0; i < moved->polygons.size(); ++i)
    Check(moved->polygons[i] >= 0 && moved->polygons[i] <= (i % 2 == 0 ? 40 : 60));
  PixelPipelineOptions pixels;
  pixels.crop = {.width = 40, .height = 60};
  auto labels = ObjectLabels::Create(pixels, {.wide = size % 2 == 0, .ignore = 3}, Overlap::kLast);
  std::vector<uint16_t> map(40 * 60);
  (void)labels->Run(*objects, 100, 80, movement.crop, true, map.data());
  ObjectBatch batch;
  batch.Add(*moved);
  Check(batch.ring_offsets.size() == moved->labels.size() + 1);
  return 0;
}
