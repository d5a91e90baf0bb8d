// The plan's bytes: every written plan can be read, and nothing else can.
#include <set>
#include <string>

#include "converters/planning/plan.h"
#include "converters/testing/made_up.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::FindMadeUpFormat;
using ::shardpack::testing::MakeListing;
using ::shardpack::testing::PlainFormat;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A plan that fills every part.
Plan FullPlan() {
  Listing listing =
      MakeListing({"a/1.jpg", "a/1.png", "a/2.jpg", "b/1.jpg", "b/2\n.jpg", "b/3.jpg", "b/4.jpg"});
  listing.bytes = {1, 2, 300, 70'000, 5, 6, uint64_t{1} << 33};
  listing.mtime_ns[0] = -5;
  listing.skips = {{4, SkipReason::kTooLarge, "too \xE9 large"}};
  listing.unread_folders = {{"a/closed", SkipReason::kPermission}, {"b", SkipReason::kVanished}};
  listing.ignored = {{"", 3}, {"txt", 1}};
  listing.images.resize(7);
  listing.images[2].width = 640;
  listing.content_hash = {1, 2, 3, 4, 5, 6, 7};
  listing.left_out = 3;
  listing.fields = {{"json", "json"}, {"mask", "mask.png"}};
  for (uint64_t i = 0; i < 14; ++i) {
    listing.field_bytes.push_back(i * i * 1000);
    listing.field_mtime_ns.push_back(static_cast<int64_t>(i) - 5);
  }
  for (uint64_t i = 0; i < 21; ++i) listing.places.push_back(i << 30);
  for (uint64_t row = 0; row < 7; ++row) {
    listing.keys.append(row == 1 ? "k0" : "k" + std::to_string(row));  // the first two collide
    listing.key_ends.push_back(listing.keys.size());
    listing.split.push_back(row % 2);
  }
  listing.splits = {"even", "odd"};
  listing.content_digest = Digest{.high = 7, .low = 8};
  PlanOptions options;
  options.image_field = "img";
  options.with_metadata = true;
  options.shard_bytes = 70'200;
  options.splits = {{"train", 0.5}, {"val", 0.5}};
  options.split_by = SplitBy::kRandom;
  options.seed = 9;
  options.on_duplicate = OnDuplicateKey::kSuffix;
  options.max_aspect = 0;
  options.allow_truncated = true;
  options.sidecar_indexes = {"dali", "wids"};
  options.source = {{"ext", "jpg,png"}, {"label-from", "dir:0"}};
  options.limit = 4;
  return *Plan::Make(std::move(listing), options, PlainFormat());
}

// The file with its hash recomputed.
std::string Rehashed(std::string bytes) {
  const size_t at = bytes.size() - 16;
  const Digest digest = Xxh3_128(AsBytes(std::string_view(bytes).substr(0, at)));
  StoreLittle(bytes.data() + at, digest.low);
  StoreLittle(bytes.data() + at + 8, digest.high);
  return bytes;
}

TEST(PlanFileTest, RoundTrip) {
  const Plan plan = FullPlan();
  const std::string bytes = plan.ToBytes();
  const auto read = Plan::FromBytes(bytes, &FindMadeUpFormat);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToBytes(), bytes);
  EXPECT_EQ(read->digest(), plan.digest());
  EXPECT_THAT(Plan::Differences(plan, *read), IsEmpty());
  EXPECT_EQ(&read->format(), &plan.format());
  EXPECT_EQ(read->layout(), plan.layout());
  EXPECT_EQ(read->listing().unread_folders, plan.listing().unread_folders);
  EXPECT_EQ(read->options().ToMap(), plan.options().ToMap());
  EXPECT_EQ(read->listing().root, plan.listing().root);
  EXPECT_EQ(read->listing().mtime_ns, plan.listing().mtime_ns);
  EXPECT_EQ(read->listing().ignored, plan.listing().ignored);
  EXPECT_EQ(read->listing().images, plan.listing().images);
  EXPECT_EQ(read->listing().left_out, plan.listing().left_out);
  EXPECT_EQ(read->listing().fields, plan.listing().fields);
  EXPECT_EQ(read->listing().field_bytes, plan.listing().field_bytes);
  EXPECT_EQ(read->listing().field_mtime_ns, plan.listing().field_mtime_ns);
  EXPECT_EQ(read->listing().places, plan.listing().places);
  EXPECT_EQ(read->listing().keys, plan.listing().keys);
  EXPECT_EQ(read->listing().split, plan.listing().split);
  EXPECT_EQ(read->splits(), plan.splits());
  EXPECT_EQ(read->filtered(), plan.filtered());
  EXPECT_EQ(read->skips(), plan.skips());
  EXPECT_EQ(read->notes(), plan.notes());
  ASSERT_EQ(read->positions(), plan.positions());
  for (uint64_t i = 0; i < plan.positions(); ++i) {
    std::string a, b;
    plan.AppendKey(i, a);
    read->AppendKey(i, b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(read->row(i), plan.row(i));
  }
  for (size_t n = 0; n < plan.shards().size(); ++n) {
    EXPECT_EQ(read->shards()[n].name, plan.shards()[n].name);
    EXPECT_EQ(read->shards()[n].bound_bytes, plan.shards()[n].bound_bytes);
  }
}

TEST(PlanFileTest, EveryBitFlipIsRefused) {
  const std::string bytes = FullPlan().ToBytes();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const auto read = Plan::FromBytes(damaged, &FindMadeUpFormat);
    ASSERT_TRUE(absl::IsDataLoss(read.status())) << "bit " << bit << ": " << read.status();
  }
}

