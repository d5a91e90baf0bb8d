// The plan's bytes: every written plan can be read, and nothing else can.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/planning/plan.h"
#include "converters/planning/plan_bytes.h"
#include "converters/testing/made_up.h"
#include "converters/testing/rehashed_plan.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::FindMadeUpFormat;
using ::shardpack::testing::MakeListing;
using ::shardpack::testing::PlainFormat;
using ::shardpack::testing::RehashedPlan;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

// The first bytes of what precedes a plan's trailer, and that trailer: places and hash fit again.
std::string CutPlan(std::string_view bytes, size_t length) {
  const std::string_view trailer = bytes.substr(bytes.size() - kPlanTrailerBytes);
  std::string cut(bytes.substr(0, length));
  const uint64_t offset = std::min<uint64_t>(LoadLittle<uint64_t>(trailer.data()), length);
  const uint64_t slices =
      std::min<uint64_t>(LoadLittle<uint64_t>(trailer.data() + 8), (length - offset) / 16);
  cut.append(trailer);
  StoreLittle(cut.data() + length, offset);
  StoreLittle(cut.data() + length + 8, slices);
  return RehashedPlan(std::move(cut));
}

void ExpectParserRefuses(const std::string& bytes) {
  const absl::Status status = Plan::FromBytes(bytes, &FindMadeUpFormat).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.ToString(), Not(HasSubstr("does not match its own hash")));
}

TEST(PlanFileTest, EveryTruncationIsRefused) {
  const std::string bytes = FullPlan().ToBytes();
  const size_t parts = bytes.size() - kPlanTrailerBytes;
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_TRUE(
        absl::IsDataLoss(Plan::FromBytes(bytes.substr(0, length), &FindMadeUpFormat).status()))
        << length;
  }
  EXPECT_TRUE(Plan::FromBytes(CutPlan(bytes, parts), &FindMadeUpFormat).ok());
  for (size_t length = kPlanHeaderBytes; length < parts; ++length) {
    SCOPED_TRACE(length);
    ExpectParserRefuses(CutPlan(bytes, length));
  }
}

TEST(PlanFileTest, FurtherBytesAreRefused) {
  const std::string bytes = FullPlan().ToBytes();
  std::string longer = bytes;
  longer.insert(bytes.size() - kPlanTrailerBytes, "x");
  ExpectParserRefuses(RehashedPlan(longer));
  // Between the columns and what describes them.
  const auto offset = LoadLittle<uint64_t>(bytes.data() + bytes.size() - kPlanTrailerBytes);
  longer = bytes;
  longer.insert(offset, 8, '\0');
  StoreLittle(longer.data() + longer.size() - kPlanTrailerBytes, offset + 8);
  ExpectParserRefuses(RehashedPlan(longer));
}

TEST(PlanFileTest, NoPlaceInTheOrderIsTakenTwice) {
  PlanOptions options;
  options.samples_per_shard = 7;
  std::string bytes = Plan::Make(MakeListing(100), options, testing::KeyOrderedFormat())->ToBytes();
  ASSERT_TRUE(Plan::FromBytes(RehashedPlan(bytes), &FindMadeUpFormat).ok());
  const Plan plan = *Plan::Open({nullptr, bytes, ""}, &FindMadeUpFormat);
  ASSERT_TRUE(plan.is_reordered());
  const auto unsorted =
      static_cast<size_t>(plan.slices()->All(PlanColumn::kUnsorted).data() - bytes.data());
  std::string twice = bytes;
  twice.replace(unsorted + 4 * 3, 4, bytes.substr(unsorted + 4 * 50, 4));
  ExpectParserRefuses(RehashedPlan(twice));
}

// With a correct hash, the parser is the only protection: it must not crash, and what it accepts
// must be a valid plan.
TEST(PlanFileTest, ChangedBytesWithAFittingHashGiveAPlanOrAnError) {
  const std::string bytes = FullPlan().ToBytes();
  for (size_t at = 0; at + 16 < bytes.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x02, 0x03, 0x04, 0x7F, 0xFF}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      const auto read = Plan::FromBytes(RehashedPlan(std::move(changed)), &FindMadeUpFormat);
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
    EXPECT_TRUE(absl::IsDataLoss(Plan::FromBytes(RehashedPlan(bytes), &FindMadeUpFormat).status()))
        << other;
  }
}

TEST(PlanFileTest, OtherVersionsAndFormatsAreNamed) {
  std::string bytes = FullPlan().ToBytes();
  const auto unknown =
      Plan::FromBytes(bytes, [](std::string_view) -> const Format* { return nullptr; });
  EXPECT_TRUE(absl::IsInvalidArgument(unknown.status()));
  EXPECT_THAT(unknown.status().ToString(), HasSubstr("plain-format"));
  bytes[8] = static_cast<char>(kPlanFileVersion + 1);
  const auto newer = Plan::FromBytes(RehashedPlan(bytes), &FindMadeUpFormat);
  EXPECT_TRUE(absl::IsInvalidArgument(newer.status()));
  EXPECT_THAT(newer.status().ToString(), HasSubstr("version"));
}

// A file of version 5 and older: a head, parts, and a hash of all bytes before it.
TEST(PlanFileTest, AnOlderFileSaysToMakeANewPlan) {
  std::string bytes = FullPlan().ToBytes().substr(0, 100);
  bytes[8] = 5;
  const Digest digest = Xxh3_128(AsBytes(bytes));
  bytes.resize(116);
  StoreLittle(bytes.data() + 100, digest.low);
  StoreLittle(bytes.data() + 108, digest.high);
  const auto read = Plan::FromBytes(bytes, &FindMadeUpFormat);
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  EXPECT_THAT(read.status().ToString(), HasSubstr("version 5"));
  EXPECT_THAT(read.status().ToString(), HasSubstr("make a new plan"));
  bytes[50] = static_cast<char>(bytes[50] ^ 1);
  EXPECT_TRUE(absl::IsDataLoss(Plan::FromBytes(bytes, &FindMadeUpFormat).status()));
}

