// Operations that replace each level by another: tables, with statistics of the image where the
// definition asks for them. All arithmetic is that of torchvision's uint8 kernels, in float.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "augment/pixel_arithmetic.h"
#include "augment/pixel_operations.h"

namespace shardpack {
namespace {

template <typename Function>
LevelTable MakeTable(const Function& function) {
  LevelTable table;
  for (uint32_t x = 0; x < 256; ++x) table[x] = function(x);
  return table;
}

LevelTable Brightness(double factor) {
  const auto f = static_cast<float>(factor);
  return MakeTable(
      [&](uint32_t x) { return static_cast<uint8_t>(LimitedTo(static_cast<float>(x) * f, 255)); });
}

LevelTable Posterize(double bits) {
  const uint32_t mask = 256 - (1u << (8 - static_cast<uint32_t>(bits)));
  return MakeTable([&](uint32_t x) { return static_cast<uint8_t>(x & mask); });
}

LevelTable Solarize(double threshold) {
  return MakeTable([&](uint32_t x) { return static_cast<uint8_t>(x >= threshold ? 255 - x : x); });
}

LevelTable Invert() {
  return MakeTable([](uint32_t x) { return static_cast<uint8_t>(255 - x); });
}

LevelTable Gamma(double gamma, double gain) {
  return MakeTable([&](uint32_t x) {
    const float unit = static_cast<float>(x) / 255.0f;
    auto bright = static_cast<float>(std::pow(static_cast<double>(unit), gamma));
    if (gain != 1) bright = LimitedTo(bright * static_cast<float>(gain), 1);
    return static_cast<uint8_t>(bright * 255.999f);
  });
}

// The mean gray level of the image after the tables; each pixel's gray is rounded down.
float MeanGray(const PixelView& image, const LevelTables& tables) {
  uint64_t sum = 0;
  if (image.channels == 1) {
    for (uint32_t y = 0; y < image.height; ++y) {
      const uint8_t* const row = image.Row(y);
      for (uint32_t x = 0; x < image.width; ++x) sum += tables.of[0][row[x]];
    }
  } else {
    std::array<float, 256> red, green, blue;
    for (size_t x = 0; x < 256; ++x) {
      red[x] = static_cast<float>(tables.of[0][x]) * 0.2989f;
      green[x] = static_cast<float>(tables.of[1][x]) * 0.587f;
      blue[x] = static_cast<float>(tables.of[2][x]) * 0.114f;
    }
    for (uint32_t y = 0; y < image.height; ++y) {
      const uint8_t* p = image.Row(y);
      uint32_t row = 0;  // 65,535 pixels of 255 fit
      for (uint32_t x = 0; x < image.width; ++x, p += 3)
        row += static_cast<uint32_t>(red[p[0]] + green[p[1]] + blue[p[2]]);
      sum += row;
    }
  }
  const double pixels = static_cast<double>(uint64_t{image.width} * image.height);
  return static_cast<float>(static_cast<double>(sum) / pixels);
}

LevelTable Contrast(double factor, float mean) {
  const auto f = static_cast<float>(factor);
  const float rest = mean * static_cast<float>(1.0 - factor);
  return MakeTable([&](uint32_t x) { return ContrastLevel(static_cast<float>(x), f, rest); });
}

using Histogram = std::array<uint32_t, 256>;

// Of one channel of the image after its table. Four counters each, since equal neighbours would
// wait for one another.
Histogram HistogramOf(const PixelView& image, uint32_t channel, const LevelTable& table) {
  std::array<Histogram, 4> counts = {};
  const uint32_t step = image.channels;
  for (uint32_t y = 0; y < image.height; ++y) {
    const uint8_t* p = image.Row(y) + channel;
    uint32_t x = 0;
    for (; x + 4 <= image.width; x += 4, p += size_t{4} * step) {
      ++counts[0][p[0]];
      ++counts[1][p[step]];
      ++counts[2][p[size_t{2} * step]];
      ++counts[3][p[size_t{3} * step]];
    }
    for (; x < image.width; ++x, p += step) ++counts[0][*p];
  }
  Histogram histogram = {};
  for (size_t x = 0; x < 256; ++x)
    histogram[table[x]] += counts[0][x] + counts[1][x] + counts[2][x] + counts[3][x];
  return histogram;
}

LevelTable Autocontrast(const Histogram& histogram) {
  const auto used = [](uint32_t count) { return count > 0; };
  const auto first = std::find_if(histogram.begin(), histogram.end(), used);
  const auto last = std::find_if(histogram.rbegin(), histogram.rend(), used);
  const auto least = static_cast<float>(first - histogram.begin());
  const auto most = static_cast<float>(histogram.rend() - last - 1);
  return MakeTable(
      [&](uint32_t x) { return AutocontrastLevel(static_cast<float>(x), least, most); });
}

LevelTable Equalize(const Histogram& histogram, uint64_t pixels) {
  const auto last =
      std::find_if(histogram.rbegin(), histogram.rend(), [](uint32_t count) { return count > 0; });
  const uint64_t step = (pixels - *last) / 255;
  uint64_t before = 0;
  return MakeTable([&](uint32_t x) {
    const uint8_t level = EqualizedLevel(x, before, step);
    before += histogram[x];
    return level;
  });
}

}  // namespace

LevelTables LevelTables::Identity() {
  LevelTables tables;
  tables.of.fill(MakeTable([](uint32_t x) { return static_cast<uint8_t>(x); }));
  return tables;
}

void LevelTables::Then(uint32_t channel, const LevelTable& next) {
  for (uint8_t& level : of[channel]) level = next[level];
}

void JoinTable(const Operation& operation, const PixelView& image, LevelTables& tables) {
  const auto all = [&](const LevelTable& table) {
    for (uint32_t c = 0; c < image.channels; ++c) tables.Then(c, table);
  };
  const double value = operation.values[0];
  switch (operation.kind) {
    case OperationKind::kBrightness:
      return all(Brightness(value));
    case OperationKind::kPosterize:
      return all(Posterize(value));
    case OperationKind::kSolarize:
      return all(Solarize(value));
    case OperationKind::kInvert:
      return all(Invert());
    case OperationKind::kGamma:
      return all(Gamma(value, operation.values[1]));
    case OperationKind::kContrast:
      return all(Contrast(value, MeanGray(image, tables)));
    default:
      break;
  }
  for (uint32_t c = 0; c < image.channels; ++c) {
    const Histogram histogram = HistogramOf(image, c, tables.of[c]);
    tables.Then(c, operation.kind == OperationKind::kAutocontrast
                       ? Autocontrast(histogram)
                       : Equalize(histogram, uint64_t{image.width} * image.height));
  }
}

void ApplyTables(const LevelTables& tables, const EditablePixels& image) {
  const bool same =
      image.channels == 1 || (tables.of[0] == tables.of[1] && tables.of[1] == tables.of[2]);
  const LevelTable &red = tables.of[0], &green = tables.of[1], &blue = tables.of[2];
  for (uint32_t y = 0; y < image.height; ++y) {
    uint8_t* p = image.Row(y);
    uint8_t* const end = p + size_t{image.width} * image.channels;
    if (same) {
      for (; p < end; ++p) *p = red[*p];
      continue;
    }
    for (; p < end; p += 3) {
      p[0] = red[p[0]];
      p[1] = green[p[1]];
      p[2] = blue[p[2]];
    }
  }
}

}  // namespace shardpack
