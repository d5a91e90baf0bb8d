// The weights of antialiased resizing, as plain functions that CUDA kernels can share.
//
//   const ResizeAxis axis = MakeResizeAxis(ResizeFilter::kBilinear, left, right, in, out);
//   const ResizeTaps taps = TapsOf(axis, i);   // of output pixel i
//   for (uint32_t k = 0; k < taps.count; ++k)
//     sum += TapWeight(axis, taps, k) * row[taps.first + k];
//
// When reducing, the filter is widened by the reduction factor, so that no pixel is skipped
// (antialiasing); when enlarging, it is plain interpolation. Taps, positions and weights are those
// of Pillow's precompute_coeffs (src/libImaging/Resample.c); the weights here are not yet
// normalised.
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Errors: none; sizes must not be zero and the box must be inside.
// Units: pixels of the input, edges between pixels.
#ifndef SHARDPACK_IMAGES_RESIZE_RESIZE_WEIGHTS_H_
#define SHARDPACK_IMAGES_RESIZE_RESIZE_WEIGHTS_H_

#include <cmath>
#include <cstdint>

#include "images/pixels/host_device.h"

namespace shardpack {

enum class ResizeFilter : uint8_t { kBox, kBilinear, kBicubic, kLanczos };

inline constexpr uint32_t kMaxResize = 65'535;  // maximum side of the result
// What a resize may take beside its pixels and its result.
inline constexpr uint64_t kMaxResizeBytes = uint64_t{1} << 30;

// Half the width of the filter, in pixels of the smaller image.
SHARDPACK_HOST_DEVICE inline double FilterSupport(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::kBox:
      return 0.5;
    case ResizeFilter::kBilinear:
      return 1.0;
    case ResizeFilter::kBicubic:
      return 2.0;
    case ResizeFilter::kLanczos:
      return 3.0;
  }
  return 0;
}

SHARDPACK_HOST_DEVICE inline double Sinc(double x) {
  if (x == 0) return 1;
  x *= 3.14159265358979323846;
  return std::sin(x) / x;
}

// Bicubic is Catmull-Rom (a = -0.5); Lanczos has three lobes.
SHARDPACK_HOST_DEVICE inline double FilterValue(ResizeFilter filter, double x) {
  const double a = x < 0 ? -x : x;
  switch (filter) {
    case ResizeFilter::kBox:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
    case ResizeFilter::kBilinear:
      return a < 1 ? 1 - a : 0;
    case ResizeFilter::kBicubic:
      if (a < 1) return (1.5 * a - 2.5) * a * a + 1;
      return a < 2 ? ((-0.5 * a + 2.5) * a - 4) * a + 2 : 0;
    case ResizeFilter::kLanczos:
      return a < 3 ? Sinc(x) * Sinc(x / 3) : 0;
  }
  return 0;
}

struct ResizeAxis {
  ResizeFilter filter = ResizeFilter::kBilinear;
  uint32_t in_size = 0;
  double first = 0;    // the start of the box
  double step = 1;     // from one output pixel to the next
  double shrink = 1;   // the inverse of the widening: 1 / step, but at most 1
  double support = 0;  // half the width of the widened filter

  bool operator==(const ResizeAxis&) const = default;
};

// Maps the range `first` to `last` of `in_size` pixels to `out_size` pixels.
SHARDPACK_HOST_DEVICE inline ResizeAxis MakeResizeAxis(ResizeFilter filter, double first,
                                                       double last, uint32_t in_size,
                                                       uint32_t out_size) {
  ResizeAxis axis;
  axis.filter = filter;
  axis.in_size = in_size;
  axis.first = first;
  axis.step = (last - first) / out_size;
  const double wider = axis.step < 1 ? 1 : axis.step;
  axis.shrink = 1 / wider;
  axis.support = FilterSupport(filter) * wider;
  return axis;
}

// The maximum number of taps of an output pixel.
SHARDPACK_HOST_DEVICE inline uint32_t MostTaps(const ResizeAxis& axis) {
  return static_cast<uint32_t>(std::ceil(axis.support)) * 2 + 1;
}

struct ResizeTaps {
  uint32_t first = 0, count = 0;  // input pixels
  double center = 0;
};

SHARDPACK_HOST_DEVICE inline ResizeTaps TapsOf(const ResizeAxis& axis, uint32_t i) {
  ResizeTaps taps;
  taps.center = axis.first + (i + 0.5) * axis.step;
  const double low = taps.center - axis.support + 0.5, high = taps.center + axis.support + 0.5;
  taps.first = low < 0 ? 0 : static_cast<uint32_t>(low);
  const uint32_t end = high > axis.in_size ? axis.in_size : static_cast<uint32_t>(high);
  taps.count = end - taps.first;
  return taps;
}

// Must be divided by the sum over all taps of the output pixel.
SHARDPACK_HOST_DEVICE inline double TapWeight(const ResizeAxis& axis, const ResizeTaps& taps,
                                              uint32_t k) {
  return FilterValue(axis.filter, (taps.first + k - taps.center + 0.5) * axis.shrink);
}

// Weights and sums in Pillow's fixed point: the sum of weights times samples, to 8 bits. Results
// equal Pillow's; those with ResizeTable's 16-bit weights are within one level of them.
inline constexpr int kResizeFixedBits = 22;

SHARDPACK_HOST_DEVICE inline int32_t FixedWeight(double normalised) {
  const double fixed = normalised * (1 << kResizeFixedBits);
  return static_cast<int32_t>(fixed < 0 ? fixed - 0.5 : fixed + 0.5);
}

// The initial value of a sum, for rounding to nearest.
inline constexpr int32_t kResizeFixedHalf = 1 << (kResizeFixedBits - 1);

SHARDPACK_HOST_DEVICE inline uint32_t SampleOfSum(int32_t sum) {
  const int32_t level = sum >> kResizeFixedBits;
  return static_cast<uint32_t>(level < 0 ? 0 : level > 255 ? 255 : level);
}

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_RESIZE_RESIZE_WEIGHTS_H_
