// MaskPipeline: turns an encoded mask into one slot of a batch: decode, the crop and flip of the
// image that it belongs to, nearest neighbour.
//
//   MaskPipeline masks(options);                      // those of the image's PixelPipeline
//   std::vector<uint8_t> slot(masks.output_bytes());  // height x width
//   absl::Status status = masks.Run(png, *ShownImageOf(jpeg, info, options), identity, slot.data());
//
// Values are those that are stored: numbers of gray, or indices of a palette, of at most 8 bits.
// Each is that of the pixel whose area holds the centre of the result's pixel; as Pillow's crop and
// resize with NEAREST, or, for kCenter, resize and crop, including how positions are rounded.
//
// A mask has the size of the image as displayed: a label program shows an image upright, and what
// it writes has no orientation of its own, so the image's is not applied to the mask. A mask that
// has one is turned by that. Without PixelPipelineOptions::orient both are as stored.
//
// Lifetime: nothing is borrowed after a call.
// Thread-safety: one thread at a time; make one for each thread.
// Errors: InvalidArgument for a mask of another size, with colours, or of more than 8 bits; those
// of ImageDecoder. The slot's content is then unspecified.
// Units: pixels; bytes in names.
#ifndef SHARDPACK_IMAGES_AUGMENT_MASK_PIPELINE_H_
#define SHARDPACK_IMAGES_AUGMENT_MASK_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "images/augment/crop.h"
#include "images/augment/pixel_pipeline.h"
#include "images/codecs/decode.h"

namespace shardpack {

class MaskPipeline {
 public:
  // `options` pass PixelPipeline::Create.
  explicit MaskPipeline(const PixelPipelineOptions& options) : options_(options) {}

  size_t output_bytes() const { return size_t{options_.crop.width} * options_.crop.height; }
  absl::Status Run(std::span<const std::byte> mask, const ShownImage& image,
                   const SampleIdentity& sample, uint8_t* out);

 private:
  void ChoosePixels(const ShownImage& image, const SampleIdentity& sample);

  const PixelPipelineOptions options_;
  ImageDecoder decoder_;
  std::vector<uint32_t> columns_, rows_;  // of the mask as displayed, for each of the result
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_AUGMENT_MASK_PIPELINE_H_
