#include "cli/terminal/units.h"

#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"

namespace shardpack::cli {
namespace {

TEST(Units, SizesInThousandsAndIn1024s) {
  EXPECT_EQ(*ParseSize("256MB"), 256'000'000u);
  EXPECT_EQ(*ParseSize("256mb"), 256'000'000u);
  EXPECT_EQ(*ParseSize("1GiB"), uint64_t{1} << 30);
  EXPECT_EQ(*ParseSize("1000000"), 1'000'000u);
  EXPECT_EQ(*ParseSize("1.5k"), 1500u);
  EXPECT_EQ(*ParseSize("2 MiB"), uint64_t{2} << 20);
  EXPECT_EQ(*ParseSize("0"), 0u);
  EXPECT_EQ(*ParseSize("1TB"), 1'000'000'000'000u);
  for (const char* bad : {"", "MB", "-1", "1X", "1GBB", "1e3", "inf", "nan",
                          "99999999999999999999TB", "1,5MB", " 1"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

TEST(Units, CountsAreWholeAndMayBeGrouped) {
  EXPECT_EQ(*ParseCount("10_000"), 10000u);
  EXPECT_EQ(*ParseCount("10,000"), 10000u);
  EXPECT_EQ(*ParseCount("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", "-1", "1.5", "18446744073709551616", "1k", "_", " 1"})
    EXPECT_FALSE(ParseCount(bad).ok()) << bad;
}

TEST(Units, SharesAndDurations) {
  EXPECT_DOUBLE_EQ(*ParseShare("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*ParseShare("0.25"), 0.25);
  EXPECT_DOUBLE_EQ(*ParseShare("100%"), 1);
  for (const char* bad : {"", "%", "101%", "1.1", "-1%", "1%%"})
    EXPECT_FALSE(ParseShare(bad).ok()) << bad;
  for (const char* doubtful : {"1", "1.0"})
    EXPECT_NE(ParseShare(doubtful).status().message().find("say 1% or 100%"), std::string::npos);
  EXPECT_DOUBLE_EQ(*ParseShare("0.999"), 0.999);
  EXPECT_DOUBLE_EQ(*ParseShare("0"), 0);
  EXPECT_DOUBLE_EQ(*ParseDuration("90"), 90);
  EXPECT_DOUBLE_EQ(*ParseDuration("5m"), 300);
  EXPECT_DOUBLE_EQ(*ParseDuration("1.5h"), 5400);
  EXPECT_EQ(*ParseDuration("1500ms"), 1.5);
  for (const char* bad : {"5 weeks", "0", "0s", "-1s", ""})
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
}

TEST(Units, RangesHoldBothEnds) {
  EXPECT_EQ(*ParseShardRange("0-9"), std::pair(size_t{0}, size_t{10}));
  EXPECT_EQ(*ParseShardRange("7"), std::pair(size_t{7}, size_t{8}));
  for (const char* bad : {"", "-", "9-0", "1-", "-1", "a-b", "1-2-3", "+1-2", "0x1-2", "1.5",
                          "1_000", "1:3", "1..3", "0 - 3"})
    EXPECT_FALSE(ParseShardRange(bad).ok()) << bad;
}

TEST(Units, ARangeIsNotAList) {
  for (const char* list : {"0,2", "4-6,7", "0-9,", "1;2", "1 2"}) {
    const auto range = ParseShardRange(list);
    ASSERT_FALSE(range.ok()) << list;
    EXPECT_NE(range.status().message().find("not a list"), std::string::npos) << list;
  }
  for (const char* other : {" 0-3", "0-3 ", "99999999999999999999-1"}) {
    const auto range = ParseShardRange(other);
    ASSERT_FALSE(range.ok()) << other;
    EXPECT_EQ(range.status().message().find("not a list"), std::string::npos) << other;
    EXPECT_EQ(range.status().message().find("99999"), std::string::npos) << range.status();
  }
}

TEST(Units, RangesOfHugeNumbersDoNotOverflow) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  for (const char* last : {"4294967295", "18446744073709551615", "99999999999999999999999"}) {
    EXPECT_EQ(*ParseShardRange(absl::StrCat("0-", last)), std::pair(size_t{0}, kMost + 1)) << last;
    EXPECT_EQ(*ParseShardRange(last), std::pair(kMost, kMost + 1)) << last;
  }
}

TEST(Units, SplitsAddUpToOne) {
  const auto splits = ParseSplits("train=0.9,val=10%");
  ASSERT_TRUE(splits.ok());
  ASSERT_EQ(splits->size(), 2u);
  EXPECT_EQ((*splits)[1].first, "val");
  EXPECT_DOUBLE_EQ((*splits)[1].second, 0.1);
  EXPECT_TRUE(ParseSplits("a=0.3,b=0.3,c=0.4").ok());  // not exactly 1 in binary
  for (const char* bad :
       {"", "train", "train=", "train=0.9", "train=0.9,val=0.2", "train=1,val=0", "a=0.5,a=0.5",
        "a/b=1", "../x=1", ".x=1", "train=0.9,,val=0.1", "train=-1,val=2"}) {
    EXPECT_FALSE(ParseSplits(bad).ok()) << bad;
  }
}

TEST(Units, ForPeople) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(52'430'000), "52.4 MB");
  EXPECT_EQ(FormatBytes(999'999), "1.00 MB");  // never "1000 kB"
  EXPECT_EQ(FormatBytes(UINT64_MAX), "18.4 EB");
  EXPECT_EQ(FormatDuration(0.42), "0.420 s");
  EXPECT_EQ(FormatDuration(187), "3:07");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
  EXPECT_EQ(FormatClock(0.2), "0:00");
  EXPECT_EQ(Counted(1, "class", "classes"), "1 class");
  EXPECT_EQ(Counted(2000, "class", "classes"), "2,000 classes");
}

}  // namespace
}  // namespace shardpack::cli
