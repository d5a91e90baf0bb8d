// Plans as a pure function of listing and options: properties over many generated sources, and the
// meaning of each option.
#include "converters/planning/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/testing/made_up.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::KeyOrderedFormat;
using ::shardpack::testing::MakeListing;
using ::shardpack::testing::PlainFormat;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Plan MakePlan(Listing listing, const PlanOptions& options = {},
              const Format& format = PlainFormat()) {
  absl::StatusOr<Plan> plan = Plan::Make(std::move(listing), options, format);
  if (!plan.ok()) ADD_FAILURE() << plan.status();
  return plan.ok() ? *std::move(plan) : *Plan::Make(MakeListing(1), {}, PlainFormat());
}

std::string Key(const Plan& plan, uint64_t position) {
  std::string key;
  plan.AppendKey(position, key);
  return key;
}

std::vector<std::string> Paths(const Plan& plan) {
  std::vector<std::string> paths;
  for (uint64_t i = 0; i < plan.positions(); ++i) paths.push_back(plan.listing().Path(plan.row(i)));
  return paths;
}

// A listing as a probe pass leaves it: sizes from 10 x 10 upwards, each third file a copy of the
// previous one.
Listing Probed(uint64_t files) {
  Listing listing = MakeListing(files);
  listing.images.resize(files);
  listing.content_hash.resize(files);
  for (uint64_t row = 0; row < files; ++row) {
    listing.images[row].width = static_cast<uint32_t>(10 + row);
    listing.images[row].height = row % 10 == 0 ? 3 : 10;
    const uint64_t original = row % 3 == 2 ? row - 1 : row;
    listing.content_hash[row] = original;
    listing.bytes[row] = listing.bytes[original];
  }
  return listing;
}

void ExpectWhole(const Plan& plan) {
  std::set<uint32_t> rows;
  std::set<std::string> keys, names;
  for (uint64_t i = 0; i < plan.positions(); ++i) {
    EXPECT_TRUE(rows.insert(plan.row(i)).second) << "row " << plan.row(i) << " twice";
    EXPECT_TRUE(keys.insert(Key(plan, i)).second) << "key " << Key(plan, i) << " twice";
  }
  for (const Skip& skip : plan.listing().skips)
    EXPECT_EQ(rows.count(static_cast<uint32_t>(skip.row)), 0u);
  for (const Skip& skip : plan.skips()) EXPECT_EQ(rows.count(static_cast<uint32_t>(skip.row)), 0u);
  EXPECT_EQ(plan.listing().rows(),
            plan.positions() + plan.filtered() + plan.skips().size() + plan.listing().skips.size());
  uint64_t next = 0, bound = 0;
  uint32_t split = 0;
  for (size_t n = 0; n < plan.shards().size(); ++n) {
    const PlannedShard& shard = plan.shards()[n];
    EXPECT_EQ(shard.first, next);
    EXPECT_GT(shard.count, 0u);
    EXPECT_GE(shard.split, split);
    split = shard.split;
    EXPECT_TRUE(names.insert(shard.name).second) << shard.name;
    uint64_t bytes = plan.format().traits.shard_overhead_bytes;
    for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
      const RecordShape shape{.key_bytes = Key(plan, i).size(),
                              .field_bytes = std::span(&plan.listing().bytes[plan.row(i)], 1)};
      bytes += plan.format().record_bound(plan.Spec(n), shape);
    }
    EXPECT_EQ(shard.bound_bytes, bytes);
    bound += bytes;
    next += shard.count;
  }
  EXPECT_EQ(next, plan.positions());
  EXPECT_EQ(plan.bound_bytes(), bound);
}

TEST(PlanTest, EveryRowOnceAndEveryShardWithinItsSize) {
  for (const uint64_t files : {1, 2, 7, 100, 997}) {
    for (const SplitBy by : {SplitBy::kHash, SplitBy::kRandom, SplitBy::kStratified}) {
      for (const Format* format : {&PlainFormat(), &KeyOrderedFormat()}) {
        PlanOptions options;
        options.shard_bytes = 30'000;
        options.split_by = by;
        if (files >= 100) options.splits = {{"train", 0.75}, {"val", 0.25}};
        Listing listing = MakeListing(files);
        if (files > 10)
          listing.skips = {{0, SkipReason::kEmpty, ""}, {files - 1, SkipReason::kTooLarge, ""}};
        const Plan plan = MakePlan(std::move(listing), options, *format);
        ExpectWhole(plan);
        for (const PlannedShard& shard : plan.shards()) {
          EXPECT_TRUE(shard.bound_bytes <= options.shard_bytes || shard.count == 1);
        }
      }
    }
  }
}

