#include "converters/keys.h"

#include <numeric>

#include "converters/testing/made_up.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MakeListing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

std::vector<uint32_t> AllRows(const Listing& listing) {
  std::vector<uint32_t> rows(listing.rows());
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

absl::StatusOr<KeyPlan> Keys(const Listing& listing, KeyMode mode = KeyMode::kAuto,
                             OnDuplicateKey on_duplicate = OnDuplicateKey::kError,
                             KeyLimits limits = {}) {
  std::vector<uint32_t> rows = AllRows(listing);
  return PlanKeys(listing, rows, mode, on_duplicate, limits);
}

TEST(KeysTest, PathKeyDropsTheExtensionAndTheOtherDots) {
  EXPECT_EQ(PathKey("cat/1.jpg"), "cat/1");
  EXPECT_EQ(PathKey("cat/b.v2.JPEG"), "cat/b_v2");
  EXPECT_EQ(PathKey("v1.0/b.c/.hidden.jpg"), "v1.0/b.c/_hidden");
  EXPECT_EQ(PathKey("cat/noext"), "cat/noext");
  EXPECT_EQ(PathKey(".jpg"), "");
}

TEST(KeysTest, IndexKeysHaveNineDigitsOrMore) {
  std::string key = "x";
  AppendIndexKey(42, key);
  EXPECT_EQ(key, "x000000042");
  key.clear();
  AppendIndexKey(4'294'967'295, key);
  EXPECT_EQ(key, "4294967295");
  key.clear();
  AppendIndexKey(0, key);
  EXPECT_EQ(key, "000000000");
}

TEST(KeysTest, PortableKeys) {
  for (const char* key : {"a", "cat/1", "n01/A_b-c+=@,9", "a__b", "_x/_y"})
    EXPECT_TRUE(IsPortableKey(key)) << key;
  for (const char* key : {"", "/a", "a/", "a//b", "__x/1", "a/__b", ".a", "a/.b", "./a", "a.b/c",
                          "a b", "caf\xC3\xA9", "a\nb", "a{b"}) {
    EXPECT_FALSE(IsPortableKey(key)) << key;
  }
}

TEST(KeysTest, AutoKeepsPortablePaths) {
  const auto plan = Keys(MakeListing({"cat/1.jpg", "cat/b.v2.jpg", "cat/b.v3.jpg", ".hidden.jpg"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->index_keys);
  EXPECT_THAT(plan->notes, IsEmpty());
}

TEST(KeysTest, AutoNumbersAllWhenOneIsNotPortable) {
  const std::string long_name(92, 'x');
  for (const std::string& bad :
       {std::string("a b.jpg"), std::string("__x__/1.jpg"), "d/" + long_name + "yy.jpg",
        std::string("caf\xE9.jpg"), std::string(".jpg")}) {
    const auto plan = Keys(MakeListing({"cat/1.jpg", bad}));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(plan->index_keys) << bad;
    ASSERT_EQ(plan->notes.size(), 1u);
    EXPECT_THAT(plan->notes[0], HasSubstr("--key path"));
    EXPECT_THAT(plan->notes[0], Not(HasSubstr("\xE9")));  // escaped
  }
  // 100 bytes with the dot and the longest extension: just short enough.
  EXPECT_FALSE(Keys(MakeListing({"abc/" + long_name.substr(1) + ".jpg"}))->index_keys);
  EXPECT_TRUE(Keys(MakeListing({"abc/" + long_name + ".jpg"}))->index_keys);
  EXPECT_TRUE(Keys(MakeListing({"abcdefghijk.jpg"}), KeyMode::kAuto, OnDuplicateKey::kError,
                   {.max_key_bytes = 10})
                  ->index_keys);
}

TEST(KeysTest, PathModeKeepsWhatTheFormatCanHold) {
  const Listing odd = MakeListing({"a b\n.jpg"});
  EXPECT_FALSE(Keys(odd, KeyMode::kPath)->index_keys);
  const auto too_long = Keys(MakeListing({"abcdefghijk.jpg"}), KeyMode::kPath,
                             OnDuplicateKey::kError, {.max_key_bytes = 10});
  EXPECT_TRUE(absl::IsInvalidArgument(too_long.status()));
  EXPECT_THAT(too_long.status().ToString(), AllOf(HasSubstr("11 bytes"), HasSubstr("--key auto")));
  EXPECT_TRUE(absl::IsInvalidArgument(Keys(MakeListing({".jpg"}), KeyMode::kPath).status()));
}

TEST(KeysTest, CollisionsAreListedWithTheOptionsThatAnswerThem) {
  for (const KeyMode mode : {KeyMode::kAuto, KeyMode::kPath}) {
    for (const auto& [a, b] : {std::pair("x/a.jpg", "x/a.JPG"), std::pair("x/a.jpg", "x/a.png"),
                               std::pair("x/a.b.jpg", "x/a_b.jpg"),
                               std::pair("x/caf\xC3\xA9.jpg", "x/cafe\xCC\x81.jpg")}) {
      const auto plan = Keys(MakeListing({a, b, "x/other.jpg"}), mode);
      ASSERT_FALSE(plan.ok()) << a;
      EXPECT_TRUE(absl::IsFailedPrecondition(plan.status()));
      const std::string text(plan.status().message());
      EXPECT_THAT(text, AllOf(HasSubstr("1 key is"), HasSubstr("--key index"),
                              HasSubstr("--on-duplicate-key suffix"), Not(HasSubstr("other"))));
    }
  }
  EXPECT_TRUE(Keys(MakeListing({"x/a.jpg", "x/a.png"}), KeyMode::kIndex)->index_keys);
  // Neither is a collision: case of the stem, and bytes that are not UTF-8.
  EXPECT_TRUE(Keys(MakeListing({"x/a.jpg", "x/A.jpg"})).ok());
  EXPECT_TRUE(Keys(MakeListing({"x/\xE9.jpg", "x/\xC3\xA9.jpg"})).ok());
}

TEST(KeysTest, AtMostTwentyCollisionsAreShown) {
  std::vector<std::string> paths;
  for (int i = 100; i < 150; ++i) {
    paths.push_back(std::to_string(i) + ".jpg");
    paths.push_back(std::to_string(i) + ".png");
  }
  const std::string text(Keys(MakeListing(paths)).status().message());
  EXPECT_THAT(text, AllOf(HasSubstr("50 keys are"), HasSubstr("119.jpg"), Not(HasSubstr("120.jpg")),
                          HasSubstr("and 30 more")));
}

TEST(KeysTest, SuffixesAvoidKeysThatExist) {
  const Listing listing = MakeListing({"a.gif", "a.jpg", "a.png", "a_2.jpg", "b.jpg"});
  const auto plan = Keys(listing, KeyMode::kAuto, OnDuplicateKey::kSuffix);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->suffixes, ElementsAre(Pair(1, 3), Pair(2, 4)));
  EXPECT_FALSE(plan->index_keys);
}

TEST(KeysTest, SkippingLeavesTheFirst) {
  const Listing listing = MakeListing({"a.gif", "a.jpg", "b.jpg", "b.png"});
  std::vector<uint32_t> rows = AllRows(listing);
  const auto plan = PlanKeys(listing, rows, KeyMode::kAuto, OnDuplicateKey::kSkip, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(rows, ElementsAre(0, 2));
  ASSERT_EQ(plan->skips.size(), 2u);
  EXPECT_EQ(plan->skips[0], (Skip{1, SkipReason::kDuplicateKey, "the key of a.gif"}));
  EXPECT_EQ(plan->skips[1].row, 3u);
}

}  // namespace
}  // namespace shardpack
