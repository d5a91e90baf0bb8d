#include "converters/publishing/shard_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "converters/publishing/pack_names.h"
#include "formats/io/file.h"
#include "formats/testing/scratch_folder.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ShardClaimsTest : public ::testing::Test {
 protected:
  struct Worker {
    std::unique_ptr<RunStage> stage;
    std::unique_ptr<ShardClaims> claims;
  };

  ShardClaimsTest() { fs::create_directories(Out() + "/.pack/stage"); }
  std::string Out() const { return scratch_.File("out"); }
  std::string Path(const std::string& name) const { return Out() + "/" + name; }
  Worker Make(WorkerOptions options, size_t shards = 2500) const {
    Worker worker;
    worker.stage = *RunStage::Create(Out());
    worker.claims = *ShardClaims::Create(Out(), *worker.stage, options, shards);
    return worker;
  }
  static WorkerOptions Joins(double stale_seconds = 600) {
    return {.join = true, .stale_seconds = stale_seconds};
  }
  std::string Read(const std::string& name) const { return *ReadWholeFile(Path(name), 1 << 20); }

  testing::ScratchFolder scratch_;
};

TEST_F(ShardClaimsTest, AShardHasOneHolder) {
  Worker first = Make(Joins()), second = Make(Joins());
  EXPECT_TRUE(*first.claims->Claim(7));
  EXPECT_TRUE(*first.claims->Claim(7));  // it is still its own
  EXPECT_FALSE(*second.claims->Claim(7));
  EXPECT_TRUE(*second.claims->Claim(2400));
  EXPECT_EQ(Read(".pack/lease/000/000007.1"), first.stage->owner());
  EXPECT_EQ(Read(".pack/lease/002/002400.1"), second.stage->owner());
}

TEST_F(ShardClaimsTest, WhoHasEndedHoldsNothing) {
  Worker first = Make(Joins()), second = Make(Joins());
  EXPECT_TRUE(*first.claims->Claim(7));
  EXPECT_FALSE(*second.claims->Claim(7));
  first.claims.reset();  // its last beat says so
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(*second.claims->Claim(7));
  EXPECT_EQ(Read(".pack/lease/000/000007.2"), second.stage->owner());
}

TEST_F(ShardClaimsTest, WhoStandsStillIsReplacedAfterAWhile) {
  Worker worker = Make(Joins(0.3));
  for (const std::string owner : {"elsewhere-00000000-1-0123456789abcdef", "", "torn"}) {
    const uint32_t shard = static_cast<uint32_t>(100 + owner.size());
    std::ofstream(Path(LeaseName(shard, 1))) << owner;
    EXPECT_FALSE(*worker.claims->Claim(shard)) << owner;
    const auto begun = std::chrono::steady_clock::now();
    while (!*worker.claims->Claim(shard)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begun;
    EXPECT_GT(waited.count(), 0.2) << owner;
    EXPECT_EQ(Read(LeaseName(shard, 2)), worker.stage->owner());
  }
}

TEST_F(ShardClaimsTest, TakingOverGoesPastEveryGeneration) {
  for (uint32_t generation = 1; generation <= 5; ++generation) {
    Worker worker = Make({.join = true, .take_over = true});
    EXPECT_TRUE(*worker.claims->Claim(3));
    EXPECT_EQ(Read(LeaseName(3, generation)), worker.stage->owner());
  }
}

TEST_F(ShardClaimsTest, OneWinnerAGeneration) {
  constexpr int kWorkers = 4;
  constexpr uint32_t kShards = 2500;
  std::vector<Worker> workers;
  for (int i = 0; i < kWorkers; ++i) workers.push_back(Make(Joins()));
  std::atomic<int> won{0};
  std::vector<std::thread> threads;
  for (Worker& worker : workers) {
    threads.emplace_back([&] {
      for (uint32_t shard = 0; shard < kShards; ++shard)
        won += *worker.claims->Claim(shard) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, static_cast<int>(kShards));
}

TEST_F(ShardClaimsTest, ShardsAreLeftAloneAfterThreeFailures) {
  for (size_t i = 0; i < ShardFailure::kMostWorkers; ++i) {
    Worker worker = Make(Joins());
    EXPECT_TRUE(worker.claims->Failures()->empty());
    EXPECT_TRUE(worker.claims->NoteFailure(12, absl::UnavailableError("disk on fire")).ok());
    EXPECT_TRUE(worker.claims->NoteFailure(12, absl::UnavailableError("disk on fire")).ok());
  }
  const auto failures = Make(Joins()).claims->Failures();
  ASSERT_EQ(failures->size(), 1u);
  EXPECT_THAT(failures->at(12).why, HasSubstr("on fire"));
  EXPECT_TRUE(Make({.named = true}).claims->Failures()->empty());
}

TEST_F(ShardClaimsTest, WhenTheFolderIsGoneTheClaimSaysSo) {
  Worker worker = Make(Joins());
  fs::remove_all(Path(".pack/lease"));
  EXPECT_TRUE(absl::IsNotFound(worker.claims->Claim(1).status()));
  EXPECT_FALSE(fs::exists(Path(".pack/lease")));
}

TEST(Beats, TextIsReadAsItWasWritten) {
  const BeatFacts facts{.beat = 7,
                        .seconds = 1.5,
                        .shards = 2,
                        .rows = 30,
                        .shard_seconds = 0.25,
                        .ended = true,
                        .building = {{4, 0.5}, {9, 1.25}}};
  const std::optional<BeatFacts> read = ParseBeatText(ToBeatText(facts));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(ToBeatText(*read), ToBeatText(facts));
  for (const std::string text : {"", "{", "[]", "{\"beat\":1}", "\xff", "null"})
    EXPECT_FALSE(ParseBeatText(text).has_value()) << text;
}

TEST(PackNames, LeasesAndFailures) {
  EXPECT_EQ(LeaseName(7, 1), ".pack/lease/000/000007.1");
  EXPECT_EQ(LeaseName(1234567, 12), ".pack/lease/1234/1234567.12");
  EXPECT_EQ(ParseLeaseName("000007.1"), (std::pair<uint32_t, uint32_t>(7, 1)));
  for (const std::string name :
       {"7.1", "000007", "000007.", "000007.1x", "x00007.1", "000007.01", "9999999999.1"})
    EXPECT_FALSE(ParseLeaseName(name).has_value()) << name;
  EXPECT_EQ(ParseFailureName("000012.host-0a1b2c3d-1-ff")->second, "host-0a1b2c3d-1-ff");
  EXPECT_FALSE(ParseFailureName("000012.mine").has_value());
}

}  // namespace
}  // namespace shardpack
