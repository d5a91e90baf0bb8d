#include "images/resize/resize_wide.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace shardpack {
namespace {

// The taps of all output pixels of one axis, normalised.
struct Axis {
  std::vector<ResizeTaps> taps;
  std::vector<float> weights;  // `most` per output pixel
  uint32_t most = 0;

  static uint32_t Most(const ResizeAxis& axis) { return MostTaps(axis) + 1; }

  Axis(const ResizeAxis& axis, uint32_t size) : taps(size), most(Most(axis)) {
    weights.resize(size_t{size} * most);
    std::vector<double> exact(most);
    for (uint32_t i = 0; i < size; ++i) {
      taps[i] = TapsOf(axis, i);
      double sum = 0;
      for (uint32_t k = 0; k < taps[i].count; ++k) sum += exact[k] = TapWeight(axis, taps[i], k);
      float* to = weights.data() + size_t{i} * most;
      for (uint32_t k = 0; k < taps[i].count; ++k) to[k] = static_cast<float>(exact[k] / sum);
    }
  }
};

template <typename Sample>
class WideResizer {
 public:
  WideResizer(const PixelView& view, const PixelBox& box, uint32_t width, uint32_t height,
              ResizeFilter filter)
      : view_(view),
        channels_(view.channels),
        alpha_(view.channels % 2 == 0),
        width_(width),
        columns_(MakeResizeAxis(filter, box.left, box.right, view.width, width), width),
        rows_(MakeResizeAxis(filter, box.top, box.bottom, view.height, height), height),
        row_(size_t{view.width} * channels_),
        ring_(size_t{rows_.most} * width * channels_) {}

  void Run(uint32_t height, uint8_t* out) {
    const size_t row_samples = size_t{width_} * channels_;
    std::vector<float> sums(row_samples);
    std::vector<Sample> rounded(row_samples);
    next_ = rows_.taps[0].first;
    for (uint32_t y = 0; y < height; ++y) {
      const ResizeTaps& taps = rows_.taps[y];
      next_ = std::max(next_, taps.first);
      for (; next_ < taps.first + taps.count; ++next_) NarrowRow(next_);
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (uint32_t k = 0; k < taps.count; ++k) {
        const float weight = rows_.weights[size_t{y} * rows_.most + k];
        const float* from = RingRow(taps.first + k);
        for (size_t i = 0; i < row_samples; ++i) sums[i] += weight * from[i];
      }
      PutRow(sums.data(), rounded.data());
      std::memcpy(out + y * row_samples * sizeof(Sample), rounded.data(),
                  row_samples * sizeof(Sample));
    }
  }

 private:
  static constexpr float kMost = sizeof(Sample) == 1 ? 255.0f : 65535.0f;

  float* RingRow(uint32_t y) { return ring_.data() + size_t{y % rows_.most} * width_ * channels_; }

  void NarrowRow(uint32_t y) {
    const uint8_t* bytes = view_.Row(y);
    for (size_t i = 0; i < row_.size(); ++i) {
      Sample sample;
      std::memcpy(&sample, bytes + i * sizeof(Sample), sizeof(Sample));
      row_[i] = sample;
    }
    if (alpha_) {
      for (size_t x = 0; x < view_.width; ++x) {
        float* pixel = row_.data() + x * channels_;
        const float opacity = pixel[channels_ - 1] / kMost;
        for (uint32_t c = 0; c + 1 < channels_; ++c) pixel[c] *= opacity;
      }
    }
    float* to = RingRow(y);
    for (uint32_t x = 0; x < width_; ++x, to += channels_) {
      const ResizeTaps& taps = columns_.taps[x];
      const float* weights = columns_.weights.data() + size_t{x} * columns_.most;
      const float* from = row_.data() + size_t{taps.first} * channels_;
      float sums[4] = {0, 0, 0, 0};
      for (uint32_t k = 0; k < taps.count; ++k) {
        for (uint32_t c = 0; c < channels_; ++c) sums[c] += weights[k] * *from++;
      }
      // Clamps overshoots at edges, like Pillow, which has 8 bits between the passes.
      for (uint32_t c = 0; c < channels_; ++c) to[c] = std::clamp(sums[c], 0.0f, kMost);
    }
  }

  void PutRow(float* sums, Sample* to) const {
    const auto round = [](float value) {
      return static_cast<Sample>(std::clamp(value, 0.0f, kMost) + 0.5f);
    };
    for (uint32_t x = 0; x < width_; ++x, sums += channels_, to += channels_) {
      float whole = 1;
      if (alpha_) {
        const float alpha = std::clamp(sums[channels_ - 1], 0.0f, kMost);
        to[channels_ - 1] = round(alpha);
        whole = to[channels_ - 1] == 0 ? 0 : kMost / alpha;
      }
      for (uint32_t c = 0; c < channels_ - (alpha_ ? 1 : 0); ++c) to[c] = round(sums[c] * whole);
    }
  }

  const PixelView& view_;
  const uint32_t channels_;
  const bool alpha_;
  const uint32_t width_;
  const Axis columns_, rows_;
  uint32_t next_ = 0;  // the next row to narrow
  std::vector<float> row_, ring_;
};

}  // namespace

uint64_t ResizeWideBytes(const PixelView& view, const PixelBox& box, uint32_t width,
                         uint32_t height, ResizeFilter filter) {
  const uint64_t column_taps =
      Axis::Most(MakeResizeAxis(filter, box.left, box.right, view.width, width));
  const uint64_t row_taps =
      Axis::Most(MakeResizeAxis(filter, box.top, box.bottom, view.height, height));
  return (column_taps * width + row_taps * height) * sizeof(float) +
         (uint64_t{width} + height) * sizeof(ResizeTaps) +
         (row_taps * width + view.width) * view.channels * sizeof(float);
}

absl::Status ResizeWide(const PixelView& view, const PixelBox& box, uint32_t width, uint32_t height,
                        ResizeFilter filter, uint8_t* out) {
  if (width == 0 || height == 0 || width > kMaxResize || height > kMaxResize) {
    return absl::InvalidArgumentError("resize: width and height are 1 to 65535");
  }
  if (!box.IsInside(view.width, view.height) || view.channels < 1 || view.channels > 4) {
    return absl::InvalidArgumentError("resize: the box is not inside the pixels");
  }
  if (ResizeWideBytes(view, box, width, height, filter) > kMaxResizeBytes) {
    return absl::ResourceExhaustedError("resize: more than 1 GiB would be needed");
  }
  if (view.sample_bytes == 2) {
    WideResizer<uint16_t>(view, box, width, height, filter).Run(height, out);
  } else {
    WideResizer<uint8_t>(view, box, width, height, filter).Run(height, out);
  }
  return absl::OkStatus();
}

}  // namespace shardpack
