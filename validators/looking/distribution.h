// Distribution: quantiles, mean and histogram of the values of a column.
//
//   std::vector<double> widths = ...;
//   const Distribution width = Distribution::Of(widths, Distribution::kWhole);
//   double median = width.At(50);
//
// A quantile is the smallest value that this share of the values does not exceed
// (numpy.quantile(method="inverted_cdf")), so it is always one of the values. The bins of the
// histogram have equal widths, or equal ratios if the largest value is at least 16 times the
// smallest.
//
// Lifetime: owns its numbers.
// Thread-safety: plain values.
// Errors: none; without values all members are 0 and the histogram is empty.
#ifndef SHARDPACK_VALIDATORS_LOOKING_DISTRIBUTION_H_
#define SHARDPACK_VALIDATORS_LOOKING_DISTRIBUTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardpack {

struct Distribution {
  // Whether the values are whole numbers, so that bins begin at whole numbers.
  enum Kind : uint8_t { kWhole, kFraction };
  // 0 is the smallest value, 100 the largest.
  static constexpr std::array<int, 9> kPercents = {0, 1, 5, 25, 50, 75, 95, 99, 100};
  static constexpr size_t kMostBins = 24;

  uint64_t count = 0;
  double mean = 0;
  std::array<double, kPercents.size()> quantiles = {};
  // Bin i holds the values from edges[i] up to edges[i + 1]; the last bin also its upper edge.
  std::vector<double> edges;
  std::vector<uint64_t> counts;

  // The values, which are finite and not negative, are reordered.
  static Distribution Of(std::span<double> values, Kind kind);
  // `percent` is one of kPercents.
  double At(int percent) const;
};

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_DISTRIBUTION_H_
