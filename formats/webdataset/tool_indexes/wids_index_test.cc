#include "formats/webdataset/tool_indexes/wids_index.h"

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/tar_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;

class WidsIndex : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::string& split, const std::string& bytes) {
    absl::StatusOr<File> file = File::CreateExclusive(scratch_.File(name));
    const Bytes part = AsBytes(bytes);
    ASSERT_TRUE(file.ok() && file->Write(std::span(&part, 1)).ok());
    ManifestShard shard;
    shard.name = name;
    shard.split = split;
    shard.bytes = bytes.size();
    shard.records = 3;
    manifest_.shards.push_back(shard);
  }
  absl::StatusOr<std::vector<NamedBytes>> Make() {
    return MakeWidsIndexes({.root = scratch_.path(), .manifest = manifest_, .indexes = {}});
  }
  // The error for a dataset of one shard with this member.
  std::string Refusal(const std::string& bytes) {
    manifest_.shards.clear();
    const std::string name = absl::StrCat("s-", ++shards_, ".tar");
    Add(name, "train", bytes);
    return std::string(Make().status().message());
  }

  testing::ScratchFolder scratch_;
  Manifest manifest_;
  int shards_ = 0;
};

// The MD5 values come from md5sum.
TEST_F(WidsIndex, OneFileASplitInOrderOfTheNames) {
  const std::string bytes = TarBuilder().Add("a.jpg", "x").Finish();
  Add("train-000001.tar", "train", std::string(1024, '\0'));
  Add("train-000000.tar", "train", bytes);
  Add("val-000000.tar", "val", std::string(3 << 20, '\0'));
  const auto files = Make();
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].name, "train.json");
  EXPECT_EQ((*files)[1].name, "val.json");
  const auto train = nlohmann::json::parse((*files)[0].bytes);
  EXPECT_EQ(train["__kind__"], "wids-shard-index-v1");
  EXPECT_EQ(train["wids_version"], 1);
  EXPECT_EQ(train["name"], "train");
  ASSERT_EQ(train["shardlist"].size(), 2u);
  EXPECT_EQ(train["shardlist"][0]["url"], "train-000000.tar");
  EXPECT_EQ(train["shardlist"][0]["filesize"], bytes.size());
  EXPECT_EQ(
      train["shardlist"][1],
      nlohmann::json::parse(
          R"({"url": "train-000001.tar", "md5sum": "0f343b0931126a20f133d67c2b018a3b", "nsamples": 3,
          "filesize": 1024})"));
  const auto val = nlohmann::json::parse((*files)[1].bytes);
  EXPECT_EQ(val["shardlist"][0]["md5sum"], "d1dd210d6b1312cb342b56d02bd5e651");
}

TEST_F(WidsIndex, RefusesNamesThatWidsMisreads) {
  EXPECT_EQ(Refusal(TarBuilder().Add(std::string(96, 'a') + ".jpg", "x").Finish()), "");
  EXPECT_THAT(Refusal(TarBuilder().AddPax("path", "b.jpg").Add("a.jpg", "x").Finish()),
              HasSubstr("member \"b.jpg\" at offset 0"));
  EXPECT_THAT(Refusal(TarBuilder().Add("a\nb.jpg", "x").Finish()), HasSubstr("newline"));
  const auto with_prefix = [](char* header) {
    header[345] = 'd';
    std::fill(header + 345, header + 350, 'd');
  };
  EXPECT_THAT(Refusal(TarBuilder()
                          .AddChanged(std::string(96, 'a') + ".jpg", "x", kTarRegular, with_prefix)
                          .Finish()),
              HasSubstr("100 bytes"));
}

TEST_F(WidsIndex, DamageAndMissingShards) {
  std::string damaged = TarBuilder().Add("a.jpg", "x").Add("b.jpg", "x").Finish();
  damaged[1024] ^= 1;
  Add("train-000000.tar", "train", damaged);
  EXPECT_TRUE(absl::IsDataLoss(Make().status()));
  manifest_.shards[0].name = "gone.tar";
  EXPECT_TRUE(absl::IsNotFound(Make().status()));
}

}  // namespace
}  // namespace shardpack
