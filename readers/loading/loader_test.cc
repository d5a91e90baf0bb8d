// Loader and Fetcher: exact order, resume, bad samples, memory.
#include "readers/loading/loader.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "formats/io/hash.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/loading/fetcher.h"
#include "readers/loading/loader_test_fixture.h"

namespace shardpack::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(LoaderTest, GivesTheOrderOverEpochs) {
  for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
    const Order order = MakeOrder(16, tail);
    Loader loader = Open(order, {.epochs = 3});
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      for (uint64_t step = 0; step < order.steps(); ++step) {
        const auto batch = loader.Next();
        ASSERT_TRUE(batch.ok()) << batch.status();
        ASSERT_TRUE(batch->has_value());
        EXPECT_EQ((*batch)->epoch(), epoch);
        EXPECT_EQ((*batch)->step(), step);
        ExpectRight(**batch, order);
      }
      EXPECT_FALSE(loader.Next()->has_value()) << epoch;
    }
    EXPECT_FALSE(loader.Next()->has_value());
    const LoaderStats stats = loader.stats();
    EXPECT_EQ(stats.batches, 3 * order.steps());
    EXPECT_EQ(stats.samples, 3 * order.samples());
    EXPECT_EQ(stats.samples + stats.padding, stats.batches * 16);
    EXPECT_EQ(stats.read.items + stats.disk_read.items, stats.samples);
  }
}

TEST_F(LoaderTest, ResumesAtEveryStepAtEveryWorldSize) {
  const Order order = MakeOrder(24, Tail::kPad);
  for (uint64_t at = 0; at <= order.steps(); ++at) {
    Loader before = Open(order, {.prefetch_batches = 3});
    for (uint64_t step = 0; step < at; ++step) ASSERT_TRUE(before.Next()->has_value());
    const absl::StatusOr<Cursor> cursor = CursorFromText(CursorToText(before.cursor()));
    ASSERT_TRUE(cursor.ok()) << cursor.status();
    for (const uint32_t world : {1u, 2u, 3u, 4u, 8u}) {
      for (uint32_t r = 0; r < world; ++r) {
        const Rank rank{.rank = r, .world_size = world};
        Loader loader = Open(order, {.threads = 1}, rank, *cursor);
        for (uint64_t step = at; step < order.steps(); ++step) {
          const auto batch = loader.Next();
          ASSERT_TRUE(batch.ok() && batch->has_value());
          EXPECT_EQ((*batch)->step(), step);
          ExpectRight(**batch, order, rank);
        }
        if (at < order.steps()) {
          EXPECT_FALSE(loader.Next()->has_value());
        }
        const auto next = loader.Next();
        EXPECT_EQ((*next)->epoch(), 1u);
        ExpectRight(**next, order, rank);
      }
    }
  }
}

