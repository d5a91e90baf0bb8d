// Conversion of 8-bit samples to normalised numbers: arithmetic on single values, identical on CPU
// and GPU.
//
//   const ChannelScale scale = MakeChannelScale(0.485f, 0.229f);
//   const float number = NormalizedSample(sample, scale);    // (sample / 255 - mean) / std
//   const uint16_t half = FloatToHalf(number);
//
// Every step, including division, is rounded by IEEE 754, so the results equal those of
// torchvision's to_tensor and normalize. A division is a multiplication by the reciprocal and two
// fused steps that correct its rounding, which is far cheaper on a GPU.
//
// Lifetime: plain values.
// Thread-safety: pure functions.
// Errors: none; std must be finite and nonzero.
#ifndef SHARDPACK_IMAGES_PIXELS_PIXEL_NUMBERS_H_
#define SHARDPACK_IMAGES_PIXELS_PIXEL_NUMBERS_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "images/pixels/host_device.h"

namespace shardpack {

struct ChannelScale {
  float mean, std;
  float reciprocal;  // 1 / std
};

inline ChannelScale MakeChannelScale(float mean, float std) { return {mean, std, 1.0f / std}; }

// a / b rounded to nearest, given 1 / b rounded to nearest (Markstein's theorem).
SHARDPACK_HOST_DEVICE inline float Divide(float a, float b, float reciprocal) {
  const float quotient = a * reciprocal;
  const float rest = std::fma(-b, quotient, a);
  return std::fma(rest, reciprocal, quotient);
}

SHARDPACK_HOST_DEVICE inline float NormalizedSample(uint32_t sample, const ChannelScale& scale) {
  const float unit = Divide(static_cast<float>(sample), 255.0f, 1.0f / 255.0f);
  return Divide(unit - scale.mean, scale.std, scale.reciprocal);
}

SHARDPACK_HOST_DEVICE inline uint32_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// IEEE 754 binary16, rounded to nearest, ties to even.
SHARDPACK_HOST_DEVICE inline uint16_t FloatToHalf(float value) {
#ifdef __CUDA_ARCH__
  uint16_t half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
#else
  const uint32_t bits = FloatBits(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);   // NaN
  if (size >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // rounds to infinity
  if (size < 0x33000001) return static_cast<uint16_t>(sign);            // rounds to zero
  const auto rounded = [](uint32_t number, uint32_t drop) {
    const uint32_t half = (1u << (drop - 1)) - 1 + (number >> drop & 1);
    return (number + half) >> drop;
  };
  if (size < 0x38800000) {  // subnormal: the exponent moves into the digits
    const uint32_t digits = (size & 0x7FFFFF) | 0x800000;
    return static_cast<uint16_t>(sign | rounded(digits, 126 - (size >> 23)));
  }
  return static_cast<uint16_t>(sign | rounded(size - 0x38000000, 13));
#endif
}

// The upper half of a binary32 (bfloat16), rounded to nearest, ties to even.
SHARDPACK_HOST_DEVICE inline uint16_t FloatToBfloat(float value) {
  const uint32_t bits = FloatBits(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_PIXEL_NUMBERS_H_
