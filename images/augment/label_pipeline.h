// LabelPipeline: turns an encoded label map into one slot of a batch: decode, the crop and flip of
// the image that it belongs to, nearest neighbour.
//
//   absl::StatusOr<LabelPipeline> labels = LabelPipeline::Create(pixel_options, {.classes = 21});
//   std::vector<std::byte> slot(labels->output_bytes());   // height x width, one or two bytes each
//   absl::Status status = labels->Run(png, *ShownImageOf(jpeg, info, pixel_options), crop, slot.data());
//
// Labels are the numbers that are stored: of gray (1 to 16 bits, never scaled), or indices of a
// palette, whatever its colours and transparency. With `colors` they are what a table says of each
// colour, and every map is read as RGB.
// Each label of the result is that of the pixel whose area holds the centre of the result's pixel,
// as torchvision's NEAREST_EXACT; with `legacy` that at its left and upper edge, as torchvision's
// NEAREST, which its Mask uses. Both round as torchvision does where a place lies on the edge
// between two pixels.
//
// A map has the shape of the image as displayed, at any scale (SharedCrop). Label programs show an
// image upright and write no orientation, so the image's is not applied to the map; one of its own
// is, unless PixelPipelineOptions::orient is off.
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: one thread at a time; make one for each thread.
// Errors: InvalidArgument for options that cannot be (Create). Run: InvalidArgument for a JPEG,
// whose compression changes labels; for another shape than the image, colours without a table or
// that are not in it, labels that are not below `classes`, and labels above 255 without `wide`;
// those of ImageDecoder. The slot's content is then unspecified.
// Units: pixels; bytes in names.
#ifndef SHARDPACK_IMAGES_AUGMENT_LABEL_PIPELINE_H_
#define SHARDPACK_IMAGES_AUGMENT_LABEL_PIPELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "images/augment/crop.h"
#include "images/augment/nearest_pixels.h"
#include "images/augment/pixel_pipeline.h"
#include "images/codecs/decode.h"

namespace shardpack {

struct LabelColor {
  uint8_t red = 0, green = 0, blue = 0;
  uint16_t label = 0;
};

struct LabelMapOptions {
  bool wide = false;  // 16-bit labels, native byte order
  bool legacy = false;
  // Of what no map covers; never an error. 0, or no label below `classes`.
  uint16_t ignore = 255;
  uint32_t classes = 0;                 // labels from here on are errors; 0: all are fine
  std::vector<LabelColor> colors = {};  // empty: numbers
};

// Sets all labels of a map: what padding and samples without a map have.
void FillWithIgnore(const LabelMapOptions& options, std::span<std::byte> map);

class LabelPipeline {
 public:
  // `pixels` are the options of the image's PixelPipeline, and pass PixelPipeline::Create.
  static absl::StatusOr<LabelPipeline> Create(const PixelPipelineOptions& pixels,
                                              const LabelMapOptions& options);

  size_t output_bytes() const;
  // `crop` is what ChooseCrop has chosen for the image.
  absl::Status Run(std::span<const std::byte> map, const ShownImage& image, const Crop& crop,
                   void* out);

 private:
  LabelPipeline(const PixelPipelineOptions& pixels, const LabelMapOptions& options);
  // The common case, of one byte each; false if a label is refused, or has two.
  bool Gather(const PixelView& view, const PixelRegion& region, uint8_t* out) const;
  template <typename Label>
  absl::Status Sample(const PixelView& view, const PixelRegion& region, Label* out) const;

  PixelPipelineOptions pixels_;
  LabelMapOptions options_;
  std::vector<std::pair<uint32_t, uint16_t>> table_;  // colours as 0xRRGGBB, sorted
  std::array<uint8_t, 256> refused_ = {};             // 1: of no class
  ImageDecoder decoder_;
  NearestPixels nearest_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_AUGMENT_LABEL_PIPELINE_H_
