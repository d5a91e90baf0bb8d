#include "readers/dataset/dataset_view.h"

#include "formats/io/hash.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(DatasetView, ShowsEverySampleAndChecksSizes) {
  const std::string folder = testing::MakeTestFolder("view");
  const testing::TestDatasetOptions options{.shards = 3, .records_per_shard = 7};
  const auto samples = testing::MakeTestSamples(options);
  testing::WriteTestDataset(folder, testing::ToyFormat(), options);
  const Dataset dataset = *Dataset::Open(folder);
  const absl::StatusOr<DatasetView> view = DatasetView::Open(dataset, "image");
  ASSERT_TRUE(view.ok()) << view.status();
  ASSERT_EQ(view->size(), samples.size());
  for (uint64_t id = 0; id < samples.size(); ++id) {
    EXPECT_EQ(AsText(view->bytes(id)), samples[id].image);
    EXPECT_EQ(Xxh3_64(view->bytes(id)), view->hash(id));
    EXPECT_EQ(view->label(id), samples[id].label);
    EXPECT_EQ(view->key(id), samples[id].key);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(DatasetView::Open(dataset, "mask").status()));
  const std::string path = folder + "/train-1.toy";
  testing::WriteTestFile(path, testing::ReadTestFile(path) + "x");
  EXPECT_TRUE(absl::IsDataLoss(DatasetView::Open(dataset, "image").status()));
  (void)RemoveTree(folder);
}

}  // namespace
}  // namespace shardpack
