#include "validators/looking/distribution.h"

#include <algorithm>
#include <cmath>

namespace shardpack {
namespace {

constexpr double kLogRatio = 16;

// Ascending, without repetitions; the first is `low`, the last at least `high`.
std::vector<double> EdgesOf(double low, double high, Distribution::Kind kind) {
  const bool whole = kind == Distribution::kWhole;
  if (low == high) return {low, whole ? low + 1 : std::nextafter(low, INFINITY)};
  const double bins = Distribution::kMostBins;
  std::vector<double> edges = {low};
  const auto add = [&](double edge) {
    if (whole) edge = std::floor(edge);
    if (edge > edges.back()) edges.push_back(edge);
  };
  if (low > 0 && high >= kLogRatio * low) {
    for (size_t i = 1; i < Distribution::kMostBins; ++i)
      add(low * std::pow(high / low, static_cast<double>(i) / bins));
  } else {
    const double step =
        whole ? std::max(1.0, std::ceil((high - low + 1) / bins)) : (high - low) / bins;
    for (size_t i = 1; i < Distribution::kMostBins && low + static_cast<double>(i) * step <= high;
         ++i)
      add(low + static_cast<double>(i) * step);
  }
  const double last = whole ? high + 1 : high;
  if (last > edges.back()) edges.push_back(last);
  return edges;
}

}  // namespace

Distribution Distribution::Of(std::span<double> values, Kind kind) {
  Distribution result;
  result.count = values.size();
  if (values.empty()) return result;
  double sum = 0;
  for (const double value : values) sum += value;
  result.mean = sum / static_cast<double>(values.size());
  auto from = values.begin();
  for (size_t i = 0; i < kPercents.size(); ++i) {
    const uint64_t n = values.size();
    // The rank of the quantile, from 1: ceil(n * percent / 100).
    const uint64_t rank =
        std::max<uint64_t>(1, (n * static_cast<uint64_t>(kPercents[i]) + 99) / 100);
    const auto place = values.begin() + static_cast<ptrdiff_t>(rank - 1);
    std::nth_element(from, place, values.end());
    result.quantiles[i] = *place;
    from = place;  // what is before is not larger
  }
  result.edges = EdgesOf(result.quantiles.front(), result.quantiles.back(), kind);
  result.counts.assign(result.edges.size() - 1, 0);
  for (const double value : values) {
    const auto after = std::upper_bound(result.edges.begin(), result.edges.end(), value);
    const auto bin = static_cast<size_t>(after - result.edges.begin()) - 1;
    ++result.counts[std::min(bin, result.counts.size() - 1)];
  }
  return result;
}

double Distribution::At(int percent) const {
  const auto found = std::find(kPercents.begin(), kPercents.end(), percent);
  return quantiles[static_cast<size_t>(found - kPercents.begin())];
}

}  // namespace shardpack