TEST(PlanTest, IsAFunctionOfListingAndOptions) {
  PlanOptions options;
  options.shard_bytes = 20'000;
  const Plan once = MakePlan(MakeListing(500), options);
  for (int i = 0; i < 3; ++i) {
    const Plan again = MakePlan(MakeListing(500), options);
    EXPECT_EQ(again.ToBytes(), once.ToBytes());
    EXPECT_EQ(again.digest(), once.digest());
  }
  Listing elsewhere = MakeListing(500);
  elsewhere.root = "/another/place";
  for (int64_t& mtime : elsewhere.mtime_ns) ++mtime;
  const Plan moved = MakePlan(std::move(elsewhere), options);
  EXPECT_EQ(moved.digest(), once.digest());
  EXPECT_EQ(Paths(moved), Paths(once));
}

TEST(PlanTest, ShuffleIsSeededAndCanBeTurnedOff) {
  PlanOptions options;
  const std::vector<std::string> shuffled = Paths(MakePlan(MakeListing(200), options));
  EXPECT_FALSE(std::is_sorted(shuffled.begin(), shuffled.end()));
  options.seed = 1;
  const std::vector<std::string> other = Paths(MakePlan(MakeListing(200), options));
  EXPECT_NE(other, shuffled);
  EXPECT_THAT(other, ::testing::UnorderedElementsAreArray(shuffled));
  options.shuffle = false;
  const Plan plan = MakePlan(MakeListing(200), options);
  for (uint64_t i = 0; i < plan.positions(); ++i) ASSERT_EQ(plan.row(i), i);
}

// The first rows of a shuffled plan: a change here changes every dataset, so raise kPlanVersion
// with it.
TEST(PlanTest, TheOrderIsFixed) {
  const Plan plan = MakePlan(MakeListing(10));
  std::vector<uint32_t> rows;
  for (uint64_t i = 0; i < plan.positions(); ++i) rows.push_back(plan.row(i));
  EXPECT_THAT(rows, ElementsAre(2, 8, 3, 6, 9, 0, 7, 5, 1, 4));
}

TEST(PlanTest, SizingByCount) {
  PlanOptions options;
  options.samples_per_shard = 30;
  Plan plan = MakePlan(MakeListing(100), options);
  ExpectWhole(plan);
  ASSERT_THAT(plan.shards(), SizeIs(4));
  for (const PlannedShard& shard : plan.shards()) EXPECT_EQ(shard.count, 25u);

  options.samples_per_shard = 0;
  options.shards = 7;
  options.splits = {{"train", 0.9}, {"val", 0.1}};
  options.split_by = SplitBy::kRandom;
  plan = MakePlan(MakeListing(100), options);
  ExpectWhole(plan);
  ASSERT_THAT(plan.shards(), SizeIs(7));
  EXPECT_EQ(plan.shards()[5].name, "train-5-of-6");
  EXPECT_EQ(plan.shards()[6].name, "val-0-of-1");
  EXPECT_EQ(plan.shards()[0].count, 15u);

  options.shards = 101;
  const auto too_many = Plan::Make(MakeListing(100), options, PlainFormat());
  EXPECT_THAT(too_many.status().ToString(),
              AllOf(HasSubstr("--shards 101"), HasSubstr("100 samples")));
  options.shards = 1;
  EXPECT_TRUE(
      absl::IsInvalidArgument(Plan::Make(MakeListing(100), options, PlainFormat()).status()));
  options.shards = options.samples_per_shard = 5;
  EXPECT_TRUE(
      absl::IsInvalidArgument(Plan::Make(MakeListing(100), options, PlainFormat()).status()));
  options = {};
  options.shard_bytes = 100;
  EXPECT_THAT(Plan::Make(MakeListing(100), options, PlainFormat()).status().ToString(),
              HasSubstr("--shard-size 100"));
}

