// ObjectLabels: the label map that COCO's polygons and run lengths describe, with the crop, resize
// and flip of their image.
//
//   absl::StatusOr<ObjectLabels> labels =
//       ObjectLabels::Create(pixel_options, {.classes = 81}, Overlap::kIgnore);
//   absl::Status done =
//       labels->Run(*ParseObjects(json), width, height, crop, /*same_size=*/true, slot);
//
// A pixel of an object has the label of the object's class plus 1, one of no object 0. The map is
// that of pycocotools, pixel by pixel (frPyObjects, decode), and where several objects lie one of
// Overlap; a result takes the nearest of its pixels, as LabelPipeline takes those of a map that is
// stored. Together, with `legacy` and kIgnore, as torchvision's reference training of segmentation.
// Only the pixels of the result are painted: no map of the whole image is made.
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: one thread at a time; make one for each thread.
// Errors: InvalidArgument for options that cannot be (Create). Run: InvalidArgument that names the
// object by its position: one without class or outline, of run lengths for another size than the
// image's, with a label that is not below `classes`, that needs 16 bits, or is `ignore`; polygons
// with more edges than memory should be spent on.
// Units: pixels of the image as displayed.
#ifndef SHARDPACK_AUGMENT_GEOMETRY_OBJECT_LABELS_H_
#define SHARDPACK_AUGMENT_GEOMETRY_OBJECT_LABELS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "augment/geometry/coco_objects.h"
#include "images/augment/crop.h"
#include "images/augment/label_pipeline.h"
#include "images/augment/nearest_pixels.h"
#include "images/augment/pixel_pipeline.h"

namespace shardpack {

// What pixels get that belong to several objects.
enum class Overlap : uint8_t {
  kIgnore,  // LabelMapOptions::ignore, also if all are of one class
  kLast,    // the label of the last one of the JSON
};

class ObjectLabels {
 public:
  // `options`: those of a stored map; without colours.
  static absl::StatusOr<ObjectLabels> Create(const PixelPipelineOptions& pixels,
                                             const LabelMapOptions& options, Overlap overlap);

  size_t output_bytes() const;
  // Width and height are those of the image that the coordinates are of, `crop` its part.
  // `same_size`: the image that is decoded has this size (ChooseNearest).
  absl::Status Run(std::span<const ImageObject> objects, uint32_t width, uint32_t height,
                   const Crop& crop, bool same_size, void* out);

 private:
  ObjectLabels(const PixelPipelineOptions& pixels, const LabelMapOptions& options, Overlap overlap)
      : crop_(pixels.crop), options_(options), overlap_(overlap) {}
  absl::StatusOr<uint16_t> LabelOf(size_t number, const ImageObject& object) const;
  absl::Status PaintObject(size_t number, const ImageObject& object);
  absl::Status PaintRing(uint32_t owner, const Ring& ring);
  void PaintRun(uint32_t owner, uint64_t begin, uint64_t end);
  template <typename Label>
  void Write(bool flip, Label* out) const;

  CropOptions crop_;
  LabelMapOptions options_;
  Overlap overlap_;
  uint32_t width_ = 0, height_ = 0;           // of the image
  NearestPixels nearest_;                     // of the image, for each of the result
  std::vector<uint32_t> column_at_, row_at_;  // how many of the result are of pixels before this
  std::vector<uint32_t> owners_;   // of the result, column after column: number of the object + 1
  std::vector<uint16_t> labels_;   // of each owner
  std::vector<uint64_t> borders_;  // of one ring
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_GEOMETRY_OBJECT_LABELS_H_
