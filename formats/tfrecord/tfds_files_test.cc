#include "formats/tfrecord/tfds_files.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "formats/core/manifest.h"
#include "formats/io/file.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using Json = nlohmann::json;

std::map<std::string, std::string> Make(const Manifest& manifest) {
  std::map<std::string, std::string> files;
  auto made = MakeTfdsFiles({.root = "", .manifest = manifest, .indexes = {}});
  EXPECT_TRUE(made.ok()) << made.status();
  for (NamedBytes& file : *made) files[file.name] = std::move(file.bytes);
  return files;
}

std::string Golden(const std::string& name) {
  absl::StatusOr<std::string> bytes =
      ReadWholeFile("formats/tfrecord/testdata/layouts/tfds/" + name, 1 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

// Describes the two images of the golden dataset.
Manifest GoldenManifest() {
  Manifest manifest;
  manifest.shards.resize(1);
  manifest.shards[0].split = "train";
  manifest.shards[0].records = 2;
  manifest.shards[0].bytes = 1554;
  manifest.classes = {"cat", "dog"};
  manifest.facts.image_formats = {{"jpg", 2}};
  return manifest;
}

TEST(TfdsFiles, FeaturesAreThoseThatTensorFlowDatasetsWrites) {
  const Json ours = Json::parse(Make(GoldenManifest())["features.json"]);
  EXPECT_EQ(ours, Json::parse(Golden("features.json")));
}

TEST(TfdsFiles, InfoHasWhatTensorFlowDatasetsWrites) {
  const Json ours = Json::parse(Make(GoldenManifest())["dataset_info.json"]);
  const Json theirs = Json::parse(Golden("dataset_info.json"));
  for (const char* member : {"name", "version", "fileFormat"}) {
    EXPECT_EQ(ours[member], theirs[member]) << member;
  }
  ASSERT_EQ(ours["splits"].size(), 1u);
  for (const char* member : {"name", "shardLengths", "numBytes", "filepathTemplate"}) {
    EXPECT_EQ(ours["splits"][0][member], theirs["splits"][0][member]) << member;
  }
}

TEST(TfdsFiles, EachShardOfEachSplit) {
  Manifest manifest = GoldenManifest();
  manifest.shards.resize(3, manifest.shards[0]);
  manifest.shards[1].records = 7;
  manifest.shards[2].split = "test";
  const Json splits = Json::parse(Make(manifest)["dataset_info.json"])["splits"];
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[0]["name"], "test");
  EXPECT_EQ(splits[0]["shardLengths"], Json::parse(R"(["2"])"));
  EXPECT_EQ(splits[1]["shardLengths"], Json::parse(R"(["2", "7"])"));
  EXPECT_EQ(splits[1]["numBytes"], "2964");  // 2 * 1554 - (2 + 7) * 16
}

TEST(TfdsFiles, NamesOfLabels) {
  EXPECT_EQ(Make(GoldenManifest())["label.labels.txt"], Golden("label.labels.txt"));
  Manifest manifest = GoldenManifest();
  manifest.classes = {"n\xc3\xa9on", " a b\t", "two\nlines", "back\\slash", "\xff", "  "};
  EXPECT_EQ(Make(manifest)["label.labels.txt"],
            "n\xc3\xa9on\n\\x20a b\\x09\ntwo\\x0alines\nback\\x5cslash\n\\xff\n\\x20\\x20\n");
}

TEST(TfdsFiles, NoClassesNoLabel) {
  Manifest manifest = GoldenManifest();
  manifest.classes.clear();
  manifest.facts.image_formats = {{"jpg", 1}, {"png", 1}};
  auto files = Make(manifest);
  EXPECT_EQ(files.count("label.labels.txt"), 0u);
  const Json features = Json::parse(files["features.json"])["featuresDict"]["features"];
  EXPECT_EQ(features.count("label"), 0u);
  EXPECT_EQ(features["image"]["image"].count("encodingFormat"), 0u);
}

TEST(TfdsFiles, ShardNames) {
  EXPECT_EQ(TfdsShardName("my-split_1", 0, 123456), "dataset-my-split_1.tfrecord-00000-of-123456");
  for (const char* bad : {"", "a.b", "a/b", "a b"}) EXPECT_EQ(TfdsShardName(bad, 0, 1), "") << bad;
}

}  // namespace
}  // namespace shardpack