TEST_F(LoaderTest, WhatDoesNotFitTogetherIsRefused) {
  const Order order = MakeOrder(10);
  EXPECT_TRUE(absl::IsInvalidArgument(TryOpen(order, {}, {.rank = 0, .world_size = 3}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(TryOpen(order, {}, {.rank = 2, .world_size = 2}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(TryOpen(*Order::Make({.samples = 99, .global_batch = 3})).status()));
  const absl::Status field = TryOpen(order, {.fields = {"mask"}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(field));
  EXPECT_THAT(field.ToString(), AllOf(HasSubstr("mask"), HasSubstr("image")));
  const Cursor other = MakeCursor(Digest{1, 2}, order);
  EXPECT_TRUE(absl::IsInvalidArgument(TryOpen(order, {}, {}, other).status()));
  const Cursor reordered = MakeCursor(dataset_->identity(), MakeOrder(20));
  EXPECT_TRUE(absl::IsInvalidArgument(TryOpen(order, {}, {}, reordered).status()));
  PageableMemory little(4096);
  EXPECT_TRUE(absl::IsResourceExhausted(
      Loader::Open(*dataset_, order, {}, {.threads = 1}, little).status()));
}

TEST_F(LoaderTest, ABadSampleFailsAndStaysSo) {
  Damage(37);
  const Order order = MakeOrder(10);
  for (const int io_threads : {0, 3}) {
    Loader loader = Open(order, {.io_threads = io_threads});
    absl::Status status;
    uint64_t step = 0;
    for (;; ++step) {
      const auto batch = loader.Next();
      if (!(status = batch.status()).ok()) break;
      ASSERT_TRUE(batch->has_value()) << "the bad sample was delivered";
    }
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(status.ToString(),
                AllOf(HasSubstr("train-1.toy"), HasSubstr("dog/000037"), HasSubstr("offset")));
    EXPECT_EQ(loader.Next().status(), status);
    EXPECT_EQ(loader.cursor().step, step);
    // A new loader can continue from there without it.
    Loader on = Open(order, {.bad_samples = BadSamples::kSubstitute}, {}, loader.cursor());
    EXPECT_TRUE(on.Next()->has_value());
  }
  Loader unverified = Open(order, {.verify = false, .epochs = 1});
  for (uint64_t step = 0; step < order.steps(); ++step) EXPECT_TRUE(unverified.Next().ok());
}

TEST_F(LoaderTest, EverySubstituteIsTheSameForAllRanksAndReported) {
  const std::set<uint64_t> bad = {37, 38, 5};
  for (const uint64_t id : bad) Damage(id);
  const Order order = MakeOrder(20, Tail::kPad);
  // Step and wanted id -> the substitute's id.
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> stood_in;
  for (const uint32_t world : {1u, 2u, 4u, 5u}) {
    size_t substituted = 0;
    for (uint32_t r = 0; r < world; ++r) {
      const Rank rank{.rank = r, .world_size = world};
      Loader loader = Open(order, {.epochs = 1, .bad_samples = BadSamples::kSubstitute}, rank);
      size_t here = 0;
      for (auto batch = loader.Next(); batch.ok() && batch->has_value(); batch = loader.Next()) {
        EXPECT_EQ((*batch)->size(), rank.slots(20));
        for (size_t i = 0; i < (*batch)->size(); ++i) {
          const SampleStatus& status = (*batch)->status()[i];
          if (status.state == SampleState::kPadding) continue;
          ExpectSample(**batch, i);
          EXPECT_EQ(bad.count((*batch)->ids()[i]), 0u);
          if (status.state != SampleState::kSubstituted) continue;
          ++here;
          EXPECT_EQ(bad.count(status.wanted_id), 1u);
          EXPECT_THAT(status.why, HasSubstr("offset"));
          const auto [known, added] =
              stood_in.emplace(std::pair((*batch)->step(), status.wanted_id), (*batch)->ids()[i]);
          EXPECT_EQ(known->second, (*batch)->ids()[i]) << "world size " << world;
        }
      }
      EXPECT_EQ(loader.stats().substituted, here);
      EXPECT_EQ(loader.TakeBadSamples().size(), here);
      EXPECT_TRUE(loader.TakeBadSamples().empty());
      substituted += here;
    }
    EXPECT_EQ(substituted, bad.size());
  }
}

TEST_F(LoaderTest, TheBudgetOfBadSamplesEndsTheRun) {
  for (uint64_t id = 0; id < 30; ++id) Damage(id);
  Loader loader = Open(MakeOrder(10),
                       {.epochs = 1, .bad_samples = BadSamples::kSubstitute, .max_bad_samples = 5});
  absl::Status status;
  while (status.ok()) {
    const auto batch = loader.Next();
    status = batch.status();
    if (status.ok()) {
      ASSERT_TRUE(batch->has_value());
    }
  }
  EXPECT_THAT(status.ToString(), HasSubstr("more than 5 bad samples"));
}

TEST_F(LoaderTest, AShardCutOrDeletedMeanwhileIsAnErrorNotASignal) {
  const Order order = MakeOrder(10, Tail::kDrop, OrderMode::kSequential);
  ASSERT_EQ(::truncate((folder_ + "/train-1.toy").c_str(), 200), 0);
  std::filesystem::remove(folder_ + "/train-3.toy");
  Loader loader = Open(order, {.epochs = 1});
  absl::Status status;
  while (status.ok()) status = loader.Next().status();
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("train-1.toy"), HasSubstr("cut short")));
  const Order behind = *Order::Make({.samples = 100,
                                     .mode = OrderMode::kSequential,
                                     .global_batch = 5,
                                     .subset = std::make_shared<const std::vector<uint64_t>>(
                                         std::vector<uint64_t>{90, 91, 92, 93, 94})});
  EXPECT_THAT(Open(behind).Next().status().ToString(),
              AllOf(HasSubstr("train-3.toy record 15 key"), HasSubstr("No such file")));
}

class PeakMemory final : public HostMemory {
 public:
  absl::StatusOr<std::span<std::byte>> Allocate(size_t bytes) override {
    auto memory = memory_.Allocate(bytes);
    uint64_t now = memory_.allocated_bytes(), peak = peak_;
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    return memory;
  }
  void Free(std::span<std::byte> memory) override { memory_.Free(memory); }
  uint64_t peak() const { return peak_; }

 private:
  PageableMemory memory_;
  std::atomic<uint64_t> peak_{0};
};

TEST_F(LoaderTest, BatchesLargerThanTheMemoryComeOneAtATime) {
  TestDatasetOptions options{.shards = 2, .records_per_shard = 10};
  options.samples = MakeTestSamples(options);
  for (TestSample& sample : options.samples) sample.image += std::string(4 << 20, 'x');
  Make(options);
  const Order order = MakeOrder(2);
  PeakMemory memory;
  {
    Loader loader = *Loader::Open(*dataset_, order, {},
                                  {.threads = 3, .memory_bytes = 1 << 20, .epochs = 1}, memory);
    for (uint64_t step = 0; step < order.steps(); ++step) ExpectRight(**loader.Next(), order);
  }
  // One batch and the pool, not four batches.
  EXPECT_LE(memory.peak(), uint64_t{16} << 20);
}

TEST_F(LoaderTest, WithoutHashesAShardCutWithinAPageIsStillFound) {
  const Order order = MakeOrder(10, Tail::kDrop, OrderMode::kSequential);
  Loader loader = Open(order, {.verify = false, .prefetch_batches = 1});
  for (int epoch = 0; epoch < 3; ++epoch) {  // until the shards are mapped
    while ((*loader.Next()).has_value()) {
    }
  }
  const std::string path = folder_ + "/train-3.toy";
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(std::filesystem::file_size(path) - 50)), 0);
  absl::Status status;
  for (uint64_t step = 0; status.ok() && step < 2 * order.steps(); ++step)
    status = loader.Next().status();
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("train-3.toy"), HasSubstr("cut short")));
}

