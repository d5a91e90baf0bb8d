#include "formats/core/manifest.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using testing::ResealedManifest;

Manifest TwoShards() {
  Manifest m;
  m.format = "webdataset";
  m.layout = "ustar";
  m.tool = {{"version", "0.1.0"}, {"xxhash", "0.8.1"}};
  m.options = {{"shuffle", "seed 7"}, {"note", "50 % \"quoted\" \xE2\x82\xAC"}};
  m.options_digest = {1, 2};
  m.plan_digest = {3, 4};
  m.source_root = "/data/caf\xE9\n/in";  // Latin-1, and a newline
  m.source_files = 12;
  m.source_bytes = 3456;
  m.listing_digest = {~uint64_t{0}, 0};
  m.counts = {.seen = 12, .packed = 9, .filtered = 1, .skipped = 2, .failed = 0, .ignored = {}};
  m.counts.ignored = {{"", 3}, {"txt", 1}};
  m.classes = {"cat", "dog", "\xFF"};
  m.splits = {{"train", 6}, {"val", 3}};
  m.shards = {
      {"train-000000.tar", "train", 10240, 6, {5, 6}, {"train-000000.tar.pidx", 640, {7, 8}}, ""},
      {"val-000000.tar",
       "val",
       5120,
       3,
       {9, 10},
       {"val-000000.tar.pidx", 400, {11, 12}},
       std::string(64, 'a')}};
  m.files = {{".nv-meta/split.yaml", 10, {1, 1}}, {"skipped.jsonl", 77, {13, 14}},
             {"train-000000.tar", 10240, {5, 6}}, {"train-000000.tar.pidx", 640, {7, 8}},
             {"val-000000.tar", 5120, {9, 10}},   {"val-000000.tar.pidx", 400, {11, 12}}};
  m.facts.largest_record_bytes = 2048;
  m.facts.max_width = 4294967295u;
  m.facts.image_formats = {{"jpg", 8}, {"png", 1}};
  return m;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

absl::Status Refusal(const std::string& json) { return Manifest::Parse(json).status(); }

TEST(Manifest, TextAndBack) {
  const Manifest before = TwoShards();
  const std::string json = before.ToJson();
  const absl::StatusOr<Manifest> after = Manifest::Parse(json);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->ToJson(), json);
  EXPECT_EQ(after->source_root, before.source_root);
  EXPECT_EQ(after->classes, before.classes);
  EXPECT_EQ(after->options, before.options);
  EXPECT_EQ(after->counts.ignored, before.counts.ignored);
  EXPECT_EQ(after->files, before.files);
  EXPECT_EQ(after->shards[1].sha256, before.shards[1].sha256);
  EXPECT_EQ(after->shards[0].index, before.shards[0].index);
  EXPECT_EQ(after->facts.max_width, before.facts.max_width);
  EXPECT_EQ(after->listing_digest, before.listing_digest);
}

TEST(Manifest, TheTextIsCanonical) {
  const std::string json = TwoShards().ToJson();
  EXPECT_THAT(
      json, ::testing::StartsWith("{\n \"classes\": [\n  \"cat\",\n  \"dog\",\n  \"%FF\"\n ],\n"));
  EXPECT_THAT(json, ::testing::EndsWith("}\n"));
  EXPECT_THAT(json, HasSubstr("\"root\": \"/data/caf%E9%0A/in\""));
  EXPECT_THAT(json, HasSubstr("\"note\": \"50 %25 \\\"quoted\\\" \xE2\x82\xAC\""));
  EXPECT_THAT(json, HasSubstr("\n \"schema\": 1,\n \"self\": \""));
  EXPECT_THAT(json, HasSubstr("\"options_digest\": \"00000000000000010000000000000002\""));
  EXPECT_EQ(ResealedManifest(json), json) << "self is the hash of the text without its line";
}

TEST(Manifest, TheTimesOfTheSourceAreNoPartOfTheIdentity) {
  Manifest manifest = TwoShards();
  manifest.source_times = "0123456789abcdef0123456789abcdef";
  const absl::StatusOr<Manifest> read = Manifest::Parse(manifest.ToJson());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->source_times, manifest.source_times);
  EXPECT_EQ(read->Identity(), TwoShards().Identity());
  EXPECT_EQ(Manifest::Parse(TwoShards().ToJson())->source_times, "");
  manifest.source_times = "yesterday";
  EXPECT_THAT(Refusal(manifest.ToJson()).message(), HasSubstr("source.times"));
}

