// Operations that read other pixels: warps, flips, sharpness, erasing.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numbers>
#include <utility>

#include "augment/pixel_operations.h"
#include "images/augment/random_numbers.h"

namespace shardpack {
namespace {

double Radians(double degrees) { return degrees * (std::numbers::pi / 180); }

// torchvision's _get_inverse_affine_matrix about the image's centre.
std::array<double, 6> InverseAffine(double degrees, double dx, double dy, double scale,
                                    double shear_x, double shear_y, double center_x,
                                    double center_y) {
  const double rotation = Radians(degrees), sx = Radians(shear_x), sy = Radians(shear_y);
  const double a = std::cos(rotation - sy) / std::cos(sy);
  const double b = -a * std::tan(sx) - std::sin(rotation);
  const double c = std::sin(rotation - sy) / std::cos(sy);
  const double d = -c * std::tan(sx) + std::cos(rotation);
  std::array<double, 6> m = {d / scale, -b / scale, 0, -c / scale, a / scale, 0};
  m[2] = center_x - m[0] * (center_x + dx) - m[1] * (center_y + dy);
  m[5] = center_y - m[3] * (center_x + dx) - m[4] * (center_y + dy);
  return m;
}

// Positions along a row advance in units of 2^-32 pixels from where the row begins in double. The
// limits of operation.cc keep them below 2^31 pixels: a matrix has entries below 3,400, and images
// and shifts at most 131,070 pixels.
constexpr double kOne = 0x1p32;
struct RowWalk {
  int64_t x, y;
  const int64_t step_x, step_y;

