// Operations that read other pixels: warps, flips, sharpness, erasing.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "augment/elastic_field.h"
#include "augment/pixel_arithmetic.h"
#include "augment/pixel_operations.h"
#include "augment/program.h"
#include "augment/warp_arithmetic.h"
#include "images/augment/random_numbers.h"

namespace shardpack {
namespace {

// The limits of operation.cc keep positions below 2^31 pixels: a matrix has entries below 3,400,
// and images and shifts at most 131,070 pixels.
struct AffineWalk {
  int64_t x, y;
  const int64_t step_x, step_y;

  AffineWalk(const WarpMatrix& m, uint32_t row, double shift)
      : x(WarpRowStart(m.data(), row, shift)),
        y(WarpRowStart(m.data() + 3, row, shift)),
        step_x(WarpStep(m[0])),
        step_y(WarpStep(m[3])) {}
  void Advance() {
    x += step_x;
    y += step_y;
  }
};

class PerspectiveWalk {
 public:
  int64_t x = 0, y = 0;

  PerspectiveWalk(const WarpMatrix& m, uint32_t row, double shift)
      : m_(m), row_(row), shift_(shift) {
    PerspectivePlace(m_.data(), 0, row_, shift_, &x, &y);
  }
  void Advance() { PerspectivePlace(m_.data(), ++column_, row_, shift_, &x, &y); }

 private:
  const WarpMatrix& m_;
  uint32_t column_ = 0;
  const uint32_t row_;
  const double shift_;
};

class ElasticWalk {
 public:
  int64_t x = 0, y = 0;

  ElasticWalk(const ElasticField& field, uint32_t row, double shift)
      : dx_(field.Dx(row)), dy_(field.Dy(row)), row_(row + 0.5 - shift), shift_(shift) {
    Find();
  }
  void Advance() {
    ++column_;
    Find();
  }

 private:
  void Find() {
    x = std::llrint((column_ + 0.5 - shift_ + dx_[column_]) * kWarpOne);
    y = std::llrint((row_ + dy_[column_]) * kWarpOne);
  }