TEST(Manifest, AnEmptyDatasetIsOne) {
  Manifest empty;
  empty.format = "tfrecord";
  EXPECT_TRUE(Manifest::Parse(empty.ToJson()).ok());
}

TEST(Manifest, EveryBitFlipIsRefused) {
  const std::string json = TwoShards().ToJson();
  for (size_t bit = 0; bit < json.size() * 8; ++bit) {
    std::string flipped = json;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const absl::Status refusal = Refusal(flipped);
    ASSERT_TRUE(absl::IsDataLoss(refusal)) << "bit " << bit << ": " << refusal;
  }
}

TEST(Manifest, EveryTruncationIsRefused) {
  const std::string json = TwoShards().ToJson();
  for (size_t size = 0; size < json.size(); ++size) {
    ASSERT_TRUE(absl::IsDataLoss(Refusal(json.substr(0, size)))) << size;
  }
  EXPECT_TRUE(absl::IsDataLoss(Refusal(json + "\n")));
  EXPECT_TRUE(absl::IsDataLoss(Refusal(json + json)));
}

TEST(Manifest, AChangedValueIsTheFaultOfItsOwnHash) {
  const std::string json = TwoShards().ToJson();
  const absl::Status refusal = Refusal(Replaced(json, "10240", "10241"));
  EXPECT_THAT(refusal.message(), HasSubstr("changed after it was written"));
  EXPECT_EQ(DefectOf(refusal), ManifestDefect::kSelfHash);
  EXPECT_EQ(DefectOf(Refusal("{}")), ManifestDefect::kOther);
  EXPECT_EQ(DefectOf(absl::OkStatus()), ManifestDefect::kOther);
}

TEST(Manifest, OtherSpellingsAreRefused) {
  const std::string json = TwoShards().ToJson();
  const std::pair<const char*, const char*> kSpellings[] = {
      {"\"cat\"", "\"c\\u0061t\""},
      {"\"cat\"", " \"cat\""},
      {"%FF", "%ff"},
      {"\"cat\"", "\"%63at\""},
      {"\"records\": 6", "\"records\": 06"},
      {"\"records\": 6", "\"records\": 6.0"},
      {"\"records\": 6", "\"records\": 6e0"},
      {"\"label_base\": 0", "\"label_base\": -0"},
      {"{", "{ "},
      {"\n", "\r\n"},
      {"{", "\xEF\xBB\xBF{"},
      {"\"cat\"", "\"cat\" /* a comment */"}};
  for (const auto& [from, to] : kSpellings) {
    EXPECT_TRUE(absl::IsDataLoss(Refusal(Replaced(json, from, to)))) << to;
    // And a correct hash does not help.
    EXPECT_TRUE(absl::IsDataLoss(Refusal(ResealedManifest(Replaced(json, from, to))))) << to;
  }
  // Keys in a different order.
  const std::string swapped =
      Replaced(json, "\"bytes\": 3456,\n  \"files\": 12,", "\"files\": 12,\n  \"bytes\": 3456,");
  EXPECT_THAT(Refusal(ResealedManifest(swapped)).message(), HasSubstr("canonical"));
}

TEST(Manifest, AnotherVersionIsNoDamage) {
  const std::string json = Replaced(TwoShards().ToJson(), "\"schema\": 1", "\"schema\": 23");
  // It may have other members, before the schema and after it.
  for (const std::string& other :
       {json, Replaced(json, "{", "{\n \"aaa\": [{\"schema\": 1}],"),
        Replaced(json, "\"shards\": ", "\"sharding\": null,\n \"shards\": ")}) {
    const absl::Status refusal = Refusal(ResealedManifest(other));
    EXPECT_TRUE(absl::IsUnimplemented(refusal)) << refusal;
    EXPECT_THAT(refusal.message(), HasSubstr("schema 23, expected 1; another version of pack"));
    EXPECT_TRUE(absl::IsDataLoss(Refusal(other))) << "it was changed after it was written";
  }
}

struct BadText {
  const char* from;
  const char* to;
  const char* message;
};

