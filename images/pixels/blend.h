// BlendAlpha, ChangeColors: convert pixels to other channels.
//
//   const PixelView opaque = BlendAlpha(view, 0xFFFFFF, out);   // onto white
//   ChangeColors(view, 1, out);                                 // to gray, alpha is kept
//
// A blended sample is (sample * alpha + background * (max - alpha)) / max, rounded; for gray
// pixels, the background's luma is used. Gray becomes RGB by repetition.
//
// Lifetime: the returned view borrows `out`.
// Errors: none; the view must have 2 or 4 channels, or 1 to 4 for ChangeColors.
// Units: `out` has room for the new channels, rows without gaps; the background is red, green, blue
// in 8 bits each. ChangeColors to fewer channels may write over the view itself if its rows have no
// gaps.
#ifndef SHARDPACK_IMAGES_PIXELS_BLEND_H_
#define SHARDPACK_IMAGES_PIXELS_BLEND_H_

#include <cstdint>

#include "images/pixels/pixels.h"

namespace shardpack {

PixelView BlendAlpha(const PixelView& view, uint32_t background, uint8_t* out);
// Converts to 1 (gray, by luma) or 3 colours; keeps the view's alpha, if any.
void ChangeColors(const PixelView& view, uint32_t colors, uint8_t* out);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_BLEND_H_
