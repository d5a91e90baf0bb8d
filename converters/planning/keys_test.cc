#include "converters/planning/keys.h"

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

std::string Portable(std::string key, size_t max_bytes = 95) {
  MakePortableKey(max_bytes, key);
  return key;
}

TEST(KeysTest, EachKeyIsMadePortableByItself) {
  EXPECT_EQ(Portable("cat/1"), "cat/1");
  EXPECT_EQ(Portable("cat/jack-o'-lantern"), "cat/jack-o=27-lantern");
  EXPECT_EQ(Portable("001.Black footed/a"), "001_Black=20footed/a");
  EXPECT_EQ(Portable("caf\xC3\xA9"), "caf=C3=A9");
  EXPECT_EQ(Portable("\xE9"), "=E9");
  EXPECT_EQ(Portable("__x__/__"), "=5F_x__/=5F_");
  EXPECT_EQ(Portable("..a/b"), "=5F_a/b");
  EXPECT_EQ(Portable(""), "_");
  EXPECT_EQ(Portable("cat/"), "cat/_");
  const std::string cut = Portable("cat/" + std::string(200, 'x'), 40);
  EXPECT_EQ(cut.size(), 40u);
  EXPECT_EQ(cut.substr(0, 24), "cat/" + std::string(19, 'x') + "-");
  EXPECT_NE(cut, Portable("cat/" + std::string(201, 'x'), 40));
  for (const std::string& odd :
       {std::string("a\nb/../c d"), std::string(300, '\''), std::string("\0x", 2)}) {
    const std::string made = Portable(odd, 32);
    EXPECT_TRUE(IsPortableKey(made)) << made;
    EXPECT_LE(made.size(), 32u);
  }
}

TEST(KeysTest, SizesAreThoseOfTheKeys) {
  Listing listing = MakeListing(
      {"flat.jpg", ".jpg", "noext", "cat/1.jpg", "cat/a.b.jpg", "a/b.c/.hidden.v2.png"});
  for (const bool given : {false, true}) {
    for (uint64_t row = 0; row < listing.rows(); ++row) {
      std::string key;
      AppendRowKey(listing, row, key);
      EXPECT_EQ(key.size(), RowKeyBytes(listing, row)) << key;
      if (!given) listing.keys += "key of " + std::to_string(row * row * row);
    }
    for (uint64_t row = 0, end = 0; !given && row < listing.rows(); ++row) {
      end += ("key of " + std::to_string(row * row * row)).size();
      listing.key_ends.push_back(end);
    }
  }
}

TEST(KeysTest, AutoChangesNoOtherKey) {
  const std::string long_name(92, 'x');
  for (const std::string& bad :
       {std::string("a b.jpg"), std::string("__x__/1.jpg"), "d/" + long_name + "yy.jpg",
        std::string("caf\xE9.jpg"), std::string(".jpg")}) {
    const auto plan = Keys(MakeListing({"cat/1.jpg", bad}));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_FALSE(plan->index_keys) << bad;
    EXPECT_EQ(plan->portable_bytes, 95u);
    EXPECT_THAT(plan->suffixes, IsEmpty());
    ASSERT_EQ(plan->notes.size(), 1u) << bad;
    EXPECT_THAT(plan->notes[0], AllOf(HasSubstr("1 key is"), HasSubstr("--key path")));
    EXPECT_THAT(plan->notes[0], Not(HasSubstr("\xE9")));  // escaped
  }
  // 100 bytes with the dot and the longest extension: just short enough.
  EXPECT_THAT(Keys(MakeListing({"abc/" + long_name.substr(1) + ".jpg"}))->notes, IsEmpty());
  EXPECT_EQ(Keys(MakeListing({"abc/" + long_name + ".jpg"}))->notes.size(), 1u);
  EXPECT_EQ(
      Keys(MakeListing({"a b.jpg"}), KeyMode::kAuto, OnDuplicateKey::kAuto, {.max_key_bytes = 40})
          ->portable_bytes,
      40u);
  EXPECT_EQ(Keys(MakeListing({"a.jpg"}))->portable_bytes, 0u);  // no key needs to change
  // Field names this long leave no room for keys.
  EXPECT_TRUE(Keys(MakeListing({"a.jpg"}), KeyMode::kAuto, OnDuplicateKey::kAuto,
                   {.max_extension_bytes = 80})
                  ->index_keys);
}

TEST(KeysTest, AMadeKeyThatExistsGetsASuffix) {
  const auto plan = Keys(MakeListing({"a=27b.jpg", "a'b.jpg", "v1.0/a.jpg", "v1_0/a.jpg"}),
                         KeyMode::kAuto, OnDuplicateKey::kAuto);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->suffixes.size(), 2u);
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
                               std::pair("x/a.b.jpg", "x/a_b.jpg")}) {
      const auto plan = Keys(MakeListing({a, b, "x/other.jpg"}), mode);
      ASSERT_FALSE(plan.ok()) << a;
      EXPECT_TRUE(absl::IsFailedPrecondition(plan.status()));
      const std::string text(plan.status().message());
      EXPECT_THAT(text, AllOf(HasSubstr("1 key is"), HasSubstr("--key index"),
                              HasSubstr("--on-duplicate-key suffix"), Not(HasSubstr("other"))));
    }
  }
  EXPECT_TRUE(Keys(MakeListing({"x/a.jpg", "x/a.png"}), KeyMode::kIndex)->index_keys);
  // One name to a human reader, but two different keys in bytes.
  const Listing twins = MakeListing({"x/caf\xC3\xA9.jpg", "x/cafe\xCC\x81.jpg"});
  EXPECT_TRUE(absl::IsFailedPrecondition(Keys(twins, KeyMode::kPath).status()));
  EXPECT_TRUE(Keys(twins).ok());
  // Neither is a collision: case of the stem, and bytes that are not UTF-8.
  EXPECT_TRUE(Keys(MakeListing({"x/a.jpg", "x/A.jpg"})).ok());
  EXPECT_TRUE(Keys(MakeListing({"x/\xE9.jpg", "x/\xC3\xA9.jpg"})).ok());
}

TEST(KeysTest, AutoAddsSuffixesButNotToMasks) {
  const auto accident = Keys(MakeListing({"a.jpg", "b.jpg", "c.jpg", "flower.jpg", "flower.webp"}),
                             KeyMode::kAuto, OnDuplicateKey::kAuto);
  ASSERT_TRUE(accident.ok()) << accident.status();
  EXPECT_THAT(accident->suffixes, ElementsAre(Pair(4, 2)));
  ASSERT_EQ(accident->notes.size(), 1u);
  EXPECT_THAT(accident->notes[0],
              AllOf(HasSubstr("flower.webp is flower_2"), Not(HasSubstr("--fields"))));
  const auto masks = Keys(MakeListing({"a.jpg", "a.png", "b.jpg", "b.png", "c.jpg"}),
                          KeyMode::kAuto, OnDuplicateKey::kAuto);
  EXPECT_TRUE(absl::IsFailedPrecondition(masks.status()));
  EXPECT_THAT(masks.status().ToString(), HasSubstr("--fields png:mask"));
  const auto one = Keys(MakeListing({"a.jpg", "a.png", "b.jpg", "c.jpg"}), KeyMode::kAuto,
                        OnDuplicateKey::kAuto);
  ASSERT_TRUE(one.ok());
  EXPECT_THAT(one->notes[0], HasSubstr("--fields png:mask"));
  EXPECT_TRUE(Keys(MakeListing({"a.jpg", "a.png", "b.jpg", "b.png"}), KeyMode::kAuto,
                   OnDuplicateKey::kSuffix)
                  .ok());
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
