// A selection is a dataset like any other, of samples and shards that it shares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "readers/dataset/dataset.h"
#include "readers/dataset/subset.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using testing::ToyFormat;

class SelectionTest : public ::testing::Test {
 protected:
  SelectionTest()
      : folder_(testing::MakeTestFolder(
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    testing::WriteTestDataset(folder_, ToyFormat(), {.shards = 3, .records_per_shard = 7});
    whole_.emplace(*Dataset::Open(folder_));
  }
  ~SelectionTest() override { (void)RemoveTree(folder_); }

  // Shards of other programs, which may be of any split.
  Dataset OpenSplits() const {
    std::vector<std::string> paths;
    for (const DatasetShard& shard : whole_->shards()) paths.push_back(shard.data_path);
    static const Format* const kToy[] = {&ToyFormat()};
    return *Dataset::OpenShards(paths, kToy, {.classes = {}, .splits = {"val", "train", "val"}});
  }

  std::string folder_;
  std::optional<Dataset> whole_;
};

TEST_F(SelectionTest, HasTheSamplesOfItsIds) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<uint64_t> ids(random() % 40);
    for (uint64_t& id : ids) id = random() % whole_->size();
    const absl::StatusOr<Dataset> selected = whole_->Select(ids);
    ASSERT_TRUE(selected.ok()) << selected.status();
    ASSERT_EQ(selected->size(), ids.size());
    EXPECT_EQ(selected->size("train"), ids.size());
    EXPECT_EQ(selected->size("val"), 0u);
    EXPECT_TRUE(selected->is_selection());
    EXPECT_EQ(selected->manifest(), nullptr);
    EXPECT_EQ(selected->shards().data(), whole_->shards().data());
    for (uint64_t i = 0; i < ids.size(); ++i) {
      const SampleLocation at = selected->Locate(i), expected = whole_->Locate(ids[i]);
      EXPECT_EQ(at.shard, expected.shard);
      EXPECT_EQ(at.record, expected.record);
      const OwnedSample sample = *selected->Read(i), same = *whole_->Read(ids[i]);
      EXPECT_EQ(sample.key, same.key);
      EXPECT_EQ(sample.label, same.label);
      EXPECT_EQ(sample.fields[0].bytes, same.fields[0].bytes);
      // The first of those with this key.
      const auto first = std::find(ids.begin(), ids.end(), ids[i]) - ids.begin();
      EXPECT_EQ(*selected->FindKey(sample.key), static_cast<uint64_t>(first));
    }
    EXPECT_TRUE(absl::IsOutOfRange(selected->Read(ids.size()).status()));
  }
}

TEST_F(SelectionTest, KeysAreFoundAgainAndAgain) {
  std::vector<uint64_t> ids(whole_->size());
  for (uint64_t id = 0; id < ids.size(); ++id) ids[id] = ids.size() - 1 - id / 2;
  const Dataset selected = *whole_->Select(ids), copy = selected;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t id = 0; id < ids.size(); ++id) {
      EXPECT_EQ(*whole_->FindKey(whole_->Read(id)->key), id);
      EXPECT_EQ(*copy.FindKey(selected.Read(id)->key), id / 2 * 2);
    }
    EXPECT_TRUE(absl::IsNotFound(whole_->FindKey("").status()));
    EXPECT_TRUE(absl::IsNotFound(copy.FindKey(whole_->Read(0)->key).status()));
    EXPECT_TRUE(absl::IsNotFound(whole_->Select({})->FindKey("cat/1").status()));
  }
}

