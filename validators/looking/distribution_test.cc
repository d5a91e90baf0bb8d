#include "validators/looking/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace shardpack {
namespace {

TEST(Distribution, OfNothing) {
  const Distribution none = Distribution::Of({}, Distribution::kWhole);
  EXPECT_EQ(none.count, 0u);
  EXPECT_EQ(none.At(50), 0);
  EXPECT_TRUE(none.counts.empty());
}

TEST(Distribution, OfOneValue) {
  double value = 7;
  const Distribution one = Distribution::Of({&value, 1}, Distribution::kWhole);
  for (const int percent : Distribution::kPercents) EXPECT_EQ(one.At(percent), 7);
  EXPECT_EQ(one.mean, 7);
  EXPECT_EQ(one.counts, std::vector<uint64_t>{1});
  EXPECT_EQ(one.edges, (std::vector<double>{7, 8}));
}

TEST(Distribution, QuantilesAreThoseOfTheSortedValues) {
  std::mt19937_64 random(5);
  for (const size_t n : {2u, 3u, 19u, 100u, 101u, 9999u}) {
    std::vector<double> values(n);
    for (double& value : values) value = static_cast<double>(random() % 500);
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const Distribution found = Distribution::Of(values, Distribution::kWhole);
    for (const int percent : Distribution::kPercents) {
      // By definition: the smallest value such that at least this share is not larger.
      const auto fits = [&](double value) {
        const auto not_larger = std::upper_bound(sorted.begin(), sorted.end(), value);
        return (not_larger - sorted.begin()) * 100 >= static_cast<int64_t>(n) * percent;
      };
      const auto expected = std::find_if(sorted.begin(), sorted.end(), fits);
      EXPECT_EQ(found.At(percent), *expected) << n << " values, " << percent << " %";
    }
    EXPECT_NEAR(found.mean,
                std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(n), 1e-9);
  }
}

TEST(Distribution, EveryValueIsInItsBin) {
  std::mt19937_64 random(6);
  const auto check = [](std::vector<double> values, Distribution::Kind kind) {
    const std::vector<double> copy = values;
    const Distribution found = Distribution::Of(values, kind);
    ASSERT_EQ(found.edges.size(), found.counts.size() + 1);
    ASSERT_LE(found.counts.size(), Distribution::kMostBins);
    EXPECT_TRUE(std::is_sorted(found.edges.begin(), found.edges.end()));
    for (size_t bin = 0; bin < found.counts.size(); ++bin) {
      const bool last = bin + 1 == found.counts.size();
      const auto inside = [&](double value) {
        return value >= found.edges[bin] &&
               (value < found.edges[bin + 1] || (last && value == found.edges[bin + 1]));
      };
      EXPECT_EQ(static_cast<int64_t>(found.counts[bin]),
                std::count_if(copy.begin(), copy.end(), inside));
      if (kind == Distribution::kWhole) {
        EXPECT_EQ(found.edges[bin], std::floor(found.edges[bin]));
      }
    }
    EXPECT_EQ(std::accumulate(found.counts.begin(), found.counts.end(), uint64_t{0}), copy.size());
  };
  for (const uint64_t range : {2u, 3u, 20u, 24u, 25u, 1000u, 1000000u}) {
    std::vector<double> values(500);
    for (double& value : values) value = static_cast<double>(random() % range);
    check(values, Distribution::kWhole);
    for (double& value : values) value = 1 + value;  // ratios instead of differences
    check(values, Distribution::kWhole);
    for (double& value : values) value = value / 7;
    check(values, Distribution::kFraction);
  }
  check({1, 60000}, Distribution::kWhole);
  check({0.1, 0.1}, Distribution::kFraction);
}

TEST(Distribution, FewWholeNumbersHaveABinEach) {
  std::vector<double> values = {32, 34, 33, 32};
  const Distribution found = Distribution::Of(values, Distribution::kWhole);
  EXPECT_EQ(found.edges, (std::vector<double>{32, 33, 34, 35}));
  EXPECT_EQ(found.counts, (std::vector<uint64_t>{2, 1, 1}));
}

}  // namespace
}  // namespace shardpack
