#include "validators/looking/dataset_diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "validators/looking/sample_pairs.h"

namespace shardpack {
namespace {

using testing::TestSample;

TestSample Sample(const std::string& key, int64_t label, const std::string& image,
                  const std::string& path = "") {
  return {.key = key,
          .source_path = path.empty() ? key + ".jpg" : path,
          .image = image,
          .label = label};
}

class DatasetDiffTest : public ::testing::Test {
 protected:
  // With more than one shard, the last one is of split val.
  Dataset Write(const std::string& name, std::vector<TestSample> samples, size_t shards = 1,
                std::vector<std::string> classes = {"cat", "dog"}) {
    const std::string folder = testing::MakeTestFolder("diff-" + name);
    Manifest manifest = testing::WriteTestDataset(
        folder, testing::ToyFormat(), {.shards = shards, .samples = std::move(samples)});
    if (shards > 1) manifest.shards.back().split = "val";
    manifest.splits.clear();
    for (const ManifestShard& shard : manifest.shards)
      manifest.splits[shard.split] += shard.records;
    manifest.classes = std::move(classes);
    testing::Reseal(folder, manifest);
    return *Dataset::Open(folder);
  }
  static std::map<std::string, uint64_t> Counts(const DatasetDiff& diff) {
    std::map<std::string, uint64_t> counts;
    for (size_t kind = 0; kind < diff.counts.size(); ++kind) {
      if (diff.counts[kind] > 0)
        counts[std::string(ChangeWord(static_cast<ChangeKind>(kind)))] = diff.counts[kind];
    }
    return counts;
  }
  using Expected = std::map<std::string, uint64_t>;
};

TEST_F(DatasetDiffTest, EqualDatasetsInAnotherOrderAreTheSame) {
  const Dataset a = Write("a", {Sample("1", 0, "x"), Sample("2", 1, "y"), Sample("3", 0, "z")});
  const Dataset b = Write("b", {Sample("3", 0, "z"), Sample("2", 1, "y"), Sample("1", 0, "x")});
  for (const DiffBy by : {DiffBy::kKey, DiffBy::kPath, DiffBy::kHash}) {
    const absl::StatusOr<DatasetDiff> diff = DiffDatasets(a, b, {.by = by});
    ASSERT_TRUE(diff.ok()) << diff.status();
    EXPECT_FALSE(diff->differs());
    EXPECT_EQ(diff->same, 3u);
    EXPECT_TRUE(diff->options.empty());
    EXPECT_TRUE(diff->not_compared.empty());
  }
}

TEST_F(DatasetDiffTest, EachKindOfChange) {
  std::vector<TestSample> old_samples = {Sample("same", 0, "1"),  Sample("gone", 0, "2"),
                                         Sample("bytes", 0, "3"), Sample("label", 0, "4"),
                                         Sample("name", 1, "5"),  Sample("field", 1, "6"),
                                         Sample("split", 0, "7"), Sample("last", 0, "8")};
  std::vector<TestSample> new_samples = {Sample("same", 0, "1"),  Sample("bytes", 0, "33"),
                                         Sample("label", 1, "4"), Sample("new name", 1, "5"),
                                         Sample("split", 0, "7"), Sample("field", 1, "6"),
                                         Sample("last", 0, "8"),  Sample("new", 0, "9")};
  old_samples[5].more_fields = {{"txt", "a"}, {"json", "{}"}};
  new_samples[5].more_fields = {{"txt", "b"}};
  // Of two shards, the second is val: field, last and new move no more than they are.
  const Dataset a = Write("c", old_samples, 2), b = Write("d", new_samples, 2);
  const absl::StatusOr<DatasetDiff> diff = DiffDatasets(a, b, {});
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_EQ(Counts(*diff), (Expected{{"added", 1},
                                     {"removed", 1},
                                     {"content", 1},
                                     {"relabelled", 1},
                                     {"renamed", 1},
                                     {"fields", 1},
                                     {"moved", 1}}));
  EXPECT_EQ(diff->same, 3u);
  ASSERT_EQ(diff->fields.size(), 2u);
  std::map<std::string, const FieldDifference*> fields;
  for (const FieldDifference& field : diff->fields) fields[field.name] = &field;
  EXPECT_EQ(fields["txt"]->changed, 1u);
  EXPECT_EQ(fields["json"]->lost, 1u);
  std::string text;
  ASSERT_TRUE(WriteJson(*diff, [&](std::string_view piece) { text += piece; }).ok());
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["changes"].size(), diff->changes.size());
  std::map<std::string, nlohmann::json> by_key;
  for (const auto& change : json["changes"])
    by_key[change[change.contains("was") ? "was" : "now"]["key"]] = change;
  EXPECT_EQ(by_key["gone"]["what"], nlohmann::json::array({"removed"}));
  EXPECT_EQ(by_key["new"]["what"], nlohmann::json::array({"added"}));
  EXPECT_EQ(by_key["label"]["now"]["class"], "dog");
  EXPECT_EQ(by_key["name"]["now"]["key"], "new name");
  EXPECT_EQ(by_key["field"]["fields"], (nlohmann::json::array({"json", "txt"})));
  EXPECT_TRUE(json["differs"]);
}

TEST_F(DatasetDiffTest, ClassesAreComparedByName) {
  const Dataset a = Write("e", {Sample("1", 0, "x"), Sample("2", 1, "y")});
  const Dataset b =
      Write("f", {Sample("1", 1, "x"), Sample("2", 1, "y")}, 1, {"dog", "cat", "bird"});
  const absl::StatusOr<DatasetDiff> diff = DiffDatasets(a, b, {});
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_EQ(Counts(*diff), (Expected{{"relabelled", 1}}));
  ASSERT_EQ(diff->classes.size(), 3u);
  EXPECT_EQ(diff->classes[0].name, "cat");
  EXPECT_EQ(diff->classes[0].now, 1);
  EXPECT_EQ(diff->classes[2].name, "bird");
  EXPECT_EQ(diff->classes[2].was, -1);
}

TEST_F(DatasetDiffTest, ByPathAndByHash) {
  const Dataset a = Write(
      "g", {Sample("1", 0, "x", "a/x"), Sample("2", 1, "y", "a/y"), Sample("3", 0, "z", "a/z")});
  const Dataset b = Write(
      "h", {Sample("7", 0, "x", "a/x"), Sample("8", 1, "yy", "a/y"), Sample("3", 0, "z", "b/z")});
  EXPECT_EQ(Counts(*DiffDatasets(a, b, {.by = DiffBy::kPath})),
            (Expected{{"content", 1}, {"renamed", 1}}));
  EXPECT_EQ(Counts(*DiffDatasets(a, b, {.by = DiffBy::kHash})),
            (Expected{{"renamed", 1}, {"removed", 1}, {"added", 1}}));
  EXPECT_EQ(Counts(*DiffDatasets(a, b, {})),
            (Expected{{"renamed", 1}, {"removed", 1}, {"added", 1}}));
}

// What is missing of one side says nothing about a pair that both have.
TEST_F(DatasetDiffTest, OfAPartialSideAllThatIsThereIsCompared) {
  const Dataset part = Write("p", {Sample("1", 0, "x"), Sample("2", 1, "y")});
  const Dataset whole =
      Write("w", {Sample("new", 0, "x"), Sample("2", 0, "y"), Sample("3", 0, "z")});
  for (const bool was_is_partial : {true, false}) {
    const absl::StatusOr<DatasetDiff> diff =
        was_is_partial ? DiffDatasets(part, whole, {.was_is_partial = true})
                       : DiffDatasets(whole, part, {.now_is_partial = true});
    ASSERT_TRUE(diff.ok()) << diff.status();
    EXPECT_EQ(Counts(*diff), (Expected{{"renamed", 1}, {"relabelled", 1}}));
    ASSERT_EQ(diff->not_compared.size(), 1u);
    EXPECT_TRUE(diff->not_compared[0].starts_with(
        was_is_partial
            ? "1 of the second dataset's samples, which may be in the part of the other "
            : "1 of the first dataset's samples, which may be in the part of the other "))
        << diff->not_compared[0];
  }
}

TEST_F(DatasetDiffTest, ForeignShardsHaveNoNamesAndNoSplits) {
  const std::vector<TestSample> samples = {Sample("1", 0, "x"), Sample("2", 1, "y")};
  const Dataset a = Write("i", samples);
  const std::string path = testing::MakeTestFolder("diff-foreign") + "/x.toy";
  testing::WriteTestShard(path, testing::ToyFormat(), samples);
  const Format* const formats[] = {&testing::ToyFormat()};
  const absl::StatusOr<Dataset> b = Dataset::OpenShards({&path, 1}, formats);
  ASSERT_TRUE(b.ok()) << b.status();
  const absl::StatusOr<DatasetDiff> diff = DiffDatasets(a, *b, {});
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_FALSE(diff->differs());
  EXPECT_EQ(diff->not_compared.size(), 2u);
  EXPECT_EQ(DiffDatasets(a, *b, {.by = DiffBy::kPath}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DatasetDiffTest, KeysThatRepeatAcrossSplitsArePairedWithinThem) {
  // Of two shards, the second is val; its sample comes first in one and last in the other.
  const Dataset a = Write("j", {Sample("1", 0, "a"), Sample("2", 0, "b"), Sample("1", 1, "c")}, 2);
  const Dataset b = Write("k", {Sample("2", 0, "b"), Sample("1", 0, "a"), Sample("1", 1, "c")}, 2);
  EXPECT_EQ(DiffDatasets(a, b, {})->same, 3u);
  // Only that of val is left, and one of the removed split is no partner.
  const Dataset train =
      Write("l", {Sample("1", 0, "a"), Sample("3", 0, "x"), Sample("1", 1, "c")}, 2);
  const Dataset val = Write("m", {Sample("3", 0, "x"), Sample("1", 1, "c")}, 2);
  const absl::StatusOr<DatasetDiff> diff = DiffDatasets(train, val, {});
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_EQ(Counts(*diff), (Expected{{"removed", 1}}));
  ASSERT_EQ(diff->changes.size(), 1u);
  EXPECT_EQ(diff->changes[0].was, 0u);
  // Within a split, those with one image.
  const Dataset ab = Write("n", {Sample("1", 0, "a"), Sample("1", 0, "b")});
  const Dataset ba = Write("o", {Sample("1", 0, "b"), Sample("1", 0, "a")});
  EXPECT_EQ(DiffDatasets(ab, ba, {})->same, 2u);
}

TEST_F(DatasetDiffTest, SamplesWithoutPathsAreNotRenamed) {
  const auto without = [](TestSample sample) {
    sample.source_path.clear();
    return sample;
  };
  const Dataset a = Write("p", {Sample("1", 0, "x"), without(Sample("2", 1, "y"))});
  const Dataset b = Write("q", {Sample("1", 0, "x"), without(Sample("2", 1, "y"))});
  const absl::StatusOr<DatasetDiff> diff = DiffDatasets(a, b, {.by = DiffBy::kPath});
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_FALSE(diff->differs());
  EXPECT_EQ(diff->same, 2u);
  const Dataset c = Write("r", {Sample("1", 0, "x"), Sample("2", 1, "y")});
  EXPECT_EQ(DiffDatasets(a, c, {.by = DiffBy::kPath})->same, 2u);
}

// Against a plain model, with keys and images that are there several times.
TEST_F(DatasetDiffTest, PairsAreThoseOfAModel) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<TestSample> sides[2];
    for (auto& side : sides) {
      const size_t count = random() % 40;
      for (size_t i = 0; i <= count; ++i)
        side.push_back(Sample(std::to_string(random() % 30), 0, std::to_string(random() % 25)));
    }
    const std::string name = "model" + std::to_string(round);
    const Dataset both[] = {Write(name + "a", sides[0], 1), Write(name + "b", sides[1], 1)};
    const SampleRows rows(both);
    for (const Identity identity : {Identity::kKey, Identity::kImage}) {
      const auto value = [&](const TestSample& sample) {
        return identity == Identity::kKey ? sample.key : sample.image;
      };
      std::map<std::string, std::pair<size_t, size_t>> model;
      std::map<std::pair<std::string, std::string>, std::pair<size_t, size_t>> with_key;
      for (size_t side = 0; side < 2; ++side) {
        for (const TestSample& sample : sides[side]) {
          ++(side == 0 ? model[value(sample)].first : model[value(sample)].second);
          auto& exact = with_key[{value(sample), sample.key}];
          ++(side == 0 ? exact.first : exact.second);
        }
      }
      std::vector<uint64_t> was(sides[0].size()), now(sides[1].size());
      for (size_t i = 0; i < was.size(); ++i) was[i] = i;
      for (size_t i = 0; i < now.size(); ++i) now[i] = was.size() + i;
      const absl::StatusOr<SamplePairs> found =
          PairSamples(rows, was, now, identity, [](size_t, int64_t label) { return label; });
      ASSERT_TRUE(found.ok());
      size_t expected = 0, expected_keys = 0, keys = 0;
      for (const auto& [text, counts] : model) expected += std::min(counts.first, counts.second);
      for (const auto& [text, counts] : with_key)
        expected_keys += std::min(counts.first, counts.second);
      EXPECT_EQ(found->pairs.size(), expected);
      EXPECT_EQ(found->only_was.size(), was.size() - expected);
      EXPECT_EQ(found->only_now.size(), now.size() - expected);
      std::set<uint64_t> used;
      for (const SamplePair& pair : found->pairs) {
        const TestSample& a = sides[0][pair.was];
        const TestSample& b = sides[1][pair.now - was.size()];
        EXPECT_EQ(value(a), value(b));
        keys += a.key == b.key ? 1 : 0;
        EXPECT_TRUE(used.insert(pair.was).second && used.insert(pair.now).second);
      }
      EXPECT_EQ(keys, expected_keys) << "partners of equal keys come first";
    }
  }
}

}  // namespace
}  // namespace shardpack
