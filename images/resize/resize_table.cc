#include "images/resize/resize_table.h"

#include <algorithm>
#include <cmath>

namespace shardpack {
namespace {

// The sum of the weights' magnitudes is below 2, so 255 * 2 * 2^21 fits 31 bits.
constexpr int kMaxShift = 21;
// One less than the 16-bit maximum, because rounding carries a remainder to the next weight.
constexpr double kLargest = 32766;

// std::floor of numbers with 31 bits, which is a call of the C library where the compiler may not
// use SSE 4.1.
double Floor(double number) {
  const auto whole = static_cast<double>(static_cast<int32_t>(number));
  return whole > number ? whole - 1 : whole;
}

// Rounds each weight and carries the remainder to the next, so that the sum stays exact.
void Quantize(const double* exact, uint32_t count, double one, int16_t* weights) {
  double rest = 0;
  for (uint32_t k = 0; k < count; ++k) {
    // Zero weights stay zero; after the last nonzero one there is nothing left to round.
    if (exact[k] == 0) continue;
    const double wanted = exact[k] * one + rest;
    const double rounded = Floor(wanted + 0.5);
    weights[k] = static_cast<int16_t>(rounded);
    rest = wanted - rounded;
  }
}

// The same in two parts: the second compensates for the rounding of the first.
void QuantizeFine(const double* exact, uint32_t count, double one, int16_t* weights,
                  int16_t* fine) {
  constexpr double kParts = 1 << ResizeTable::kFineShift;
  double rest = 0;
  for (uint32_t k = 0; k < count; ++k) {
    if (exact[k] == 0) continue;
    const double wanted = exact[k] * one * kParts + rest;
    const double rounded = Floor(wanted + 0.5);
    const double coarse = Floor(rounded / kParts + 0.5);
    weights[k] = static_cast<int16_t>(coarse);
    fine[k] = static_cast<int16_t>(rounded - coarse * kParts);
    rest = wanted - rounded;
  }
}

}  // namespace

uint64_t ResizeTable::Bytes(const ResizeAxis& axis, uint32_t out_size) {
  return uint64_t{out_size} * std::min(MostTaps(axis), axis.in_size) *
         (sizeof(double) + 2 * sizeof(int16_t));
}

void ResizeTable::Build(const ResizeAxis& axis, uint32_t out_size, bool mirror) {
  first_.resize(out_size);
  count_.resize(out_size);
  begin_ = axis.in_size;
  end_ = 0;
  const uint32_t room = std::min(MostTaps(axis), axis.in_size);
  std::vector<double> exact_weights(size_t{out_size} * room);
  double largest = 0;
  uint32_t most = 1;
  for (uint32_t i = 0; i < out_size; ++i) {
    const ResizeTaps taps = TapsOf(axis, mirror ? out_size - 1 - i : i);
    first_[i] = taps.first;
    count_[i] = taps.count;
    most = std::max(most, taps.count);
    begin_ = std::min(begin_, taps.first);
    end_ = std::max(end_, taps.first + taps.count);
    double* const exact = exact_weights.data() + size_t{i} * room;
    double sum = 0;
    for (uint32_t k = 0; k < taps.count; ++k) sum += exact[k] = TapWeight(axis, taps, k);
    const double unit = 1 / sum;
    for (uint32_t k = 0; k < taps.count; ++k) {
      exact[k] *= unit;
      largest = std::max(largest, std::abs(exact[k]));
    }
  }
  shift_ = kMaxShift;
  while (std::ldexp(largest, shift_) > kLargest) --shift_;
  const double one = std::ldexp(1, shift_);
  taps_ = (most + 3) / 4 * 4;
  weights_.assign(size_t{out_size} * taps_, 0);
  const bool negative =
      axis.filter == ResizeFilter::kBicubic || axis.filter == ResizeFilter::kLanczos;
  fine_.assign(negative ? weights_.size() : 0, 0);
  for (uint32_t i = 0; i < out_size; ++i) {
    const double* const exact = exact_weights.data() + size_t{i} * room;
    const size_t at = size_t{i} * taps_;
    if (negative) {
      QuantizeFine(exact, count_[i], one, weights_.data() + at, fine_.data() + at);
    } else {
      Quantize(exact, count_[i], one, weights_.data() + at);
    }
  }
}

}  // namespace shardpack
