// Where the pixels of a warp's result come from, as loops on the CPU and CUDA kernels compute it,
// so that every processor finds the same places.
//
//   const int64_t x = WarpRowStart(matrix, row, shift) + column * WarpStep(matrix[0]);
//
// A place is in units of 2^-32 pixels: the upper 32 bits are a pixel. `shift` is 0 for the nearest
// pixel, 0.5 for the four around a place. Along a row of an affine map places advance by the same
// step, from where the row begins in double.
//
// Thread-safety: pure functions.
// Units: pixels.
#ifndef SHARDPACK_AUGMENT_WARP_ARITHMETIC_H_
#define SHARDPACK_AUGMENT_WARP_ARITHMETIC_H_

#include <cmath>
#include <cstdint>

#include "images/pixels/host_device.h"

namespace shardpack {

inline constexpr double kWarpOne = 4294967296.0;  // 2^32

// `m` is the row of the matrix for x, or for y.
SHARDPACK_HOST_DEVICE inline int64_t WarpRowStart(const double* m, uint32_t row, double shift) {
  return std::llrint((m[0] * 0.5 + m[1] * (row + 0.5) + m[2] - shift) * kWarpOne);
}
SHARDPACK_HOST_DEVICE inline int64_t WarpStep(double m) { return std::llrint(m * kWarpOne); }

// Each place by a division of its own. Those far outside, and behind the horizon, become one that
// is outside.
SHARDPACK_HOST_DEVICE inline void PerspectivePlace(const double* m, uint32_t column, uint32_t row,
                                                   double shift, int64_t* x, int64_t* y) {
  constexpr double kFar = 1048576;
  const double at_x = column + 0.5, at_y = row + 0.5;
  const double scale = m[6] * at_x + m[7] * at_y + m[8];
  const double px = (m[0] * at_x + m[1] * at_y + m[2]) / scale - shift;
  const double py = (m[3] * at_x + m[4] * at_y + m[5]) / scale - shift;
  const bool near = scale > 0 && px < kFar && px > -kFar && py < kFar && py > -kFar;
  *x = std::llrint((near ? px : -kFar) * kWarpOne);
  *y = std::llrint((near ? py : -kFar) * kWarpOne);
}

// Rounded to the nearest of 256 places between two pixels.
SHARDPACK_HOST_DEVICE inline int64_t BlendPlace(int64_t place) { return (place + (1 << 23)) >> 24; }

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_WARP_ARITHMETIC_H_
