// How well orders shuffle: every measure is also applied to a Fisher-Yates shuffle, which must
// pass, and to bad shuffles, which must fail.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "readers/order/order.h"

namespace shardpack {
namespace {

using Ids = std::vector<uint64_t>;

Ids FisherYates(uint64_t samples, uint64_t seed) {
  Ids ids(samples);
  std::iota(ids.begin(), ids.end(), 0);
  std::mt19937_64 random(seed);
  for (uint64_t i = samples; i > 1; --i) std::swap(ids[i - 1], ids[random() % i]);
  return ids;
}

Ids Shuffled(uint64_t samples, OrderMode mode, uint64_t seed, uint64_t epoch) {
  const Order order = *Order::Make(
      {.samples = samples, .mode = mode, .seed = seed, .block_samples = 64, .window_blocks = 32});
  Ids ids(samples);
  order.Ids(epoch, 0, 0, ids);
  return ids;
}

// Correlation of an id with the one `lag` positions later.
double SerialCorrelation(const Ids& ids, size_t lag) {
  const double mean = static_cast<double>(ids.size() - 1) / 2;
  double product = 0, square = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const double id = static_cast<double>(ids[i]) - mean;
    product += id * (static_cast<double>(ids[(i + lag) % ids.size()]) - mean);
    square += id * id;
  }
  return product / square;
}

// The mean distance of ids from their own position, as a share of all positions: a third by chance.
double MeanDisplacement(const Ids& ids) {
  double sum = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    sum += std::abs(static_cast<double>(ids[i]) - static_cast<double>(i));
  }
  return sum / static_cast<double>(ids.size()) / static_cast<double>(ids.size());
}

// Chi-square of the table of (position mod k, id mod k), as a normal deviate.
double ResidueDeviation(const Ids& ids, uint64_t k) {
  std::vector<double> table(k * k);
  for (size_t i = 0; i < ids.size(); ++i) ++table[i % k * k + ids[i] % k];
  const double mean = static_cast<double>(ids.size()) / static_cast<double>(k * k);
  double chi = 0;
  for (const double cell : table) chi += (cell - mean) * (cell - mean) / mean;
  const double freedom = static_cast<double>((k - 1) * (k - 1));
  return (chi - freedom) / std::sqrt(2 * freedom);
}

struct Bounds {
  double correlation, displacement;
};

// All measures that are out of bounds; empty for a good shuffle.
std::string Faults(const Ids& ids, const Bounds& bounds) {
  std::string faults;
  for (const size_t lag : {1, 2, 3, 8, 16, 64, 100, 256}) {
    const double correlation = SerialCorrelation(ids, lag);
    if (std::abs(correlation) < bounds.correlation) continue;
    faults += " correlation " + std::to_string(correlation) + " at lag " + std::to_string(lag);
  }
  const double displacement = MeanDisplacement(ids);
  if (std::abs(displacement - 1.0 / 3) > bounds.displacement) {
    faults += " displacement " + std::to_string(displacement);
  }
  for (const uint64_t k : {2, 3, 7, 8, 10, 16, 31, 64}) {
    const double deviation = ResidueDeviation(ids, k);
    if (deviation < 6) continue;
    faults += " residues mod " + std::to_string(k) + " deviate by " + std::to_string(deviation);
  }
  return faults;
}

// Five standard deviations of independent ids: 1 / sqrt(n) and 1 / sqrt(18 n).
Bounds GlobalBounds(uint64_t samples) {
  const double root = std::sqrt(static_cast<double>(samples));
  return {5 / root, 5 / (std::sqrt(18.0) * root)};
}

// A window's ids keep the mean of its blocks, whose variance is 1 / 32 of the total; blocks move as
// a unit, so there are as many independent displacements as blocks.
Bounds WindowBounds(uint64_t samples) {
  return {2.0 / 32 + GlobalBounds(samples).correlation, GlobalBounds(samples / 64).displacement};
}

TEST(OrderQualityTest, ShufflesAreAsGoodAsTheReference) {
  for (const uint64_t samples : {50'000, 65'536, 100'003}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const Bounds global = GlobalBounds(samples), window = WindowBounds(samples);
      EXPECT_EQ(Faults(FisherYates(samples, seed), global), "") << "reference, seed " << seed;
      for (const uint64_t epoch : {0, 1, 1000}) {
        EXPECT_EQ(Faults(Shuffled(samples, OrderMode::kShuffle, seed, epoch), global), "")
            << samples << " seed " << seed << " epoch " << epoch;
        EXPECT_EQ(Faults(Shuffled(samples, OrderMode::kBlockShuffle, seed, epoch), window), "")
            << samples << " seed " << seed << " epoch " << epoch << ", by blocks";
      }
    }
  }
}

TEST(OrderQualityTest, MeasuresFindOrdersThatAreNoShuffles) {
  const uint64_t samples = 50'000;
  Ids identity(samples), rotation(samples), reverse(samples), stride(samples);
  for (uint64_t i = 0; i < samples; ++i) {
    identity[i] = i;
    rotation[i] = (i + 12'345) % samples;
    reverse[i] = samples - 1 - i;
    stride[i] = i * 30'011 % samples;
  }
  // A shuffle buffer of 1,000.
  std::mt19937_64 random(1);
  Ids buffer(identity.begin(), identity.begin() + 1000), buffered;
  for (uint64_t next = 1000; buffered.size() < samples; ++next) {
    uint64_t& drawn = buffer[random() % buffer.size()];
    buffered.push_back(drawn);
    if (next < samples) {
      drawn = next;
    } else {
      drawn = buffer.back();
      buffer.pop_back();
    }
  }
  for (const Ids& ids : {identity, rotation, reverse, stride, buffered}) {
    EXPECT_NE(Faults(ids, GlobalBounds(samples)), "");
    EXPECT_NE(Faults(ids, WindowBounds(samples)), "");
  }
  // By the bounds of a global shuffle, a block shuffle fails.
  EXPECT_NE(Faults(Shuffled(samples, OrderMode::kBlockShuffle, 1, 0), GlobalBounds(samples)), "");
}

// The order of one epoch says nothing about the next epoch, nor does one seed about the next seed.
TEST(OrderQualityTest, EpochsAndSeedsAreIndependent) {
  const uint64_t samples = 50'000;
  for (const OrderMode mode : {OrderMode::kShuffle, OrderMode::kBlockShuffle}) {
    const Bounds bounds =
        mode == OrderMode::kShuffle ? GlobalBounds(samples) : GlobalBounds(samples / 64);
    const Ids first = Shuffled(samples, mode, 1, 0);
    for (const Ids& other : {Shuffled(samples, mode, 1, 1), Shuffled(samples, mode, 2, 0),
                             Shuffled(samples, mode, 0, 1), Shuffled(samples, mode, 3, 2)}) {
      // The position in one order of each id of the other.
      Ids place(samples), mapped(samples);
      for (uint64_t i = 0; i < samples; ++i) place[other[i]] = i;
      for (uint64_t i = 0; i < samples; ++i) mapped[i] = place[first[i]];
      EXPECT_LT(std::abs(MeanDisplacement(mapped) - 1.0 / 3), bounds.displacement);
      for (const uint64_t k : {2, 7, 16}) EXPECT_LT(ResidueDeviation(mapped, k), 6);
    }
  }
}

}  // namespace
}  // namespace shardpack