TEST_F(LoaderTest, AHugeSampleAmongSmallOnes) {
  TestDatasetOptions options{.shards = 2, .records_per_shard = 10};
  options.samples = MakeTestSamples(options);
  options.samples[7].image += std::string(30 << 20, 'x');
  Make(options);
  const Order order = MakeOrder(5);
  Loader loader = Open(order, {.memory_bytes = 1 << 20, .epochs = 2});
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (uint64_t step = 0; step < order.steps(); ++step) ExpectRight(**loader.Next(), order);
    EXPECT_FALSE(loader.Next()->has_value());
  }
  EXPECT_EQ(loader.stats().overflow_bytes, 0u);
  EXPECT_LE(memory_.allocated_bytes(), 2u << 20);
}

TEST_F(LoaderTest, WhoKeepsBatchesGetsMoreMemoryAndBatchesOutliveTheLoader) {
  const Order order = MakeOrder(5);
  std::vector<HostBatch> kept;
  {
    Loader loader = Open(order, {.prefetch_batches = 2, .epochs = 1});
    for (uint64_t step = 0; step < order.steps(); ++step) kept.push_back(**loader.Next());
    EXPECT_GT(loader.stats().overflow_bytes, 0u);
  }
  for (const HostBatch& batch : kept) ExpectRight(batch, order);
  kept.clear();
  EXPECT_EQ(memory_.allocated_bytes(), 0u);
}