TEST(PlanTest, KeyOrderedFormatsGetSortedShards) {
  PlanOptions options;
  options.shard_bytes = 20'000;
  const Plan plan = MakePlan(MakeListing(300), options, KeyOrderedFormat());
  ASSERT_GT(plan.shards().size(), 3u);
  for (const PlannedShard& shard : plan.shards()) {
    for (uint64_t i = shard.first + 1; i < shard.first + shard.count; ++i)
      ASSERT_LT(Key(plan, i - 1), Key(plan, i));
  }
  // Sorted inside each shard, shuffled between shards: each shard has the same samples as in a
  // format without key order.
  const Plan plain = MakePlan(MakeListing(300), options, PlainFormat());
  for (size_t n = 0; n < plan.shards().size(); ++n) {
    std::set<uint32_t> a, b;
    for (uint64_t i = 0; i < plan.shards()[n].count; ++i) {
      a.insert(plan.row(plan.shards()[n].first + i));
      b.insert(plain.row(plain.shards()[n].first + i));
    }
    EXPECT_EQ(a, b);
  }
  options.key = KeyMode::kIndex;
  const Plan numbered = MakePlan(MakeListing(300), options, KeyOrderedFormat());
  EXPECT_EQ(Key(numbered, 7), "000000007");
  EXPECT_EQ(Paths(numbered), Paths(MakePlan(MakeListing(300), options, PlainFormat())));
}

TEST(PlanTest, LimitKeepsAMixWhenShuffling) {
  PlanOptions options;
  options.limit = 40;
  const Plan plan = MakePlan(MakeListing(400), options);
  ExpectWhole(plan);
  EXPECT_EQ(plan.positions(), 40u);
  EXPECT_EQ(plan.filtered(), 360u);
  std::set<int32_t> labels;
  for (uint64_t i = 0; i < plan.positions(); ++i) labels.insert(plan.listing().label[plan.row(i)]);
  EXPECT_EQ(labels.size(), 4u);
  options.shuffle = false;
  EXPECT_EQ(MakePlan(MakeListing(400), options).row(39), 39u);
  options.limit = 400;
  EXPECT_EQ(MakePlan(MakeListing(400), options).filtered(), 0u);
}

TEST(PlanTest, FiltersByProbedFacts) {
  PlanOptions options;
  options.min_side = 10;
  Plan plan = MakePlan(Probed(100), options);
  ExpectWhole(plan);
  EXPECT_EQ(plan.filtered(), 10u);
  options.max_aspect = 2;
  plan = MakePlan(Probed(100), options);
  ExpectWhole(plan);
  EXPECT_EQ(plan.positions(), 9u);  // widths 11 to 20, except the row with height 3
  options.max_aspect = 0.5;
  EXPECT_TRUE(absl::IsInvalidArgument(Plan::Make(Probed(100), options, PlainFormat()).status()));
  options = {};
  options.min_side = 1;
  EXPECT_TRUE(
      absl::IsInvalidArgument(Plan::Make(MakeListing(100), options, PlainFormat()).status()));
}

TEST(PlanTest, CopiesAreReportedOrDropped) {
  PlanOptions options;
  options.dedupe = Dedupe::kReport;
  Plan plan = MakePlan(Probed(99), options);
  EXPECT_EQ(plan.filtered(), 0u);
  EXPECT_THAT(plan.notes(),
              ElementsAre(AllOf(HasSubstr("33 inputs are copies"), HasSubstr("--dedupe drop"))));
  options.dedupe = Dedupe::kDrop;
  plan = MakePlan(Probed(99), options);
  ExpectWhole(plan);
  EXPECT_EQ(plan.filtered(), 33u);
  for (uint64_t i = 0; i < plan.positions(); ++i) EXPECT_NE(plan.row(i) % 3, 2u);
}

