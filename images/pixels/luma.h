// Luma: the gray value of a colour.
//
//   const uint8_t gray = Luma(red, green, blue);
//
// ITU-R BT.601, rounded like Pillow; gray input is unchanged.
//
// Units: 8 bits per sample, or 16 for WideLuma.
#ifndef SHARDPACK_IMAGES_PIXELS_LUMA_H_
#define SHARDPACK_IMAGES_PIXELS_LUMA_H_

#include <cstdint>

namespace shardpack {

inline uint32_t WideLuma(uint32_t red, uint32_t green, uint32_t blue) {
  return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}
inline uint8_t Luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>(WideLuma(red, green, blue));
}

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_LUMA_H_
