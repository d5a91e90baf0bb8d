// BlendAlpha: pixels on a background of one colour, without alpha.
//
//   const PixelView opaque = BlendAlpha(view, 0xFFFFFF, out);   // onto white
//
// Each sample becomes (sample * alpha + background * (most - alpha)) / most, rounded. Gray pixels
// get the background's luma. Lifetime: the view that is given back borrows `out`. Thread-safety: a
// pure function. Errors: none; the view has 2 or 4 channels. Units: `out` has room for one channel
// less, rows without gaps; the background is red, green, blue in 8 bits each.
#ifndef SHARDPACK_IMAGES_BLEND_H_
#define SHARDPACK_IMAGES_BLEND_H_

#include <cstdint>

#include "images/pixels.h"

namespace shardpack {

PixelView BlendAlpha(const PixelView& view, uint32_t background, uint8_t* out);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_BLEND_H_