std::vector<std::string> SamplesOf(const Plan& plan, size_t shard) {
  std::vector<std::string> samples;
  const PlannedShard& planned = plan.shards()[shard];
  for (uint64_t p = planned.first; p < planned.first + planned.count; ++p) {
    const uint32_t row = plan.row(p);
    std::string text = plan.listing().Path(row) + " " + std::to_string(plan.source_row(row)) + " " +
                       std::to_string(plan.listing().bytes[row]) + " " +
                       std::to_string(plan.listing().mtime_ns[row]) + " " +
                       std::to_string(plan.listing().label[row]) + " " +
                       std::to_string(plan.unsorted_position(p)) + " ";
    for (size_t f = 0; f < plan.listing().fields.size(); ++f)
      text += std::to_string(plan.listing().FieldBytes(row, f)) + " ";
    plan.AppendKey(p, text);
    samples.push_back(text);
  }
  return samples;
}

TEST(PlanFileTest, ASlicedPlanSaysTheSame) {
  for (const bool key_ordered : {false, true}) {
    PlanOptions options;
    options.samples_per_shard = 7;
    options.limit = 90;
    const Plan plan = key_ordered
                          ? *Plan::Make(MakeListing(100), options, testing::KeyOrderedFormat())
                          : FullPlan();
    const std::string bytes = plan.ToBytes();
    const auto sliced = Plan::Open({nullptr, bytes, ""}, &FindMadeUpFormat);
    ASSERT_TRUE(sliced.ok()) << sliced.status();
    EXPECT_EQ(sliced->digest(), plan.digest());
    EXPECT_EQ(sliced->listing_digest(), plan.listing().ComputeDigest());
    EXPECT_EQ(sliced->times_digest(), plan.times_digest());
    EXPECT_EQ(sliced->source_bytes(), plan.source_bytes());
    EXPECT_EQ(sliced->is_reordered(), plan.is_reordered());
    EXPECT_EQ(sliced->ToBytes(), bytes);
    for (size_t n = 0; n < plan.shards().size(); ++n) {
      ASSERT_TRUE(sliced->CheckSlice(n).ok()) << sliced->CheckSlice(n);
      EXPECT_EQ(SamplesOf(*sliced, n), SamplesOf(plan, n));
      EXPECT_EQ(sliced->ShardTimes(n), plan.ShardTimes(n));
      EXPECT_EQ(sliced->Spec(n).longest_key_bytes, plan.Spec(n).longest_key_bytes);
    }
    ASSERT_TRUE(sliced->CheckAllSlices().ok());
    for (size_t i = 0; i < plan.listing().skips.size(); ++i) {
      const Skip &was = plan.listing().skips[i], &is = sliced->listing().skips[i];
      EXPECT_EQ(sliced->source_row(is.row), was.row);
      EXPECT_EQ(sliced->listing().Path(is.row), plan.listing().Path(was.row));
    }
  }
}

TEST(PlanFileTest, DroppedCopiesAreKnownWithoutTheRows) {
  Listing listing = MakeListing(20);
  listing.images.resize(20);
  listing.bytes.assign(20, 1000);
  for (uint64_t row = 0; row < 20; ++row) listing.content_hash.push_back(row / 2);
  PlanOptions options;
  options.dedupe = Dedupe::kDrop;
  options.shards = 3;
  const Plan plan = *Plan::Make(std::move(listing), options, PlainFormat());
  const std::string bytes = plan.ToBytes();
  const Plan sliced = *Plan::Open({nullptr, bytes, ""}, &FindMadeUpFormat);
  const std::vector<Copy> was = plan.DroppedCopies(), is = sliced.DroppedCopies();
  ASSERT_EQ(was.size(), 10u);
  ASSERT_EQ(is.size(), was.size());
  for (size_t i = 0; i < was.size(); ++i) {
    EXPECT_EQ(sliced.listing().Path(is[i].row), plan.listing().Path(was[i].row));
    EXPECT_EQ(sliced.listing().Path(is[i].original), plan.listing().Path(was[i].original));
  }
}

// A worker answers for the rows of its shards, and names those that are damaged.
TEST(PlanFileTest, ADamagedSliceIsNamedAndOthersStand) {
  PlanOptions options;
  options.shards = 5;
  const Plan plan = *Plan::Make(MakeListing(100), options, PlainFormat());
  std::string bytes = plan.ToBytes();
  const uint64_t bytes_column = Plan::Open({nullptr, bytes, ""}, &FindMadeUpFormat)
                                    ->slices()
                                    ->All(PlanColumn::kBytes)
                                    .data() -
                                bytes.data();
  bytes[bytes_column + 8 * 45] = static_cast<char>(bytes[bytes_column + 8 * 45] ^ 1);
  const auto sliced = Plan::Open({nullptr, bytes, ""}, &FindMadeUpFormat);
  ASSERT_TRUE(sliced.ok()) << sliced.status();
  for (const size_t n : {0, 1, 3, 4}) EXPECT_TRUE(sliced->CheckSlice(n).ok()) << n;
  const absl::Status damaged = sliced->CheckSlice(2);
  EXPECT_TRUE(absl::IsDataLoss(damaged));
  EXPECT_THAT(damaged.ToString(), HasSubstr("shard 2 (" + plan.shards()[2].name + ")"));
  EXPECT_TRUE(absl::IsDataLoss(sliced->Whole().status()));
}

}  // namespace
}  // namespace shardpack
