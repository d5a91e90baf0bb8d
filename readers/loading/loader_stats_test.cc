#include "readers/loading/loader_stats.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(LatencyHistogram, QuantilesAreNear) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0u);
  for (uint64_t ns = 1; ns <= 100'000; ++ns) histogram.Add(ns);
  for (const double q : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    const double exact = q * 100'000;
    EXPECT_NEAR(static_cast<double>(histogram.Quantile(q)), exact, exact * 0.09) << q;
  }
  LatencyHistogram ends;
  ends.Add(0);
  ends.Add(UINT64_MAX);
  EXPECT_EQ(ends.Quantile(0.5), 0u);
  EXPECT_GT(ends.Quantile(1), uint64_t{1} << 62);
}

TEST(LoaderStats, NamesTheBottleneck) {
  LoaderStats stats;
  stats.wall_ns = 1'000'000'000;
  stats.cpu_threads = 2;
  stats.io_threads = 4;
  stats.samples = 1000;
  EXPECT_EQ(stats.Binding(), "consumer");
  stats.consumer_wait_ns = 900'000'000;
  stats.read.busy_ns = 1'900'000'000;
  EXPECT_EQ(stats.Binding(), "read");
  EXPECT_THAT(stats.Explain(), StartsWith("the bottleneck is read: 1000 samples/s"));
  EXPECT_THAT(stats.Explain(), HasSubstr("95 % of 2 threads"));
  stats.disk_read = {.items = 1, .bytes = 1, .busy_ns = 3'990'000'000};
  EXPECT_EQ(stats.Binding(), "disk");
  stats.disk_read.busy_ns = 0;
  stats.decode = {.items = 1, .bytes = 1, .busy_ns = 1'950'000'000};
  EXPECT_EQ(stats.Binding(), "decode");
  const auto json = nlohmann::json::parse(stats.ToJson());
  EXPECT_EQ(json["binding"], "decode");
  EXPECT_EQ(json["decode"]["busy_ns"], 1'950'000'000);
  EXPECT_EQ(json["augmentation"], "");
  stats.augmentation = "own(x) x{\xff}";
  EXPECT_EQ(nlohmann::json::parse(stats.ToJson())["augmentation"], "own(x) x{\uFFFD}");
  stats.augmentation = "augment/1 median(kernel=3) views 1";
  EXPECT_EQ(nlohmann::json::parse(stats.ToJson())["augmentation"], stats.augmentation);
  EXPECT_THAT(stats.Explain(), HasSubstr("on the host, with decoding: augment/1 median(kernel=3)"));
}

}  // namespace
}  // namespace shardpack