TEST(PlanFileTest, EveryTruncationIsRefused) {
  const std::string bytes = FullPlan().ToBytes();
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_TRUE(
        absl::IsDataLoss(Plan::FromBytes(bytes.substr(0, length), &FindMadeUpFormat).status()))
        << length;
    if (length < 32) continue;
    const std::string cut = Rehashed(bytes.substr(0, length));
    ASSERT_TRUE(absl::IsDataLoss(Plan::FromBytes(cut, &FindMadeUpFormat).status())) << length;
  }
  EXPECT_FALSE(Plan::FromBytes(Rehashed(bytes + "x"), &FindMadeUpFormat).ok());
}

// With a correct hash, the parser is the only protection: it must not crash, and what it accepts
// must be a valid plan.
TEST(PlanFileTest, ChangedBytesWithAFittingHashGiveAPlanOrAnError) {
  const std::string bytes = FullPlan().ToBytes();
  for (size_t at = 0; at + 16 < bytes.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x02, 0x03, 0x04, 0x7F, 0xFF}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      const auto read = Plan::FromBytes(Rehashed(std::move(changed)), &FindMadeUpFormat);
      if (!read.ok()) continue;
      std::set<uint32_t> rows;
      for (uint64_t i = 0; i < read->positions(); ++i) {
        std::string key;
        read->AppendKey(i, key);
        ASSERT_LT(read->row(i), read->listing().rows());
        ASSERT_TRUE(rows.insert(read->row(i)).second) << at;
      }
      for (const Skip& skip : read->listing().skips) {
        ASSERT_EQ(rows.count(static_cast<uint32_t>(skip.row)), 0u) << at;
      }
    }
  }
}

TEST(PlanFileTest, NoPathLeadsOutOfTheRoot) {
  for (const auto& [folder, name] :
       {std::pair("..", "1.jpg"), std::pair("a/../b", "1.jpg"), std::pair("/a", "1.jpg"),
        std::pair("a", ".."), std::pair("a/", "1.jpg")}) {
    Listing listing = MakeListing({std::string("a/") + "1.jpg"});
    listing.folders[0] = folder;
    listing.names = name;
    listing.name_ends[0] = listing.names.size();
    PlanOptions options;
    options.key = KeyMode::kIndex;
    const Plan plan = *Plan::Make(std::move(listing), options, PlainFormat());
    EXPECT_TRUE(absl::IsDataLoss(Plan::FromBytes(plan.ToBytes(), &FindMadeUpFormat).status()))
        << folder;
  }
}

// Files are written and replaced by these names.
TEST(PlanFileTest, ShardsHaveTheNamesThatTheFormatGives) {
  const Plan plan = FullPlan();
  for (const PlannedShard& shard : plan.shards()) {
    std::string bytes = plan.ToBytes();
    const size_t at = bytes.find(shard.name);
    ASSERT_NE(at, std::string::npos);
    std::string other(shard.name.size(), 'x');
    if (other.size() >= 13) other.replace(0, 13, "manifest.json");
    bytes.replace(at, other.size(), other);
    EXPECT_TRUE(absl::IsDataLoss(Plan::FromBytes(Rehashed(bytes), &FindMadeUpFormat).status()))
        << other;
  }
}

TEST(PlanFileTest, OtherVersionsAndFormatsAreNamed) {
  std::string bytes = FullPlan().ToBytes();
  const auto unknown =
      Plan::FromBytes(bytes, [](std::string_view) -> const Format* { return nullptr; });
  EXPECT_TRUE(absl::IsInvalidArgument(unknown.status()));
  EXPECT_THAT(unknown.status().ToString(), HasSubstr("plain-format"));
  bytes[8] = static_cast<char>(kPlanVersion + 1);
  const auto newer = Plan::FromBytes(Rehashed(bytes), &FindMadeUpFormat);
  EXPECT_TRUE(absl::IsInvalidArgument(newer.status()));
  EXPECT_THAT(newer.status().ToString(), HasSubstr("version"));
}

}  // namespace
}  // namespace shardpack
