// The arithmetic of operations on one pixel, which loops over pixels on the CPU and CUDA kernels
// share: in float as torchvision's uint8 kernels, without fused multiplication and addition, so
// that every processor makes the same bytes.
//
//   SaturatePixel(red, green, blue, factor, 1 - factor);   // levels as floats, in place
//
// Thread-safety: pure functions.
// Units: levels of 0 to 255.
#ifndef SHARDPACK_AUGMENT_PIXEL_ARITHMETIC_H_
#define SHARDPACK_AUGMENT_PIXEL_ARITHMETIC_H_

#include <cstdint>

#include "images/pixels/host_device.h"

// Inlined into loops that are compiled for several instruction sets.
#ifdef __CUDACC__
#define SHARDPACK_PIXEL_INLINE __host__ __device__ __forceinline__
#else
#define SHARDPACK_PIXEL_INLINE static inline __attribute__((always_inline))
#endif

namespace shardpack {

SHARDPACK_PIXEL_INLINE float TruncatedLevel(float x) {
  return static_cast<float>(static_cast<int32_t>(x));
}
SHARDPACK_PIXEL_INLINE float LimitedTo(float x, float most) {
  x = x < 0 ? 0 : x;
  return x > most ? most : x;
}
SHARDPACK_PIXEL_INLINE float LargerOf(float a, float b) { return a < b ? b : a; }
SHARDPACK_PIXEL_INLINE float SmallerOf(float a, float b) { return b < a ? b : a; }

SHARDPACK_PIXEL_INLINE float GrayLevel(float red, float green, float blue) {
  return TruncatedLevel(red * 0.2989f + green * 0.587f + blue * 0.114f);
}

// `rest` is 1 - factor, rounded once.
SHARDPACK_PIXEL_INLINE void SaturatePixel(float& red, float& green, float& blue, float factor,
                                          float rest) {
  const float gray = GrayLevel(red, green, blue);
  red = TruncatedLevel(LimitedTo(red * factor + gray * rest, 255));
  green = TruncatedLevel(LimitedTo(green * factor + gray * rest, 255));
  blue = TruncatedLevel(LimitedTo(blue * factor + gray * rest, 255));
}

SHARDPACK_PIXEL_INLINE void GrayPixel(float& red, float& green, float& blue) {
  red = green = blue = GrayLevel(red, green, blue);
}

// torchvision's _rgb_to_hsv and _hsv_to_rgb, without branches. The results are still to be
// truncated.
SHARDPACK_PIXEL_INLINE void TurnHueOfPixel(float& to_red, float& to_green, float& to_blue,
                                           float turn) {
  const float r = to_red / 255.0f, g = to_green / 255.0f, b = to_blue / 255.0f;
  const float most = LargerOf(LargerOf(r, g), b), least = SmallerOf(SmallerOf(r, g), b);
  const float range = most - least;
  const bool gray = range == 0;
  const float s = range / (gray ? 1.0f : most);
  const float divisor = gray ? 1.0f : range;
  const float rc = (most - r) / divisor, gc = (most - g) / divisor, bc = (most - b) / divisor;
  const float from_green = rc + 2.0f - bc, from_blue = gc + 4.0f - rc;
  float h = most == r ? bc - gc : (most == g ? from_green : from_blue);
  h = h * static_cast<float>(1.0 / 6.0) + 1.0f;  // 5/6 to 11/6
  h = h >= 1 ? h - 1 : h;
  h = h + turn;
  h = h < 0 ? h + 1 : h;
  h = h >= 1 ? h - 1 : h;
  const float h6 = h * 6;
  float sector = TruncatedLevel(h6);
  const float f = h6 - sector;
  sector = sector >= 6 ? sector - 6 : sector;
  const float sf = s * f, rest = 1.0f - s;
  const float v = most;
  const float q = LimitedTo((1.0f - sf) * v, 1), t = LimitedTo((sf + rest) * v, 1);
  const float low = LimitedTo(rest * v, 1);
  // One after the other instead of nested, which the compiler would turn into jumps.
  float red = v, green = t, blue = low;
  red = sector == 1 ? q : red, green = sector == 1 ? v : green;
  red = sector == 2 ? low : red, green = sector == 2 ? v : green, blue = sector == 2 ? t : blue;
  red = sector == 3 ? low : red, green = sector == 3 ? q : green, blue = sector == 3 ? v : blue;
  red = sector == 4 ? t : red, green = sector == 4 ? low : green, blue = sector == 4 ? v : blue;
  red = sector == 5 ? v : red, green = sector == 5 ? low : green, blue = sector == 5 ? q : blue;
  to_red = red * 255.999f;
  to_green = green * 255.999f;
  to_blue = blue * 255.999f;
}

// `rest` is the mean gray level times 1 - factor.
SHARDPACK_PIXEL_INLINE uint8_t ContrastLevel(float x, float factor, float rest) {
  return static_cast<uint8_t>(LimitedTo(x * factor + rest, 255));
}

// The levels from `least` to `most` become those from 0 to 255; a single one stays.
SHARDPACK_PIXEL_INLINE uint8_t AutocontrastLevel(float x, float least, float most) {
  float scale = (most - least) * static_cast<float>(1.0 / 255);
  if (least == most) {
    least = 0;
    scale = 1;
  }
  return static_cast<uint8_t>(LimitedTo((x - least) / scale, 255));
}

// Pillow's ImageOps.equalize: `before` pixels have lower levels, and all but those of the highest
// one are 255 * step and more; a step of 0 leaves levels as they are.
SHARDPACK_PIXEL_INLINE uint8_t EqualizedLevel(uint32_t x, uint64_t before, uint64_t step) {
  if (step == 0) return static_cast<uint8_t>(x);
  const uint64_t level = (step / 2 + before) / step;
  return static_cast<uint8_t>(level < 255 ? level : 255);
}

// `sum` is that of 3 x 3 pixels with the centre counted five times, whose rounded mean is the
// blurred image; `rest` is 1 - factor.
SHARDPACK_PIXEL_INLINE uint8_t SharpenedLevel(int32_t center, int32_t sum, float rest) {
  const int32_t blurred = (2 * sum + 13) / 26;
  const float sharp = static_cast<float>(center) + static_cast<float>(blurred - center) * rest;
  return static_cast<uint8_t>(static_cast<int32_t>(LimitedTo(sharp, 255)));
}

// Between four pixels, upper ones first, by weights of 256ths to the right and down.
SHARDPACK_PIXEL_INLINE uint8_t BlendedLevel(uint32_t a, uint32_t b, uint32_t c, uint32_t d,
                                            uint32_t wx, uint32_t wy) {
  const uint32_t top = a * (256 - wx) + b * wx, bottom = c * (256 - wx) + d * wx;
  return static_cast<uint8_t>((top * (256 - wy) + bottom * wy + (1 << 15)) >> 16);
}

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_PIXEL_ARITHMETIC_H_