TEST(Manifest, BadMembersAndNumbersAreNamed) {
  const std::string json = TwoShards().ToJson();
  const BadText kCases[] = {
      {"\"records\": 6", "\"records\": -6", "shards[0].records: a negative number"},
      {"\"records\": 6", "\"records\": 6.5", "shards[0].records: expected an integer"},
      {"\"records\": 6", "\"records\": 18446744073709551616",
       "shards[0].records: expected an integer"},
      {"\"records\": 6", "\"records\": \"6\"", "shards[0].records: a string is not allowed"},
      {"\"records\": 6", "\"records\": null", "shards[0].records: null"},
      {"\"records\": 6", "\"records\": true", "shards[0].records: a boolean"},
      {"\"records\": 6", "\"records\": [6]", "shards[0].records: an array"},
      {"\"records\": 6", "\"records\": {}", "shards[0].records: an object"},
      {"\"records\": 6,", "\"records\": 6, \"records\": 6,",
       "shards[0].records: the member comes twice"},
      {"\"records\": 6,", "", "shards[0].records: the member is missing"},
      {"\"records\": 6,", "\"records\": 6, \"recordz\": 6,", "unknown member recordz"},
      {"\"train\": 6", "\"train\": 6, \"train\": 6", "splits.train: the member comes twice"},
      {"\"max_width\": 4294967295", "\"max_width\": 4294967296",
       "facts.max_width: the number is too large"},
      {"\"cat\"", "7", "classes[0]: a number"},
      {"\"cat\"", "{}", "classes[0]: an object"},
      {"\"cat\"", "\"\xC3\x28\"", "malformed JSON"},
      {"\"xxh3_128\": \"00", "\"xxh3_128\": \"0x", "expected 32"},
      {"{", "[", "an array is not allowed"},
  };
  for (const BadText& bad : kCases) {
    const absl::Status refusal = Refusal(ResealedManifest(Replaced(json, bad.from, bad.to)));
    EXPECT_TRUE(absl::IsDataLoss(refusal)) << bad.to;
    EXPECT_THAT(refusal.message(), HasSubstr(bad.message)) << bad.to;
  }
  for (const char* other : {"", "null", "7", "\"x\"", "{}", "[]", "{\"classes\"", "\0"}) {
    EXPECT_TRUE(absl::IsDataLoss(Refusal(other))) << other;
  }
}

