#include "validators/looking/exact_copies.h"

#include <gtest/gtest.h>

#include <utility>

#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"

namespace shardpack {
namespace {

using testing::TestSample;

class ExactCopiesTest : public ::testing::Test {
 protected:
  static TestSample Sample(const std::string& key, int64_t label, const std::string& image) {
    return {.key = key, .source_path = key + ".jpg", .image = image, .label = label};
  }
  Dataset Write(const std::string& name, std::vector<TestSample> samples, size_t shards = 1) {
    const std::string folder = testing::MakeTestFolder("copies-" + name);
    folders_.push_back(folder);
    testing::WriteTestDataset(folder, testing::ToyFormat(),
                              {.shards = shards, .samples = std::move(samples)});
    return *Dataset::Open(folder);
  }
  static std::vector<std::vector<uint64_t>> RowsOf(const std::vector<CopyGroup>& groups) {
    std::vector<std::vector<uint64_t>> rows;
    for (const CopyGroup& group : groups) rows.push_back(group.rows);
    return rows;
  }
  std::vector<std::string> folders_;
};

TEST_F(ExactCopiesTest, GroupsAreOrderedByWhatTheyMean) {
  const Dataset a =
      Write("a",
            {Sample("0", 0, "plain"), Sample("1", 0, "plain"), Sample("2", 0, "leak"),
             Sample("3", 0, "conflict"), Sample("4", 1, "conflict"), Sample("5", 1, "single")},
            2);
  const Dataset b = Write("b", {Sample("0", 0, "other"), Sample("1", 0, "leak")});
  const Dataset both[] = {a, b};
  const SampleRows rows(both);
  ASSERT_EQ(rows.size(), 8u);
  absl::StatusOr<std::vector<CopyGroup>> groups = FindExactCopies(rows);
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ(RowsOf(*groups), (std::vector<std::vector<uint64_t>>{{3, 4}, {2, 7}, {0, 1}}));
  EXPECT_TRUE((*groups)[0].label_conflict);
  EXPECT_FALSE((*groups)[0].leak);
  EXPECT_TRUE((*groups)[1].leak);
  EXPECT_FALSE((*groups)[1].label_conflict);
  EXPECT_FALSE((*groups)[2].leak);
  const std::atomic<int> stop{0};
  UnreadSamples unread;
  ASSERT_TRUE(CompareBytes(rows, *groups, stop, unread).ok());
  EXPECT_EQ(groups->size(), 3u);
  EXPECT_EQ(unread.count, 0u);
  EXPECT_EQ(rows.Facts(7)->key, "1");
  EXPECT_EQ(rows.Facts(7)->dataset, 1u);
  EXPECT_EQ(rows.Facts(4)->class_name, "dog");
}

TEST_F(ExactCopiesTest, EqualHashesOfDifferentLengthsAreNoCopies) {
  EXPECT_TRUE(FindExactCopies(SampleRows(std::vector<Dataset>{
                                  Write("c", {Sample("0", 0, "x"), Sample("1", 0, "xx")})}))
                  ->empty());
}

TEST_F(ExactCopiesTest, WhatCannotBeReadIsCounted) {
  const Dataset dataset = Write("d", {Sample("0", 0, "same bytes"), Sample("1", 0, "same bytes")});
  const std::string path = dataset.shards()[0].data_path;
  std::string shard = testing::ReadTestFile(path);
  shard[shard.find("same bytes")] ^= 1;
  testing::WriteTestFile(path, shard);
  const SampleRows rows({&dataset, 1});
  absl::StatusOr<std::vector<CopyGroup>> groups = FindExactCopies(rows);
  ASSERT_TRUE(groups.ok()) << groups.status();
  const std::atomic<int> stop{0};
  UnreadSamples unread;
  ASSERT_TRUE(CompareBytes(rows, *groups, stop, unread).ok());
  EXPECT_EQ(groups->size(), 1u);
  EXPECT_EQ(unread.count, 1u);
  ASSERT_EQ(unread.messages.size(), 1u);
  EXPECT_NE(unread.messages[0].find("key 0"), std::string::npos) << unread.messages[0];
}

TEST_F(ExactCopiesTest, AStopEndsIt) {
  const Dataset dataset = Write("e", {Sample("0", 0, "same"), Sample("1", 0, "same")});
  const SampleRows rows({&dataset, 1});
  absl::StatusOr<std::vector<CopyGroup>> groups = FindExactCopies(rows);
  const std::atomic<int> stop{2};
  UnreadSamples unread;
  EXPECT_TRUE(absl::IsCancelled(CompareBytes(rows, *groups, stop, unread)));
}

}  // namespace
}  // namespace shardpack
