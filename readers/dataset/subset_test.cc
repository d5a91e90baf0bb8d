#include "readers/dataset/subset.h"

#include <string>
#include <vector>

#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

class SubsetTest : public ::testing::Test {
 protected:
  SubsetTest()
      : folder_(testing::MakeTestFolder(
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    testing::WriteTestDataset(folder_, testing::ToyFormat(), {.shards = 3, .records_per_shard = 7});
  }
  ~SubsetTest() override { (void)RemoveTree(folder_); }

  std::string folder_;
};

TEST_F(SubsetTest, HoldsTheIdsThatTheConditionKeeps) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::vector<std::string> kept;
  const auto subset = SelectSamples(
      *dataset, [&](const DatasetShard& shard, const ShardIndex& index, uint64_t record) {
        EXPECT_EQ(index.records(), shard.records);
        if ((shard.first_id + record) % 3 != 1) return false;
        kept.emplace_back(index.key(record));
        return true;
      });
  ASSERT_TRUE(subset.ok()) << subset.status();
  EXPECT_THAT(**subset, ::testing::ElementsAre(1, 4, 7, 10, 13, 16, 19));
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(*dataset->FindKey(kept[i]), (**subset)[i]);
}

TEST_F(SubsetTest, OfNothingIsEmpty) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const auto none = SelectSamples(
      *dataset, [](const DatasetShard&, const ShardIndex&, uint64_t) { return false; });
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE((*none)->empty());
}

TEST_F(SubsetTest, AnIndexThatIsGoneIsAnError) {
  const absl::StatusOr<Dataset> dataset = Dataset::Open(folder_);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_TRUE(RemoveTree(folder_).ok());
  EXPECT_FALSE(SelectSamples(*dataset, [](const DatasetShard&, const ShardIndex&, uint64_t) {
                 return true;
               }).ok());
}

}  // namespace
}  // namespace shardpack
