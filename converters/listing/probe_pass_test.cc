#include "converters/listing/probe_pass.h"

#include <atomic>
#include <string>
#include <utility>

#include "converters/testing/memory_source.h"
#include "formats/io/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MemorySource;
using ::testing::SizeIs;

TEST(ProbePassTest, FillsFactsAndHashesAndSkipsWhatIsUnusable) {
  MemorySource source(200);
  source.Replace(7, "not an image");
  source.Replace(150, "");
  source.Replace(9, std::string(source.bytes(10)));
  Listing once = *source.List();
  once.skips.push_back({100, SkipReason::kPermission, ""});
  for (const int threads : {1, 8}) {
    Listing listing = once;
    IoPool pool(threads);
    std::atomic<uint64_t> probed{0};
    ASSERT_TRUE(RunProbePass(source, {}, pool, listing, probed).ok());
    EXPECT_EQ(probed.load(), 200u);
    ASSERT_THAT(listing.skips, SizeIs(3));
    EXPECT_EQ(listing.skips[0].row, 7u);
    EXPECT_EQ(listing.skips[0].reason, SkipReason::kNotAnImage);
    EXPECT_EQ(listing.skips[1].row, 100u);
    EXPECT_EQ(listing.skips[2].row, 150u);
    ASSERT_THAT(listing.images, SizeIs(200));
    EXPECT_GT(listing.images[0].width, 0u);
    EXPECT_EQ(listing.images[100], ImageInfo());
    for (const uint64_t row : {0u, 9u, 199u}) {
      EXPECT_EQ(listing.content_hash[row], Xxh3_64(AsBytes(source.bytes(row))));
    }
    EXPECT_EQ(listing.content_hash[9], listing.content_hash[10]);
  }
}

TEST(ProbePassTest, StopsWhenAsked) {
  MemorySource source(2000);
  std::atomic<bool> stop{false};
  source.set_on_load([&](uint64_t) { stop = true; });
  Listing listing = *source.List();
  IoPool pool(2);
  std::atomic<uint64_t> probed{0};
  EXPECT_TRUE(RunProbePass(source, {}, pool, listing, probed, &stop).ok());
  EXPECT_LT(probed.load(), 100u);
}

TEST(ProbePassTest, AnErrorOfReadingIsNoFactAboutAnInput) {
  MemorySource source(200);
  source.FailToRead(70, absl::UnavailableError("read b/70.jpg: Input/output error"));
  Listing listing = *source.List();
  IoPool pool(2);
  std::atomic<uint64_t> probed{0};
  const absl::Status failed = RunProbePass(source, {}, pool, listing, probed);
  EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
  EXPECT_THAT(listing.skips, SizeIs(0));
}

TEST(ProbePassTest, EveryVerdictHasItsReason) {
  for (const auto& [verdict, word] : {std::pair(ProbeVerdict::kEmpty, "empty"),
                                      std::pair(ProbeVerdict::kNotAnImage, "not-an-image"),
                                      std::pair(ProbeVerdict::kTruncated, "truncated"),
                                      std::pair(ProbeVerdict::kBadCrc, "bad-crc"),
                                      std::pair(ProbeVerdict::kPixelLimit, "pixel-limit")}) {
    EXPECT_EQ(SkipReasonName(SkipReasonOf(verdict)), word);
  }
}

}  // namespace
}  // namespace shardpack