TEST(PlanTest, DuplicateKeys) {
  const auto listing = [] { return MakeListing({"a/1.jpg", "a/1.png", "a/2.jpg"}); };
  PlanOptions options;
  options.on_duplicate = OnDuplicateKey::kError;
  EXPECT_TRUE(absl::IsFailedPrecondition(Plan::Make(listing(), options, PlainFormat()).status()));
  options.on_duplicate = OnDuplicateKey::kSkip;
  Plan plan = MakePlan(listing(), options);
  ExpectWhole(plan);
  ASSERT_THAT(plan.skips(), SizeIs(1));
  EXPECT_EQ(plan.skips()[0].row, 1u);
  options.on_duplicate = OnDuplicateKey::kSuffix;
  options.shuffle = false;
  plan = MakePlan(listing(), options);
  ExpectWhole(plan);
  EXPECT_EQ(Key(plan, 1), "a/1_2");
  options.key = KeyMode::kIndex;
  EXPECT_EQ(Key(MakePlan(listing(), options), 1), "000000001");
  // `auto` respects the format's longest key as well.
  options = {};
  EXPECT_EQ(Key(MakePlan(MakeListing({std::string(60, 'x') + ".jpg"}), options), 0),
            std::string(60, 'x'));
  const std::string cut = Key(MakePlan(MakeListing({std::string(61, 'x') + ".jpg"}), options), 0);
  EXPECT_EQ(cut.size(), 60u);
  EXPECT_EQ(cut.substr(0, 44), std::string(43, 'x') + "-");
}

TEST(PlanTest, WhatNoRecordHoldsIsSkipped) {
  Listing listing = MakeListing(3);
  listing.bytes[1] = 1'000'001;
  const Plan plan = MakePlan(std::move(listing));
  ExpectWhole(plan);
  ASSERT_THAT(plan.skips(), SizeIs(1));
  EXPECT_EQ(plan.skips()[0].reason, SkipReason::kTooLarge);
}

TEST(PlanTest, NothingToPack) {
  EXPECT_TRUE(absl::IsInvalidArgument(Plan::Make(Listing(), {}, PlainFormat()).status()));
  Listing bad = MakeListing(1);
  bad.skips.push_back({0, SkipReason::kEmpty, ""});
  const auto plan = Plan::Make(std::move(bad), {}, PlainFormat());
  EXPECT_TRUE(absl::IsDataLoss(plan.status()));
  EXPECT_THAT(plan.status().ToString(), HasSubstr("empty"));
}

TEST(PlanTest, LayoutsByName) {
  PlanOptions options;
  const Plan by_default = MakePlan(MakeListing(3), options);
  EXPECT_EQ(by_default.layout(), "plain");
  options.layout = "plain";
  EXPECT_EQ(MakePlan(MakeListing(3), options).digest(), by_default.digest());
  options.layout = "fancy";
  const Plan fancy = MakePlan(MakeListing(3), options);
  EXPECT_EQ(fancy.Spec(0).layout, "fancy");
  EXPECT_NE(fancy.digest(), by_default.digest());
  options.layout = "unknown";
  EXPECT_THAT(Plan::Make(MakeListing(3), options, PlainFormat()).status().ToString(),
              AllOf(HasSubstr("unknown"), HasSubstr("plain, fancy")));
}