// As the records of TFRecord files of others.
TEST_F(SelectionTest, ManySamplesMayHaveOneKey) {
  const std::vector<uint64_t> ids(200'000, 5);
  const Dataset same = *whole_->Select(ids);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(*same.FindKey(whole_->Read(5)->key), 0u);
}

TEST_F(SelectionTest, RefusesIdsPastTheEnd) {
  const absl::Status refused = whole_->Select(std::vector<uint64_t>{0, 21}).status();
  EXPECT_TRUE(absl::IsOutOfRange(refused));
  EXPECT_EQ(FactsOf(refused).id, 21);
  const Dataset two = *whole_->Select(std::vector<uint64_t>{20, 4});
  EXPECT_TRUE(absl::IsOutOfRange(two.Select(std::vector<uint64_t>{2}).status()));
  const std::string key = whole_->Read(5)->key;
  EXPECT_TRUE(absl::IsNotFound(two.FindKey(key).status()));
}

TEST_F(SelectionTest, IdentityIsThatOfDatasetAndIds) {
  const Dataset once = *whole_->Select(std::vector<uint64_t>{9, 3, 3, 20});
  const Dataset twice = *once.Select(std::vector<uint64_t>{3, 0});
  EXPECT_EQ(twice.identity(), whole_->Select(std::vector<uint64_t>{20, 9})->identity());
  EXPECT_EQ(twice.Read(0)->key, whole_->Read(20)->key);
  std::vector<Digest> all = {whole_->identity(), once.identity(), twice.identity(),
                             whole_->Select({})->identity()};
  all.push_back(whole_->Select(std::vector<uint64_t>{9, 20})->identity());
  // Every sample, and still not the dataset: a cursor of one is none of the other.
  std::vector<uint64_t> every(whole_->size());
  for (uint64_t id = 0; id < every.size(); ++id) every[id] = id;
  all.push_back(whole_->Select(every)->identity());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST_F(SelectionTest, IsSplit) {
  const Dataset splits = OpenSplits();
  const Dataset some = *splits.Select(std::vector<uint64_t>{20, 8, 0, 9, 8});
  EXPECT_EQ(some.size("train"), 3u);
  EXPECT_EQ(some.size("val"), 2u);
  const Dataset val = *some.Split("val"), train = *some.Split("train");
  ASSERT_EQ(val.size(), 2u);
  EXPECT_EQ(val.Read(0)->key, splits.Read(20)->key);
  EXPECT_EQ(val.Read(1)->key, splits.Read(0)->key);
  ASSERT_EQ(train.size(), 3u);
  EXPECT_EQ(train.Read(1)->key, splits.Read(9)->key);
  // The same samples in whichever order it was done.
  EXPECT_EQ(val.identity(), splits.Split("val")->Select(std::vector<uint64_t>{13, 0})->identity());
  EXPECT_EQ(val.shards().size(), 2u);
  EXPECT_TRUE(absl::IsNotFound(some.Split("test").status()));
  EXPECT_EQ(splits.Select(std::vector<uint64_t>{8})->Split("val")->size(), 0u);
}

TEST_F(SelectionTest, IsJoined) {
  const Dataset some = *whole_->Select(std::vector<uint64_t>{9, 0, 9});
  const Dataset parts[] = {some, *whole_, some};
  const absl::StatusOr<Dataset> joined = Dataset::Join(parts);
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_EQ(joined->size(), 3 + 21 + 3u);
  for (uint64_t id = 0; id < joined->size(); ++id) {
    const std::string expected = id < 3    ? some.Read(id)->key
                                 : id < 24 ? whole_->Read(id - 3)->key
                                           : some.Read(id - 24)->key;
    EXPECT_EQ(joined->Read(id)->key, expected) << id;
  }
  const Dataset turned[] = {*whole_, some, some};
  EXPECT_NE(joined->identity(), Dataset::Join(turned)->identity());
}

TEST_F(SelectionTest, SubsetsOfItHaveItsIds) {
  const Dataset some = *whole_->Select(std::vector<uint64_t>{9, 0, 9, 15});
  const std::string wanted = whole_->Read(9)->key;
  const auto subset =
      SelectSamples(some, [&](const DatasetShard&, const ShardIndex& index, uint64_t record) {
        return index.key(record) == wanted;
      });
  ASSERT_TRUE(subset.ok()) << subset.status();
  EXPECT_THAT(**subset, ElementsAre(0, 2));
}

TEST_F(SelectionTest, AnErrorHasItsId) {
  const SampleLocation at = whole_->Locate(16);
  const Extent extent = whole_->index(at.shard)->field(at.record, 0);
  const std::string path = whole_->shards()[at.shard].data_path;
  std::string bytes = testing::ReadTestFile(path);
  bytes[extent.offset] ^= 1;
  testing::WriteTestFile(path, bytes);
  const Dataset some = *whole_->Select(std::vector<uint64_t>{3, 1, 16});
  const absl::Status damaged = some.Read(2).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged));
  EXPECT_EQ(FactsOf(damaged).id, 2);
  EXPECT_EQ(FactsOf(damaged).record, 2);
  std::string into(extent.length, '\0');
  const auto room = std::as_writable_bytes(std::span(into));
  EXPECT_EQ(FactsOf(some.ReadField(at, 0, room)).id, 2);
  EXPECT_EQ(FactsOf(whole_->ReadField(at, 0, room)).id, 16);
  const Dataset others = *whole_->Select(std::vector<uint64_t>{3, 1});
  EXPECT_EQ(FactsOf(others.ReadField(at, 0, room)).id, std::nullopt);
}

}  // namespace
}  // namespace shardpack
