// BlendAlpha, ChangeColors: pixels with other channels.
//
//   const PixelView opaque = BlendAlpha(view, 0xFFFFFF, out);   // onto white
//   ChangeColors(view, 1, out);                                 // to gray, alpha stays
//
// Blended, a sample becomes (sample * alpha + background * (most - alpha)) / most, rounded; gray
// pixels get the background's luma. Gray becomes RGB by repetition.
//
// Lifetime: the view that is given back borrows `out`.
// Errors: none; the view has 2 or 4 channels, or 1 to 4 for ChangeColors.
// Units: `out` has room for the new channels, rows without gaps; the background is red, green, blue
// in 8 bits each. ChangeColors to fewer channels may write over the view itself where its rows have
// no gaps.
#ifndef SHARDPACK_IMAGES_PIXELS_BLEND_H_
#define SHARDPACK_IMAGES_PIXELS_BLEND_H_

#include <cstdint>

#include "images/pixels/pixels.h"

namespace shardpack {

PixelView BlendAlpha(const PixelView& view, uint32_t background, uint8_t* out);
// To 1 (gray, by luma) or 3 colours, and the alpha that the view has.
void ChangeColors(const PixelView& view, uint32_t colors, uint8_t* out);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_BLEND_H_
