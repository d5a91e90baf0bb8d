// Operations on the three channels of one pixel, by the arithmetic of pixel_arithmetic.h.
//
// Rows are worked on in blocks of one plane per channel, which the compiler turns into vector code;
// on x86 a second copy is compiled for AVX2.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "augment/pixel_arithmetic.h"
#include "augment/pixel_operations.h"

namespace shardpack {
namespace {

#define SHARDPACK_INLINE static inline __attribute__((always_inline))

constexpr uint32_t kBlock = 64;

struct Planes {
  alignas(32) float red[kBlock], green[kBlock], blue[kBlock];
};

struct Saturation {
  float factor, rest;

  __attribute__((always_inline)) void operator()(Planes& p) const {
    for (uint32_t i = 0; i < kBlock; ++i)
      SaturatePixel(p.red[i], p.green[i], p.blue[i], factor, rest);
  }
};

struct Gray {
  __attribute__((always_inline)) void operator()(Planes& p) const {
    for (uint32_t i = 0; i < kBlock; ++i) GrayPixel(p.red[i], p.green[i], p.blue[i]);
  }
};

struct Hue {
  float turn;

  __attribute__((always_inline)) void operator()(Planes& p) const {
    for (uint32_t i = 0; i < kBlock; ++i) TurnHueOfPixel(p.red[i], p.green[i], p.blue[i], turn);
  }
};

template <typename Function>
SHARDPACK_INLINE void ForBlocks(const Function& function, const EditablePixels& image) {
  Planes planes;
  std::memset(&planes, 0, sizeof planes);
  for (uint32_t y = 0; y < image.height; ++y) {
    uint8_t* p = image.Row(y);
    for (uint32_t x = 0; x < image.width; x += kBlock, p += size_t{3} * kBlock) {
      const uint32_t count = std::min(kBlock, image.width - x);
      for (uint32_t i = 0; i < count; ++i) {
        planes.red[i] = p[3 * i];
        planes.green[i] = p[3 * i + 1];
        planes.blue[i] = p[3 * i + 2];
      }
      function(planes);
      for (uint32_t i = 0; i < count; ++i) {
        p[3 * i] = static_cast<uint8_t>(static_cast<int32_t>(planes.red[i]));
        p[3 * i + 1] = static_cast<uint8_t>(static_cast<int32_t>(planes.green[i]));
        p[3 * i + 2] = static_cast<uint8_t>(static_cast<int32_t>(planes.blue[i]));
      }
    }
  }
}

#ifdef __x86_64__
template <typename Function>
__attribute__((target("avx2"))) void ForBlocksAvx2(const Function& function,
                                                   const EditablePixels& image) {
  ForBlocks(function, image);
}
#endif

template <typename Function>
void Run(const Function& function, const EditablePixels& image, Instructions instructions) {
#ifdef __x86_64__
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2 && instructions == Instructions::kBest) return ForBlocksAvx2(function, image);
#endif
  ForBlocks(function, image);
}

}  // namespace

void Saturate(double factor, const EditablePixels& image, Instructions instructions) {
  Run(Saturation{static_cast<float>(factor), static_cast<float>(1.0 - factor)}, image,
      instructions);
}

void TurnHue(double turn, const EditablePixels& image, Instructions instructions) {
  Run(Hue{static_cast<float>(turn)}, image, instructions);
}

void MakeGray(const EditablePixels& image, Instructions instructions) {
  Run(Gray{}, image, instructions);
}

}  // namespace shardpack
