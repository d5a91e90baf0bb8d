#include "converters/building/compare_source.h"

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "converters/testing/memory_source.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MemorySource;
using ::shardpack::testing::ScratchFolder;
using ::shardpack::testing::ToyFormat;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kImages = 40;

// Images with one that cannot be packed, and the dataset of the others.
class CompareSourceTest : public ::testing::Test {
 protected:
  CompareSourceTest() : source_(kImages), out_(scratch_.File("out")) {
    source_.Replace(3, std::string(source_.bytes(3).size(), 'x'));
  }

  void SetUp() override {
    options_.samples_per_shard = 10;
    BuildOptions options;
    options.out = out_;
    options.max_skip = 1;
    BuildProgress progress;
    const auto report = Build(MakePlan(), source_, options, pool_, progress, stop_);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->manifest.counts.packed, kImages - 1);
    manifest_ = report->manifest;
    for (const ManifestShard& shard : manifest_.shards)  // which are not read
      std::filesystem::remove(out_ + "/" + shard.name);
  }

  Plan MakePlan() { return *Plan::Make(*source_.List(), options_, ToyFormat()); }
  absl::Status Compare(const Plan& plan) {
    BuildProgress progress;
    return CompareWithSource(out_, manifest_, plan, source_, pool_, progress, stop_);
  }
  absl::Status Compare() { return Compare(plan_ ? *plan_ : MakePlan()); }
  void Flip(uint64_t row) {
    std::string bytes(source_.bytes(row));
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    source_.Replace(row, std::move(bytes));
  }

  ScratchFolder scratch_;
  MemorySource source_;
  const std::string out_;
  PlanOptions options_;
  Manifest manifest_;
  std::optional<Plan> plan_;
  IoPool pool_{2};
  std::atomic<int> stop_{0};
};

TEST_F(CompareSourceTest, TheSameBytes) {
  const absl::Status same = Compare();
  EXPECT_TRUE(same.ok()) << same;
}

TEST_F(CompareSourceTest, OneBitOfAnyInputIsNamed) {
  for (const uint64_t row : {uint64_t{0}, uint64_t{17}, kImages - 1}) {
    const std::string whole(source_.bytes(row));
    Flip(row);
    const absl::Status differs = Compare();
    EXPECT_TRUE(absl::IsFailedPrecondition(differs)) << row << ": " << differs;
    EXPECT_THAT(std::string(differs.message()), HasSubstr(source_.List()->Path(row)));
    EXPECT_THAT(std::string(differs.message()), HasSubstr("1 input of the source has other bytes"));
    source_.Replace(row, whole);
  }
}

TEST_F(CompareSourceTest, WhatCouldNotBePackedAndCanBeNow) {
  plan_ = MakePlan();
  source_.Replace(3, std::string(source_.bytes(4)));
  const absl::Status differs = Compare();
  EXPECT_TRUE(absl::IsFailedPrecondition(differs)) << differs;
  EXPECT_THAT(std::string(differs.message()),
              HasSubstr("1 input of the source was left out when it was packed, and can be packed "
                        "now:\n  " +
                        source_.List()->Path(3)));
  EXPECT_THAT(std::string(differs.message()), Not(HasSubstr("other bytes")));
}

// As in a dataset that is packed from another one, whose records may have one path.
class SamePathSource : public MemorySource {
 public:
  using MemorySource::MemorySource;
  absl::StatusOr<Listing> List() override {
    absl::StatusOr<Listing> listing = MemorySource::List();
    const uint64_t bytes = listing->name_ends[0];
    listing->names.own().replace(4 * bytes, bytes, listing->names.own(), 3 * bytes, bytes);
    return listing;
  }
};

TEST_F(CompareSourceTest, OneOfTwoInputsOfAPathWasLeftOut) {
  SamePathSource source(kImages);
  source.Replace(3, std::string(source.bytes(3).size(), 'x'));
  options_.samples_per_shard = kImages;
  options_.shuffle = false;
  options_.key = KeyMode::kIndex;
  const Plan plan = *Plan::Make(*source.List(), options_, ToyFormat());
  BuildOptions options;
  options.out = scratch_.File("twice");
  options.max_skip = 1;
  BuildProgress progress;
  const auto report = Build(plan, source, options, pool_, progress, stop_);
  ASSERT_TRUE(report.ok()) << report.status();
  const absl::Status same =
      CompareWithSource(options.out, report->manifest, plan, source, pool_, progress, stop_);
  EXPECT_TRUE(same.ok()) << same;
}

TEST_F(CompareSourceTest, AnErrorOfTheSourceIsNoDifference) {
  source_.FailToRead(20, absl::UnavailableError("the disk is gone"));
  const absl::Status failed = Compare();
  EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()), Not(HasSubstr("other bytes")));
}

TEST_F(CompareSourceTest, ADamagedDatasetIsSaidToBeOne) {
  manifest_.shards.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(Compare()));
}

TEST_F(CompareSourceTest, ChangedPixelsTellNothing) {
  options_.pixels.encode = EncodeAs::kPng;
  const absl::Status refused = Compare();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("validate"));
}

TEST_F(CompareSourceTest, Stopped) {
  stop_ = 2;
  EXPECT_TRUE(absl::IsCancelled(Compare()));
}

}  // namespace
}  // namespace shardpack