  RowWalk(const std::array<double, 6>& m, uint32_t row, double shift)
      : x(std::llrint((m[0] * 0.5 + m[1] * (row + 0.5) + m[2] - shift) * kOne)),
        y(std::llrint((m[3] * 0.5 + m[4] * (row + 0.5) + m[5] - shift) * kOne)),
        step_x(std::llrint(m[0] * kOne)),
        step_y(std::llrint(m[3] * kOne)) {}
  void Advance() {
    x += step_x;
    y += step_y;
  }
};

// `take(in place, out place)` and `fill(out place)` for each pixel of the result.
template <typename Take, typename Fill>
void WalkNearest(const std::array<double, 6>& m, uint32_t width, uint32_t height, const Take& take,
                 const Fill& fill) {
  for (uint32_t y = 0; y < height; ++y) {
    RowWalk walk(m, y, 0);
    for (uint32_t x = 0; x < width; ++x, walk.Advance()) {
      // Negative positions are large numbers here.
      const auto px = static_cast<uint64_t>(walk.x >> 32), py = static_cast<uint64_t>(walk.y >> 32);
      if (px < width && py < height) {
        take(static_cast<uint32_t>(px), static_cast<uint32_t>(py), x, y);
      } else {
        fill(x, y);
      }
    }
  }
}

template <uint32_t kChannels>
void WarpNearest(const std::array<double, 6>& m, uint8_t fill, const PixelView& from,
                 const EditablePixels& image) {
  WalkNearest(
      m, from.width, from.height,
      [&](uint32_t px, uint32_t py, uint32_t x, uint32_t y) {
        const uint8_t* const in = from.Row(py) + size_t{px} * kChannels;
        uint8_t* const out = image.Row(y) + size_t{x} * kChannels;
        for (uint32_t c = 0; c < kChannels; ++c) out[c] = in[c];
      },
      [&](uint32_t x, uint32_t y) {
        std::fill_n(image.Row(y) + size_t{x} * kChannels, kChannels, fill);
      });
}

// The four pixels around a position with weights of 8 bits; those outside have the fill's value.
template <uint32_t kChannels>
void WarpBilinear(const std::array<double, 6>& m, uint8_t fill, const PixelView& from,
                  const EditablePixels& image) {
  const int64_t width = from.width, height = from.height;
  for (uint32_t y = 0; y < image.height; ++y) {
    uint8_t* out = image.Row(y);
    RowWalk walk(m, y, 0.5);
    for (uint32_t x = 0; x < image.width; ++x, out += kChannels, walk.Advance()) {
      // Rounded to the nearest of 256 places between two pixels.
      const int64_t fx = (walk.x + (1 << 23)) >> 24, fy = (walk.y + (1 << 23)) >> 24;
      const int64_t px = fx >> 8, py = fy >> 8;
      const auto wx = static_cast<uint32_t>(fx & 255), wy = static_cast<uint32_t>(fy & 255);
      if (px < -1 || py < -1 || px >= width || py >= height) {
        for (uint32_t c = 0; c < kChannels; ++c) out[c] = fill;
        continue;
      }
      const bool left = px >= 0, right = px + 1 < width, upper = py >= 0, lower = py + 1 < height;
      const auto level = [&](bool inside, int64_t at_x, int64_t at_y, uint32_t c) -> uint32_t {
        if (!inside) return fill;
        return from.Row(static_cast<uint32_t>(at_y))[static_cast<size_t>(at_x) * kChannels + c];
      };
      for (uint32_t c = 0; c < kChannels; ++c) {
        const uint32_t a = level(left && upper, px, py, c);
        const uint32_t b = level(right && upper, px + 1, py, c);
        const uint32_t d = level(left && lower, px, py + 1, c);
        const uint32_t e = level(right && lower, px + 1, py + 1, c);
        const uint32_t top = a * (256 - wx) + b * wx, bottom = d * (256 - wx) + e * wx;
        out[c] = static_cast<uint8_t>((top * (256 - wy) + bottom * wy + (1 << 15)) >> 16);
      }
    }
  }
}

}  // namespace

std::array<double, 6> SourceOf(const Operation& warp, uint32_t width, uint32_t height) {
  const double center_x = width * 0.5, center_y = height * 0.5;
  const auto& v = warp.values;
  switch (warp.kind) {
    case OperationKind::kShearX:
      return {1, v[0], 0, 0, 1, 0};
    case OperationKind::kShearY:
      return {1, 0, 0, v[0], 1, 0};
    case OperationKind::kTranslateX:
      return {1, 0, -v[0], 0, 1, 0};
    case OperationKind::kTranslateY:
      return {1, 0, 0, 0, 1, -v[0]};
    case OperationKind::kRotate:
      return InverseAffine(-std::fmod(v[0], 360), 0, 0, 1, 0, 0, center_x, center_y);
    case OperationKind::kAffine:
      return InverseAffine(std::fmod(v[0], 360), v[1], v[2], v[3], v[4], v[5], center_x, center_y);
    case OperationKind::kFlipHorizontal:
      return {-1, 0, double(width), 0, 1, 0};
    case OperationKind::kFlipVertical:
      return {1, 0, 0, 0, -1, double(height)};
    default:
      return {1, 0, 0, 0, 1, 0};
  }
}

void Warp(const Operation& operation, const PixelView& from, const EditablePixels& image) {
  const std::array<double, 6> source = SourceOf(operation, image.width, image.height);
  const size_t options = operation.kind == OperationKind::kAffine ? 6 : 1;
  const bool bilinear = operation.values[options] != 0;
  const auto fill = static_cast<uint8_t>(operation.values[options + 1]);
  const auto run = bilinear ? (image.channels == 1 ? WarpBilinear<1> : WarpBilinear<3>)
                            : (image.channels == 1 ? WarpNearest<1> : WarpNearest<3>);
  run(source, fill, from, image);
}

template <typename Label>
void WarpLabels(const Operation& warp, const Label* from, uint32_t width, uint32_t height,
                Label ignore, Label* to) {
  WalkNearest(
      SourceOf(warp, width, height), width, height,
      [&](uint32_t px, uint32_t py, uint32_t x, uint32_t y) {
        to[size_t{y} * width + x] = from[size_t{py} * width + px];
      },
      [&](uint32_t x, uint32_t y) { to[size_t{y} * width + x] = ignore; });
}
template void WarpLabels(const Operation&, const uint8_t*, uint32_t, uint32_t, uint8_t, uint8_t*);
template void WarpLabels(const Operation&, const uint16_t*, uint32_t, uint32_t, uint16_t,
                         uint16_t*);

void FlipHorizontally(const EditablePixels& image) {
  for (uint32_t y = 0; y < image.height; ++y) {
    uint8_t* const row = image.Row(y);
    for (uint32_t x = 0; x < image.width / 2; ++x) {
      uint8_t* const a = row + size_t{x} * image.channels;
      std::swap_ranges(a, a + image.channels, row + size_t{image.width - 1 - x} * image.channels);
    }
  }
}

void FlipVertically(const EditablePixels& image) {
  const size_t row_bytes = size_t{image.width} * image.channels;
  for (uint32_t y = 0; y < image.height / 2; ++y)
    std::swap_ranges(image.Row(y), image.Row(y) + row_bytes, image.Row(image.height - 1 - y));
}

// The blurred image is the mean of 3 x 3 pixels with the centre counted five times, rounded;
// border pixels stay.
void Sharpen(double factor, const PixelView& from, const EditablePixels& image) {
  if (image.width < 3 || image.height < 3) return;
  const auto rest = static_cast<float>(1.0 - factor);
  const uint32_t n = image.channels;
  for (uint32_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t *const above = from.Row(y - 1), *const here = from.Row(y);
    const uint8_t* const below = from.Row(y + 1);
    uint8_t* const out = image.Row(y);
    const uint32_t end = (image.width - 1) * n;
    for (uint32_t i = n; i < end; ++i) {
      const int32_t center = here[i];
      const int32_t sum = above[i - n] + above[i] + above[i + n] + here[i - n] + 5 * center +
                          here[i + n] + below[i - n] + below[i] + below[i + n];
      const int32_t blurred = (2 * sum + 13) / 26;
      const float sharp = static_cast<float>(center) + static_cast<float>(blurred - center) * rest;
      const float low = sharp < 0 ? 0 : sharp;
      out[i] = static_cast<uint8_t>(static_cast<int32_t>(low > 255 ? 255 : low));
    }
  }
}

void Erase(const Operation& operation, const EditablePixels& image) {
  const auto& v = operation.values;
  const uint32_t left = std::min<uint32_t>(static_cast<uint32_t>(v[0]), image.width);
  const uint32_t top = std::min<uint32_t>(static_cast<uint32_t>(v[1]), image.height);
  const uint32_t right = std::min<uint32_t>(left + static_cast<uint32_t>(v[2]), image.width);
  const uint32_t bottom = std::min<uint32_t>(top + static_cast<uint32_t>(v[3]), image.height);
  const size_t row_bytes = size_t{right - left} * image.channels;
  const SampleIdentity noise{static_cast<uint64_t>(v[7])};
  uint64_t drawn = 0;
  for (uint32_t y = top; y < bottom; ++y) {
    uint8_t* const row = image.Row(y) + size_t{left} * image.channels;
    if (noise.seed > 0) {
      for (size_t i = 0; i < row_bytes; i += 8) {
        const uint64_t random = SampleRandom(noise, drawn++);
        for (size_t k = 0; k < std::min<size_t>(8, row_bytes - i); ++k)
          row[i + k] = static_cast<uint8_t>(random >> (8 * k));
      }
      continue;
    }
    for (size_t i = 0; i < row_bytes; ++i) row[i] = static_cast<uint8_t>(v[4 + i % image.channels]);
  }
}

}  // namespace shardpack