// Each option and each part of the listing that can change bytes changes the digest.
TEST(PlanTest, TheDigestCoversWhatChangesBytes) {
  std::set<std::string> digests = {MakePlan(Probed(50)).digest().ToHex()};
  const auto expect_new = [&](const Plan& plan, int line) {
    EXPECT_TRUE(digests.insert(plan.digest().ToHex()).second) << "line " << line;
  };
  const auto with = [&](int line, auto change) {
    PlanOptions options;
    change(options);
    expect_new(MakePlan(Probed(50), options), line);
  };
  with(__LINE__, [](PlanOptions& o) { o.image_field = "img"; });
  with(__LINE__, [](PlanOptions& o) { o.with_metadata = true; });
  with(__LINE__, [](PlanOptions& o) { o.shard_bytes = 1'000'000; });
  with(__LINE__, [](PlanOptions& o) { o.samples_per_shard = 10; });
  with(__LINE__, [](PlanOptions& o) { o.shards = 2; });
  with(__LINE__, [](PlanOptions& o) { o.splits = {{"a", 0.5}, {"b", 0.5}}; });
  with(__LINE__, [](PlanOptions& o) {
    o.splits = {{"a", 0.5}, {"b", 0.5}}, o.split_by = SplitBy::kRandom;
  });
  with(__LINE__, [](PlanOptions& o) { o.split_by = SplitBy::kDir; });
  with(__LINE__, [](PlanOptions& o) { o.shuffle = false; });
  with(__LINE__, [](PlanOptions& o) { o.seed = 1; });
  with(__LINE__, [](PlanOptions& o) { o.key = KeyMode::kIndex; });
  with(__LINE__, [](PlanOptions& o) { o.on_duplicate = OnDuplicateKey::kSkip; });
  with(__LINE__, [](PlanOptions& o) { o.limit = 10; });
  with(__LINE__, [](PlanOptions& o) { o.verify = ProbeLevel::kHeader; });
  with(__LINE__, [](PlanOptions& o) { o.allow_truncated = true; });
  with(__LINE__, [](PlanOptions& o) { o.max_pixels = 1; });
  with(__LINE__, [](PlanOptions& o) { o.max_file_bytes = 1; });
  with(__LINE__, [](PlanOptions& o) { o.min_side = 2; });
  with(__LINE__, [](PlanOptions& o) { o.max_aspect = 3.5; });
  with(__LINE__, [](PlanOptions& o) { o.dedupe = Dedupe::kDrop; });
  with(__LINE__, [](PlanOptions& o) { o.compute_stats = true; });
  with(__LINE__, [](PlanOptions& o) { o.sha256 = true; });
  with(__LINE__, [](PlanOptions& o) { o.sidecar_indexes = {"dali"}; });
  with(__LINE__, [](PlanOptions& o) { o.source["ext"] = "png"; });
  expect_new(MakePlan(Probed(50), {}, KeyOrderedFormat()), __LINE__);
  const auto with_listing = [&](int line, auto change) {
    Listing listing = Probed(50);
    change(listing);
    expect_new(MakePlan(std::move(listing)), line);
  };
  with_listing(__LINE__, [](Listing& l) { ++l.bytes[7]; });
  with_listing(__LINE__, [](Listing& l) { l.names.own()[0] = 'x'; });
  with_listing(__LINE__, [](Listing& l) { l.folders[0] = "class"; });
  with_listing(__LINE__, [](Listing& l) { l.label[7] = 3 - l.label[7]; });
  with_listing(__LINE__, [](Listing& l) { l.classes[0] = "x"; });
  with_listing(__LINE__, [](Listing& l) { l.classes.push_back("x"); });
  with_listing(__LINE__, [](Listing& l) { l.skips.push_back({7, SkipReason::kEmpty, ""}); });
  with_listing(__LINE__, [](Listing& l) { l.content_hash[7] = 0; });
}

TEST(PlanTest, DifferencesNameOptionsAndFiles) {
  PlanOptions options;
  const Plan was = MakePlan(MakeListing({"a/1.jpg", "a/2.jpg", "b/1.jpg"}), options);
  EXPECT_THAT(Plan::Differences(was, was), IsEmpty());

  options.shuffle = false;
  options.limit = 2;
  Plan now = MakePlan(MakeListing({"a/1.jpg", "a/2.jpg", "b/1.jpg"}), options);
  EXPECT_THAT(Plan::Differences(was, now),
              ElementsAre("--limit was not given, is 2", "--shuffle was on, is off"));

  Listing listing = MakeListing({"a/2.jpg", "b/0.jpg", "b/1.jpg", "b/2.jpg"});
  listing.bytes[0] = 7;
  now = MakePlan(std::move(listing));
  EXPECT_THAT(
      Plan::Differences(was, now),
      ElementsAre("source: 2 files were added: b/0.jpg, b/2.jpg",
                  "source: 1 file was removed: a/1.jpg", "source: 1 file was resized: a/2.jpg"));

  std::vector<std::string> many = {"a/1.jpg", "a/2.jpg", "b/1.jpg"};
  for (int i = 10; i < 20; ++i) many.push_back(absl::StrCat("b/", i, ".jpg"));
  EXPECT_THAT(
      Plan::Differences(was, MakePlan(MakeListing(many))),
      Contains(
          "source: 10 files were added: b/10.jpg, b/11.jpg, b/12.jpg, b/13.jpg, b/14.jpg, ..."));

  EXPECT_THAT(Plan::Differences(was, MakePlan(MakeListing({"a/1.jpg", "a/2.jpg", "b/1.jpg"}), {},
                                              KeyOrderedFormat())),
              ElementsAre("--format was plain-format, is key-ordered"));
  listing = MakeListing({"a/1.jpg", "a/2.jpg", "b/1.jpg"});
  listing.skips.push_back({0, SkipReason::kPermission, ""});
  EXPECT_THAT(Plan::Differences(was, MakePlan(std::move(listing))), SizeIs(1));
}

}  // namespace
}  // namespace shardpack
