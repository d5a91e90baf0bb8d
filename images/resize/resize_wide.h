// ResizeWide: the resize of images/resize/resize.h for pixels with alpha or 16-bit samples.
//
//   std::vector<uint8_t> out(width * height * view.channels * view.sample_bytes);
//   absl::Status status = ResizeWide(view, box, width, height, filter, out.data());
//
// Uses the same taps and weights in floating point, rounded once at the end. Colours are weighted
// by their alpha, so the colours of transparent pixels do not show through. Twenty times slower
// than Resizer; few images need it.
//
// Lifetime: nothing is borrowed after the call.
// Thread-safety: a pure function.
// Errors: InvalidArgument for a box that is empty or not inside the view, or sizes of 0 or above
// 65,535; ResourceExhausted if ResizeWideBytes is more than 1 GiB.
// Units: pixels; the result has the view's channels and samples, rows without gaps. The second of
// two and the fourth of four channels are alpha.
#ifndef SHARDPACK_IMAGES_RESIZE_RESIZE_WIDE_H_
#define SHARDPACK_IMAGES_RESIZE_RESIZE_WIDE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "images/pixels/pixels.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

// Bytes that ResizeWide takes beside the pixels and the result: weights and the ring of rows.
uint64_t ResizeWideBytes(const PixelView& view, const PixelBox& box, uint32_t width,
                         uint32_t height, ResizeFilter filter);

absl::Status ResizeWide(const PixelView& view, const PixelBox& box, uint32_t width, uint32_t height,
                        ResizeFilter filter, uint8_t* out);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_RESIZE_RESIZE_WIDE_H_