// Who asks without waiting is served in between, like one who waits.
TEST_F(LoaderTest, WhoAsksAndKeepsBatchesGetsMoreMemoryToo) {
  const Order order = MakeOrder(1);
  Loader loader = Open(order, {.prefetch_batches = 2, .epochs = 1});
  const auto samples_read = [&] {
    const LoaderStats stats = loader.stats();
    return stats.read.items + stats.disk_read.items;
  };
  std::vector<HostBatch> kept;
  while (kept.size() < order.steps()) {
    auto batch = loader.NextWithin(std::chrono::milliseconds(0));
    if (batch.ok()) {
      kept.push_back(**std::move(batch));
      continue;
    }
    ASSERT_TRUE(absl::IsDeadlineExceeded(batch.status())) << batch.status();
    while (samples_read() < kept.size() + 1) std::this_thread::yield();
  }
  EXPECT_GT(loader.stats().overflow_bytes, 0u);
  for (const HostBatch& batch : kept) ExpectRight(batch, order);
}

TEST_F(LoaderTest, MemoryDoesNotGrowOverEpochs) {
  const Order order = MakeOrder(10);
  Loader loader = Open(order);
  uint64_t allocated = 0;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    while ((*loader.Next()).has_value()) {
    }
    if (epoch == 0) allocated = memory_.allocated_bytes();
    EXPECT_EQ(memory_.allocated_bytes(), allocated);
  }
}

TEST_F(LoaderTest, FetcherReadsAnyIds) {
  const absl::StatusOr<Fetcher> fetcher = Fetcher::Create(*dataset_, {.batch_samples = 4}, memory_);
  ASSERT_TRUE(fetcher.ok()) << fetcher.status();
  const std::vector<uint64_t> ids = {99, 0, 0, kPaddingId, 1, 50};
  const absl::StatusOr<HostBatch> batch = fetcher->Fetch(ids);
  ASSERT_TRUE(batch.ok()) << batch.status();
  for (const size_t i : {0, 1, 2, 4, 5}) ExpectSample(*batch, i);
  EXPECT_FALSE(batch->has(0, 3));
  EXPECT_TRUE(absl::IsOutOfRange(fetcher->Fetch(std::vector<uint64_t>{100}).status()));
  Damage(50);
  EXPECT_TRUE(absl::IsDataLoss(fetcher->Fetch(ids).status()));
}

TEST_F(LoaderTest, AMixtureOfJoinedDatasetsGivesEachItsShareAndResumes) {
  const std::string other_folder = MakeTestFolder("joined");
  TestDatasetOptions other_options{.shards = 2, .records_per_shard = 15};
  other_options.seed = 99;
  WriteTestDataset(other_folder, ToyFormat(), other_options);
  const Dataset parts[] = {*dataset_, *Dataset::Open(other_folder)};
  const std::vector<TestSample> others = MakeTestSamples(other_options);
  samples_.insert(samples_.end(), others.begin(), others.end());
  dataset_.emplace(*Dataset::Join(parts));
  OrderSpec spec{.samples = dataset_->size(), .seed = 5, .global_batch = 8};
  spec.mixture = {{.first_id = 0, .samples = parts[0].size(), .weight = 3},
                  {.first_id = parts[0].size(), .samples = parts[1].size(), .weight = 1}};
  spec.epoch_samples = 400;
  const Order order = *Order::Make(spec);
  Loader loader = Open(order, {.epochs = 1});
  uint64_t of_others = 0;
  for (uint64_t step = 0; step < order.steps(); ++step) {
    const absl::StatusOr<std::optional<HostBatch>> batch = loader.Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    ExpectRight(**batch, order);
    for (const uint64_t id : (*batch)->ids()) of_others += id >= parts[0].size() ? 1 : 0;
  }
  EXPECT_EQ(of_others, 100u);

  const Cursor cursor = MakeCursor(dataset_->identity(), order, 3, 7);
  ExpectRight(**Open(order, {}, {}, cursor).Next(), order);
  const Dataset turned[] = {parts[1], parts[0]};
  dataset_.emplace(*Dataset::Join(turned));
  EXPECT_THAT(TryOpen(order, {}, {}, cursor).status().message(), HasSubstr("another dataset"));
}

TEST_F(LoaderTest, SplitsAreDatasetsOfTheirOwn) {
  const absl::StatusOr<Dataset> train = dataset_->Split("train");
  ASSERT_TRUE(train.ok());
  EXPECT_EQ(train->size(), dataset_->size());
  EXPECT_EQ(train->Read(99)->key, dataset_->Read(99)->key);
  const absl::Status none = dataset_->Split("test").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(none.ToString(), HasSubstr("the dataset has train"));
}

}  // namespace
}  // namespace shardpack::testing