TEST(Manifest, DepthCostsNothing) {
  const std::string json = TwoShards().ToJson();
  for (const size_t depth : {17, 10'000, 1'000'000}) {
    for (const char* open : {"[", "{\"a\":"}) {
      std::string deep;
      for (size_t i = 0; i < depth; ++i) deep += open;
      EXPECT_TRUE(absl::IsDataLoss(Refusal(deep)));
      EXPECT_TRUE(absl::IsDataLoss(Refusal(Replaced(json, "\"cat\"", deep))));
    }
  }
}

struct BadValue {
  const char* what;
  void (*change)(Manifest&);
  const char* message;
  ManifestDefect defect;
};

TEST(Manifest, ValuesThatDoNotFit) {
  constexpr ManifestDefect kOther = ManifestDefect::kOther, kSums = ManifestDefect::kAccounting;
  const BadValue kCases[] = {
      {"seen", [](Manifest& m) { ++m.counts.seen; }, "counts: seen", kSums},
      {"packed", [](Manifest& m) { ++m.counts.packed, ++m.counts.seen; }, "counts: packed 10",
       kSums},
      {"overflow", [](Manifest& m) { m.counts.failed = ~uint64_t{0}; }, "counts: seen", kSums},
      {"records", [](Manifest& m) { ++m.shards[0].records; }, "splits: train has 6", kSums},
      {"moved", [](Manifest& m) { m.shards[0].split = "test"; }, "splits: train has 6", kSums},
      {"unlisted", [](Manifest& m) { m.splits.erase("val"); }, "a split that splits lacks", kSums},
      {"extra split", [](Manifest& m) { m.splits["test"] = 1; }, "splits: test has 1", kSums},
      {"unsorted", [](Manifest& m) { std::swap(m.files[0], m.files[1]); }, "files: not sorted",
       kOther},
      {"twice", [](Manifest& m) { m.files.insert(m.files.begin(), m.files[0]); }, "twice", kOther},
      {"no shard", [](Manifest& m) { m.files.erase(m.files.begin() + 2); }, "is not in files",
       kOther},
      {"no index", [](Manifest& m) { m.files.erase(m.files.begin() + 3); }, "the index of", kOther},
      {"size", [](Manifest& m) { ++m.files[2].bytes; }, "is not in files", kOther},
      {"hash", [](Manifest& m) { ++m.files[3].xxh3_128.low; }, "the index of", kOther},
      {"shard twice", [](Manifest& m) { m.shards.push_back(m.shards[0]); }, "shards: twice",
       kOther},
      {"name", [](Manifest& m) { m.files[1].name = "../up"; }, "not a name", kOther},
      {"itself", [](Manifest& m) { m.files[1].name = "manifest.json"; }, "not a name", kOther},
      {"shard name", [](Manifest& m) { m.shards[0].name = "a/b/c"; }, "not a name", kOther},
      {"index name", [](Manifest& m) { m.shards[0].index = m.files[1]; }, "the index of", kOther},
      {"sha256", [](Manifest& m) { m.shards[0].sha256 = "ab"; }, "sha256", kOther},
      {"format", [](Manifest& m) { m.format = ""; }, "format: empty", kOther},
  };
  for (const BadValue& bad : kCases) {
    Manifest manifest = TwoShards();
    bad.change(manifest);
    const absl::Status refusal = Refusal(manifest.ToJson());
    EXPECT_TRUE(absl::IsDataLoss(refusal)) << bad.what;
    EXPECT_THAT(refusal.message(), HasSubstr(bad.message)) << bad.what;
    EXPECT_EQ(DefectOf(refusal), bad.defect) << bad.what;
  }
}

TEST(Manifest, AShardMayBeAFolder) {
  Manifest m;
  m.format = "lmdb";
  m.counts.seen = m.counts.packed = 1;
  m.splits = {{"train", 1}};
  m.shards = {{"a.lmdb", "train", 8192, 1, {1, 2}, {"a.lmdb.pidx", 99, {3, 4}}, ""}};
  m.files = {{"a.lmdb.pidx", 99, {3, 4}}, {"a.lmdb/data.mdb", 8192, {1, 2}}};
  EXPECT_TRUE(Manifest::Parse(m.ToJson()).ok()) << Refusal(m.ToJson());
  m.files.pop_back();
  EXPECT_FALSE(Manifest::Parse(m.ToJson()).ok());
}

Manifest InPlace(const std::string& location) {
  Manifest m = TwoShards();
  m.origin = "adopted";
  m.shards[0].location = location;
  std::erase_if(m.files, [&](const FileEntry& file) { return file.name == m.shards[0].name; });
  return m;
}

TEST(Manifest, AShardIndexedInPlaceMayLieElsewhere) {
  for (const char* good : {"../wds/train 0.tar", "/data/x.tar", "sub/a/b.tar", "../../\xC3\xA4.tar",
                           "..tar", "a/..b/c"}) {
    const absl::StatusOr<Manifest> manifest = Manifest::Parse(InPlace(good).ToJson());
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_TRUE(manifest->indexed_in_place());
    EXPECT_EQ(manifest->DataFileOf(manifest->shards[0]), good);
    EXPECT_EQ(manifest->DataFileOf(manifest->shards[1]), "val-000000.tar");
  }
  for (const char* bad : {"/", ".", "..", "../..", "./x", "a/./x", "a/../x", "../a/../x", "/../x",
                          "a//x", "x/", "//x"}) {
    EXPECT_THAT(Refusal(InPlace(bad).ToJson()).message(), HasSubstr("may not lie at")) << bad;
  }
  EXPECT_FALSE(IsShardLocation(std::string_view("a\0b", 3)));
  EXPECT_FALSE(IsShardLocation(std::string(5000, 'x')));
  EXPECT_EQ(PathInDataset("OUT", "../x"), "OUT/../x");
  EXPECT_EQ(PathInDataset("OUT", "/x"), "/x");
}

TEST(Manifest, APackedShardLiesInItsFolder) {
  Manifest m = InPlace("../x.tar");
  m.origin = "";
  EXPECT_THAT(Refusal(m.ToJson()).message(), HasSubstr("may not lie at"));
  m.origin = "found";
  EXPECT_THAT(Refusal(m.ToJson()).message(), HasSubstr("origin: expected adopted"));
  m = TwoShards();
  m.origin = "adopted";
  EXPECT_TRUE(Manifest::Parse(m.ToJson()).ok()) << "beside the shards";
  m.shards[0].location = "x.tar";
  EXPECT_THAT(Refusal(m.ToJson()).message(), HasSubstr("lies elsewhere, but is in files"));
}

TEST(Manifest, IdentityIsOfWhatWasPacked) {
  const Manifest base = TwoShards();
  const auto changed = [&](auto change) {
    Manifest m = TwoShards();
    change(m);
    return m.Identity() != base.Identity();
  };
  EXPECT_EQ(IdentityText({1, 2}), "xxh3:00000000000000010000000000000002");
  EXPECT_FALSE(changed([](Manifest& m) { m.source_root = "/elsewhere"; }));
  EXPECT_FALSE(changed([](Manifest& m) { m.tool["version"] = "9"; }));
  EXPECT_FALSE(changed([](Manifest& m) { m.counts.skipped += 1, m.counts.seen += 1; }));
  EXPECT_TRUE(changed([](Manifest& m) { m.format = "tfrecord"; }));
  EXPECT_TRUE(changed([](Manifest& m) { m.layout = "pax"; }));
  EXPECT_TRUE(changed([](Manifest& m) { m.classes = {"catdog", "", "\xFF"}; }));
  EXPECT_TRUE(changed([](Manifest& m) { m.shards[0].name = "x.tar"; }));
  EXPECT_TRUE(changed([](Manifest& m) { ++m.shards[0].bytes; }));
  EXPECT_TRUE(changed([](Manifest& m) { ++m.shards[0].xxh3_128.high; }));
  EXPECT_TRUE(changed([](Manifest& m) { std::swap(m.shards[0], m.shards[1]); }));
}

TEST(Manifest, FileNames) {
  for (const char* good : {"a", "a.tar", "train-000000.tar.pidx", "x.lmdb/data.mdb", "A_b-0.9",
                           "a..b", ".nv-meta/dataset.yaml", ".nv-meta/.info.json"}) {
    EXPECT_TRUE(IsDatasetFileName(good)) << good;
  }
  EXPECT_TRUE(IsDatasetFileName(std::string(128, 'x') + "/" + std::string(128, 'y')));
  EXPECT_FALSE(IsDatasetFileName(std::string(129, 'x')));
  for (const char* bad : {"",
                          ".",
                          "..",
                          "/",
                          "/a",
                          "a/",
                          "a//b",
                          "a/b/c",
                          "../a",
                          "a/..",
                          ".hidden",
                          "a/.hidden",
                          "a b",
                          "a\n",
                          "\xC3\xA4",
                          ".nv-meta",
                          "a/.nv-meta",
                          "a\\b",
                          ".info.json",
                          "a/.info.json",
                          ".nv-meta/.info",
                          ".nv-meta/.info.yaml",
                          ".nv-meta/.info.json/a",
                          ".nv-meta/",
                          ".nv-meta/.nv-meta"}) {
    EXPECT_FALSE(IsDatasetFileName(bad)) << bad;
  }
  EXPECT_FALSE(IsDatasetFileName(std::string_view("a\0b", 3)));
}

class ManifestFile : public ::testing::Test {
 protected:
  std::string dataset_ = ::testing::TempDir();
  std::string path_ = dataset_ + "/manifest.json";
  void SetUp() override { ::unlink(path_.c_str()); }
  void TearDown() override { ::unlink(path_.c_str()); }
};

TEST_F(ManifestFile, Read) {
  EXPECT_TRUE(absl::IsNotFound(Manifest::Read(dataset_).status()));
  const std::string json = TwoShards().ToJson();
  std::ofstream(path_) << json;
  const absl::StatusOr<Manifest> manifest = Manifest::Read(dataset_);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->ToJson(), json);
  std::ofstream(path_) << Replaced(json, "10240", "10241");
  EXPECT_EQ(DefectOf(Manifest::Read(dataset_).status()), ManifestDefect::kSelfHash);
  EXPECT_THAT(Manifest::Read(dataset_).status().message(), HasSubstr("manifest.json: changed"));
}

TEST_F(ManifestFile, AGigabyteIsRefusedUnread) {
  std::ofstream(path_) << "{";
  ASSERT_EQ(::truncate(path_.c_str(), off_t{1} << 30), 0);
  EXPECT_TRUE(absl::IsDataLoss(Manifest::Read(dataset_).status()));
  EXPECT_TRUE(absl::IsDataLoss(Refusal(std::string(kMaxManifestBytes + 1, ' '))));
}

TEST_F(ManifestFile, AFifoDoesNotBlock) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(Manifest::Read(dataset_).ok());
}

// This dataset's text as it was first written: any change to it is a new schema.
TEST(Manifest, Golden) {
  const absl::StatusOr<std::string> golden =
      ReadWholeFile("formats/core/testdata/two-shards.json", 1 << 20);
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(TwoShards().ToJson(), *golden);
  const absl::StatusOr<std::string> in_place =
      ReadWholeFile("formats/core/testdata/adopted.json", 1 << 20);
  const absl::StatusOr<Manifest> parsed = Manifest::Parse(*in_place);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->DataFileOf(parsed->shards[2]), "../wds/val-0002.tar");
}

}  // namespace
}  // namespace shardpack
