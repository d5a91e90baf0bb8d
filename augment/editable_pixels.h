// EditablePixels: pixels that may be changed: 8 bits, interleaved, rows top to bottom.
//
//   EditablePixels image = {pixels, 224, 224, 3, 672};
//   uint8_t* row = image.Row(y);
//
// Lifetime: borrows.
// Units: pixels; bytes.
#ifndef SHARDPACK_AUGMENT_EDITABLE_PIXELS_H_
#define SHARDPACK_AUGMENT_EDITABLE_PIXELS_H_

#include <cstddef>
#include <cstdint>

#include "images/pixels/pixels.h"

namespace shardpack {

struct EditablePixels {
  uint8_t* pixels = nullptr;
  uint32_t width = 0, height = 0;
  uint32_t channels = 3;
  size_t stride_bytes = 0;

  uint8_t* Row(uint32_t y) const { return pixels + y * stride_bytes; }
  PixelView view() const { return {pixels, width, height, channels, stride_bytes}; }
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_EDITABLE_PIXELS_H_