  const float *const dx_, *const dy_;
  uint32_t column_ = 0;
  const double row_, shift_;
};

// `take(in place, out place)` and `fill(out place)` for each pixel of the result; `walk_of(row)`
// starts in a row.
template <typename WalkOf, typename Take, typename Fill>
void WalkNearest(const WalkOf& walk_of, uint32_t width, uint32_t height, const Take& take,
                 const Fill& fill) {
  for (uint32_t y = 0; y < height; ++y) {
    auto walk = walk_of(y, 0);
    for (uint32_t x = 0;;) {
      // Negative positions are large numbers here.
      const auto px = static_cast<uint64_t>(walk.x >> 32), py = static_cast<uint64_t>(walk.y >> 32);
      if (px < width && py < height) {
        take(static_cast<uint32_t>(px), static_cast<uint32_t>(py), x, y);
      } else {
        fill(x, y);
      }
      if (++x == width) break;
      walk.Advance();
    }
  }
}

template <uint32_t kChannels, typename WalkOf>
void WarpNearest(const WalkOf& walk_of, uint8_t fill, const PixelView& from,
                 const EditablePixels& image) {
  WalkNearest(
      walk_of, from.width, from.height,
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
void Blend(int64_t at_x, int64_t at_y, int64_t width, int64_t height, uint8_t fill,
           const PixelView& from, uint8_t* out) {
  const int64_t fx = BlendPlace(at_x), fy = BlendPlace(at_y);
  const int64_t px = fx >> 8, py = fy >> 8;
  const auto wx = static_cast<uint32_t>(fx & 255), wy = static_cast<uint32_t>(fy & 255);
  if (px < -1 || py < -1 || px >= width || py >= height) {
    for (uint32_t c = 0; c < kChannels; ++c) out[c] = fill;
    return;
  }
  const bool left = px >= 0, right = px + 1 < width, upper = py >= 0, lower = py + 1 < height;
  const auto level = [&](bool inside, int64_t x, int64_t y, uint32_t c) -> uint32_t {
    if (!inside) return fill;
    return from.Row(static_cast<uint32_t>(y))[static_cast<size_t>(x) * kChannels + c];
  };
  for (uint32_t c = 0; c < kChannels; ++c) {
    const uint32_t a = level(left && upper, px, py, c);
    const uint32_t b = level(right && upper, px + 1, py, c);
    const uint32_t d = level(left && lower, px, py + 1, c);
    const uint32_t e = level(right && lower, px + 1, py + 1, c);
    out[c] = BlendedLevel(a, b, d, e, wx, wy);
  }
}

template <uint32_t kChannels, typename WalkOf>
void WarpBilinear(const WalkOf& walk_of, uint8_t fill, const PixelView& from,
                  const EditablePixels& image) {
  const int64_t width = from.width, height = from.height;
  for (uint32_t y = 0; y < image.height; ++y) {
    uint8_t* out = image.Row(y);
    auto walk = walk_of(y, 0.5);
    for (uint32_t x = 0;; out += kChannels) {
      Blend<kChannels>(walk.x, walk.y, width, height, fill, from, out);
      if (++x == image.width) break;
      walk.Advance();
    }
  }
}

// `work(walk_of)` with the walk of this warp.
template <typename Work>
absl::Status WithWalk(const Operation& warp, uint32_t width, uint32_t height, ElasticField& field,
                      const Work& work) {
  if (warp.kind == OperationKind::kElastic) {
    const auto& v = warp.values;
    if (!field.Make(v[0], v[1], static_cast<uint64_t>(v[2]), width, height))
      return absl::ResourceExhaustedError("no memory for an elastic warp");
    work([&](uint32_t row, double shift) { return ElasticWalk(field, row, shift); });
    return absl::OkStatus();
  }
  const std::optional<WarpMatrix> source = SourceOf(warp, width, height);
  if (!source) {
    return absl::InvalidArgumentError(absl::StrCat(warp.ToText(), ": no image of ", width, " x ",
                                                   height, " has these corners, clockwise"));
  }
  const WarpMatrix& m = *source;
  if (warp.kind == OperationKind::kPerspective) {
    work([&](uint32_t row, double shift) { return PerspectiveWalk(m, row, shift); });
  } else {
    work([&](uint32_t row, double shift) { return AffineWalk(m, row, shift); });
  }
  return absl::OkStatus();
}

bool IsTooSmall(const Operation& warp, uint32_t width, uint32_t height) {
  return warp.kind == OperationKind::kElastic && (width < 3 || height < 3);
}

}  // namespace

absl::Status Warp(const Operation& operation, const PixelView& from, ElasticField& field,
                  const EditablePixels& image) {
  if (IsTooSmall(operation, image.width, image.height)) return absl::OkStatus();
  const size_t options = WarpOptionsOf(operation.kind);
  const bool bilinear = operation.values[options] != 0;
  const auto fill = static_cast<uint8_t>(operation.values[options + 1]);
  return WithWalk(operation, image.width, image.height, field, [&](const auto& walk_of) {
    if (bilinear) {
      if (image.channels == 1) return WarpBilinear<1>(walk_of, fill, from, image);
      return WarpBilinear<3>(walk_of, fill, from, image);
    }
    if (image.channels == 1) return WarpNearest<1>(walk_of, fill, from, image);
    return WarpNearest<3>(walk_of, fill, from, image);
  });
}

template <typename Label>
absl::Status WarpLabels(const Operation& warp, const Label* from, uint32_t width, uint32_t height,
                        Label ignore, ElasticField& field, Label* to) {
  if (IsTooSmall(warp, width, height)) {
    std::copy_n(from, size_t{width} * height, to);
    return absl::OkStatus();
  }
  return WithWalk(warp, width, height, field, [&](const auto& walk_of) {
    WalkNearest(
        walk_of, width, height,
        [&](uint32_t px, uint32_t py, uint32_t x, uint32_t y) {
          to[size_t{y} * width + x] = from[size_t{py} * width + px];
        },
        [&](uint32_t x, uint32_t y) { to[size_t{y} * width + x] = ignore; });
  });
}
template absl::Status WarpLabels(const Operation&, const uint8_t*, uint32_t, uint32_t, uint8_t,
                                 ElasticField&, uint8_t*);
template absl::Status WarpLabels(const Operation&, const uint16_t*, uint32_t, uint32_t, uint16_t,
                                 ElasticField&, uint16_t*);

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

// Border pixels stay.
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
      out[i] = SharpenedLevel(center, sum, rest);
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
