#include "images/pixels/pixel_output.h"

#include <cstring>

namespace shardpack {
namespace {

template <typename T>
void Store(T value, unsigned char* to) {
  std::memcpy(to, &value, sizeof(value));
}

// Writes `to_value(sample, channel)` for each sample.
template <typename T, uint32_t kChannels, typename ToValue>
void Put(const uint8_t* row, uint32_t width, PixelLayout layout, size_t first, size_t plane_pixels,
         void* out, const ToValue& to_value) {
  auto* bytes = static_cast<unsigned char*>(out);
  if (layout == PixelLayout::kNhwc || kChannels == 1) {
    unsigned char* to = bytes + first * kChannels * sizeof(T);
    for (uint32_t x = 0; x < width; ++x, row += kChannels, to += kChannels * sizeof(T)) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        Store<T>(to_value(row[c], c), to + c * sizeof(T));
      }
    }
    return;
  }
  unsigned char* to[kChannels];
  for (uint32_t c = 0; c < kChannels; ++c) to[c] = bytes + (c * plane_pixels + first) * sizeof(T);
  for (uint32_t x = 0; x < width; ++x, row += kChannels) {
    for (uint32_t c = 0; c < kChannels; ++c) {
      Store<T>(to_value(row[c], c), to[c] + x * sizeof(T));
    }
  }
}

template <typename T, typename ToValue>
void PutChannels(const uint8_t* row, uint32_t channels, uint32_t width, PixelLayout layout,
                 size_t first, size_t plane_pixels, void* out, const ToValue& to_value) {
  if (channels == 1) {
    Put<T, 1>(row, width, layout, first, plane_pixels, out, to_value);
  } else {
    Put<T, 3>(row, width, layout, first, plane_pixels, out, to_value);
  }
}

}  // namespace

size_t BytesOf(PixelType type) {
  switch (type) {
    case PixelType::kU8:
      return 1;
    case PixelType::kF32:
      return 4;
    case PixelType::kF16:
    case PixelType::kBf16:
      return 2;
  }
  return 0;
}

PixelOutput::PixelOutput(const OutputFormat& format, uint32_t channels)
    : format_(format), channels_(channels) {
  if (format.type == PixelType::kU8) return;
  for (uint32_t c = 0; c < channels; ++c) {
    const ChannelScale scale = MakeChannelScale(format.mean[c], format.std[c]);
    for (int v = 0; v < 256; ++v) {
      const float number = NormalizedSample(static_cast<uint32_t>(v), scale);
      floats_.push_back(number);
      halves_.push_back(format.type == PixelType::kBf16 ? FloatToBfloat(number)
                                                        : FloatToHalf(number));
    }
  }
}

size_t PixelOutput::Bytes(uint32_t width, uint32_t height) const {
  return size_t{width} * height * channels_ * BytesOf(format_.type);
}

bool PixelOutput::plain() const {
  return format_.type == PixelType::kU8 && (format_.layout == PixelLayout::kNhwc || channels_ == 1);
}

void PixelOutput::PutRow(const uint8_t* row, uint32_t y, uint32_t width, uint32_t height,
                         void* out) const {
  const size_t first = size_t{y} * width, plane = size_t{width} * height;
  switch (format_.type) {
    case PixelType::kU8:
      if (plain()) {
        std::memcpy(static_cast<uint8_t*>(out) + first * channels_, row, size_t{width} * channels_);
      } else {
        PutChannels<uint8_t>(row, channels_, width, format_.layout, first, plane, out,
                             [](uint8_t v, uint32_t) { return v; });
      }
      return;
    case PixelType::kF32: {
      const float* const table = floats_.data();
      PutChannels<float>(row, channels_, width, format_.layout, first, plane, out,
                         [table](uint8_t v, uint32_t c) { return table[c * 256 + v]; });
      return;
    }
    case PixelType::kF16:
    case PixelType::kBf16: {
      const uint16_t* const table = halves_.data();
      PutChannels<uint16_t>(row, channels_, width, format_.layout, first, plane, out,
                            [table](uint8_t v, uint32_t c) { return table[c * 256 + v]; });
      return;
    }
  }
}

}  // namespace shardpack
