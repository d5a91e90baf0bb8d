#include "augment/elastic_field.h"

#include <algorithm>
#include <new>

#include "images/augment/random_numbers.h"

namespace shardpack {
namespace {

// The place in a line of `count` that a place beyond its ends is mirrored to; the ends themselves
// are not repeated.
uint32_t Mirrored(int64_t place, uint32_t count) {
  if (count == 1) return 0;
  const int64_t period = 2 * (int64_t{count} - 1);
  const int64_t at = ((place % period) + period) % period;
  return static_cast<uint32_t>(at < count ? at : period - at);
}

}  // namespace

void ElasticField::MakeWeights(double sigma) {
  // torchvision/transforms/v2/_geometry.py, ElasticTransform.make_params.
  const auto size = static_cast<int32_t>(8 * sigma + 1) | 1;
  weights_.resize(static_cast<size_t>(size));
  double sum = 0;
  for (int32_t i = 0; i < size; ++i) {
    const double from_center = (i - (size - 1) / 2) / (sigma > 0 ? sigma : 1);
    sum += PortableExp(-0.5 * from_center * from_center);
  }
  for (int32_t i = 0; i < size; ++i) {
    const double from_center = (i - (size - 1) / 2) / (sigma > 0 ? sigma : 1);
    weights_[static_cast<size_t>(i)] =
        static_cast<float>(PortableExp(-0.5 * from_center * from_center) / sum);
  }
}

void ElasticField::Blur(std::vector<float>& field) {
  const auto radius = static_cast<int64_t>(weights_.size() / 2);
  line_.resize(width_ + 2 * static_cast<size_t>(radius));
  across_.resize(field.size());
  for (uint32_t y = 0; y < height_; ++y) {
    const float* const from = field.data() + size_t{y} * width_;
    for (size_t i = 0; i < line_.size(); ++i)
      line_[i] = from[Mirrored(static_cast<int64_t>(i) - radius, width_)];
    float* const to = across_.data() + size_t{y} * width_;
    std::fill_n(to, width_, 0.0f);
    for (size_t k = 0; k < weights_.size(); ++k) {
      const float weight = weights_[k], *const shifted = line_.data() + k;
      for (uint32_t x = 0; x < width_; ++x) to[x] += weight * shifted[x];
    }
  }
  for (uint32_t y = 0; y < height_; ++y) {
    float* const to = field.data() + size_t{y} * width_;
    std::fill_n(to, width_, 0.0f);
    for (size_t k = 0; k < weights_.size(); ++k) {
      const int64_t row = int64_t{y} + static_cast<int64_t>(k) - radius;
      const float weight = weights_[k];
      const float* const from = across_.data() + size_t{Mirrored(row, height_)} * width_;
      for (uint32_t x = 0; x < width_; ++x) to[x] += weight * from[x];
    }
  }
}

bool ElasticField::Make(double alpha, double sigma, uint64_t seed, uint32_t width,
                        uint32_t height) try {
  width_ = width;
  height_ = height;
  const size_t count = size_t{width} * height;
  const SampleIdentity noise{seed};
  for (std::vector<float>& field : of_) field.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t random = SampleRandom(noise, i);
    // 24 bits each, which a float holds.
    of_[0][i] = static_cast<float>(random >> 40) * 0x1p-23f - 1;
    of_[1][i] = static_cast<float>(random & 0xFFFFFF) * 0x1p-23f - 1;
  }
  MakeWeights(sigma);
  const auto scale = static_cast<float>(alpha / 2);
  for (std::vector<float>& field : of_) {
    if (sigma > 0) Blur(field);
    for (float& distance : field) distance *= scale;
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace shardpack
