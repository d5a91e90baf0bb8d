// LoaderTest: loaders of a published dataset of a toy format, in a folder of its own.
//
//   TEST_F(LoaderTest, ...) {
//     const Order order = MakeOrder(10);
//     Loader loader = Open(order);
//     ExpectRight(**loader.Next(), order);
//
// Lifetime: the folder goes with the test.
#ifndef SHARDPACK_READERS_LOADING_LOADER_TEST_FIXTURE_H_
#define SHARDPACK_READERS_LOADING_LOADER_TEST_FIXTURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/fault_injection.h"
#include "gtest/gtest.h"
#include "readers/loading/loader.h"

namespace shardpack::testing {

class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() { Make({.shards = 4, .records_per_shard = 25}); }
  ~LoaderTest() override { (void)RemoveTree(folder_); }

  void Make(const TestDatasetOptions& options) {
    if (!folder_.empty()) (void)RemoveTree(folder_);
    folder_ = MakeTestFolder(::testing::UnitTest::GetInstance()->current_test_info()->name());
    samples_ = options.samples.empty() ? MakeTestSamples(options) : options.samples;
    WriteTestDataset(folder_, ToyFormat(), options);
    dataset_.emplace(*Dataset::Open(folder_));
  }
  Order MakeOrder(uint32_t global_batch, Tail tail = Tail::kDrop,
                  OrderMode mode = OrderMode::kShuffle) const {
    return *Order::Make({.samples = dataset_->size(),
                         .mode = mode,
                         .seed = 3,
                         .global_batch = global_batch,
                         .tail = tail});
  }
  absl::StatusOr<Loader> TryOpen(const Order& order, LoaderOptions options = {}, Rank rank = {},
                                 std::optional<Cursor> cursor = std::nullopt) {
    if (options.threads == 0) options.threads = 2;
    return Loader::Open(*dataset_, order, rank, options, memory_, cursor);
  }
  Loader Open(const Order& order, LoaderOptions options = {}, Rank rank = {},
              std::optional<Cursor> cursor = std::nullopt) {
    absl::StatusOr<Loader> loader = TryOpen(order, options, rank, cursor);
    EXPECT_TRUE(loader.ok()) << loader.status();
    return *std::move(loader);
  }
  // Ids, labels and bytes match the order and the samples.
  void ExpectRight(const HostBatch& batch, const Order& order, Rank rank = {}) const {
    const uint32_t global_batch = order.spec().global_batch;
    ASSERT_EQ(batch.size(), rank.slots(global_batch));
    for (size_t i = 0; i < batch.size(); ++i) {
      const uint64_t id = order.IdAt(batch.epoch(), batch.step(),
                                     rank.first_slot(global_batch) + static_cast<uint32_t>(i));
      ASSERT_EQ(batch.ids()[i], id);
      if (id == kPaddingId) {
        EXPECT_EQ(batch.status()[i].state, SampleState::kPadding);
        EXPECT_FALSE(batch.has(0, i));
        EXPECT_EQ(batch.labels()[i], kNoLabel);
        continue;
      }
      ExpectSample(batch, i);
      EXPECT_EQ(batch.status()[i].state, SampleState::kOk);
    }
  }
  void ExpectSample(const HostBatch& batch, size_t i) const {
    const TestSample& sample = samples_[batch.ids()[i]];
    EXPECT_EQ(batch.labels()[i], sample.label);
    ASSERT_TRUE(batch.has(0, i));
    ASSERT_EQ(AsText(batch.bytes(0, i)), sample.image);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.bytes(0, i).data()) % 64, 0u);
    bool inside = false;
    for (const Bytes slab : batch.slabs()) {
      inside = inside ||
               (batch.bytes(0, i).data() >= slab.data() &&
                batch.bytes(0, i).data() + batch.bytes(0, i).size() <= slab.data() + slab.size());
    }
    EXPECT_TRUE(inside) << i;
  }
  void Damage(uint64_t id) {
    const SampleLocation at = dataset_->Locate(id);
    const Extent extent = dataset_->index(at.shard)->field(at.record, 0);
    const std::string path = dataset_->shards()[at.shard].data_path;
    std::string bytes = ReadTestFile(path);
    bytes[extent.offset + extent.length / 2] ^= 0x10;
    WriteTestFile(path, bytes);
  }

  const ScopedSyscalls restored_;
  PageableMemory memory_;
  std::string folder_;
  std::vector<TestSample> samples_;
  std::optional<Dataset> dataset_;
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_READERS_LOADING_LOADER_TEST_FIXTURE_H_
