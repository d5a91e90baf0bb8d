// Operations on the three channels of one pixel, in float as torchvision's uint8 kernels, without
// fused multiplication and addition, so that every processor makes the same bytes.
//
// Rows are worked on in blocks of one plane per channel, which the compiler turns into vector code;
// on x86 a second copy is compiled for AVX2.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "augment/pixel_operations.h"

namespace shardpack {
namespace {

#define SHARDPACK_INLINE static inline __attribute__((always_inline))

constexpr uint32_t kBlock = 64;

struct Planes {
  alignas(32) float red[kBlock], green[kBlock], blue[kBlock];
};

SHARDPACK_INLINE float Truncate(float x) { return static_cast<float>(static_cast<int32_t>(x)); }
SHARDPACK_INLINE float Limit(float x, float most) {
  x = x < 0 ? 0 : x;
  return x > most ? most : x;
}

SHARDPACK_INLINE float GrayOf(float red, float green, float blue) {
  return Truncate(red * 0.2989f + green * 0.587f + blue * 0.114f);
}

struct Saturation {
  float factor, rest;

  SHARDPACK_INLINE float Blend(const Saturation& s, float x, float gray) {
    return Truncate(Limit(x * s.factor + gray * s.rest, 255));
  }
  __attribute__((always_inline)) void operator()(Planes& p) const {
    for (uint32_t i = 0; i < kBlock; ++i) {
      const float gray = GrayOf(p.red[i], p.green[i], p.blue[i]);
      p.red[i] = Blend(*this, p.red[i], gray);
      p.green[i] = Blend(*this, p.green[i], gray);
      p.blue[i] = Blend(*this, p.blue[i], gray);
    }
  }
};

struct Gray {
  __attribute__((always_inline)) void operator()(Planes& p) const {
    for (uint32_t i = 0; i < kBlock; ++i)
      p.red[i] = p.green[i] = p.blue[i] = GrayOf(p.red[i], p.green[i], p.blue[i]);
  }
};

// torchvision's _rgb_to_hsv and _hsv_to_rgb, without branches.
struct Hue {
  float turn;

  __attribute__((always_inline)) void operator()(Planes& p) const {
    for (uint32_t i = 0; i < kBlock; ++i) {
      const float r = p.red[i] / 255.0f, g = p.green[i] / 255.0f, b = p.blue[i] / 255.0f;
      const float most = std::max(std::max(r, g), b), least = std::min(std::min(r, g), b);
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
      float sector = Truncate(h6);
      const float f = h6 - sector;
      sector = sector >= 6 ? sector - 6 : sector;
      const float sf = s * f, rest = 1.0f - s;
      const float v = most;
      const float q = Limit((1.0f - sf) * v, 1), t = Limit((sf + rest) * v, 1);
      const float low = Limit(rest * v, 1);
      // One after the other instead of nested, which the compiler would turn into jumps.
      float red = v, green = t, blue = low;
      red = sector == 1 ? q : red, green = sector == 1 ? v : green;
      red = sector == 2 ? low : red, green = sector == 2 ? v : green, blue = sector == 2 ? t : blue;
      red = sector == 3 ? low : red, green = sector == 3 ? q : green, blue = sector == 3 ? v : blue;
      red = sector == 4 ? t : red, green = sector == 4 ? low : green, blue = sector == 4 ? v : blue;
      red = sector == 5 ? v : red, green = sector == 5 ? low : green, blue = sector == 5 ? q : blue;
      p.red[i] = red * 255.999f;
      p.green[i] = green * 255.999f;
      p.blue[i] = blue * 255.999f;
    }
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
void Run(const Function& function, const EditablePixels& image) {
#ifdef __x86_64__
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2) return ForBlocksAvx2(function, image);
#endif
  ForBlocks(function, image);
}

}  // namespace

void Saturate(double factor, const EditablePixels& image) {
  Run(Saturation{static_cast<float>(factor), static_cast<float>(1.0 - factor)}, image);
}

void TurnHue(double turn, const EditablePixels& image) {
  Run(Hue{static_cast<float>(turn)}, image);
}

void MakeGray(const EditablePixels& image) { Run(Gray{}, image); }

}  // namespace shardpack
