#include "formats/webdataset/webdataset_writer.h"

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/format.h"
#include "formats/io/crypto_hash.h"
#include "formats/io/file.h"
#include "formats/tar/tar_header.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "formats/webdataset/webdataset_format.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace shardpack {
namespace {

using testing::BorrowedSample;
using testing::FoundRecord;
using testing::OwnedSample;
using testing::ScanBytes;
using testing::ScanResult;
using testing::ScratchFolder;
using testing::ShapeOf;
using testing::WriteShard;

OwnedSample Sample(std::string key, std::string image, int64_t label = kNoLabel) {
  OwnedSample sample;
  sample.key = std::move(key);
  sample.source_path = sample.key + ".JPEG";
  sample.label = label;
  sample.class_name = label < 0 ? "" : "a class";
  sample.image = {.width = 3, .height = 2, .format = ImageFormat::kJpeg};
  sample.fields = {{std::string(kImageField), std::move(image)}};
  return sample;
}

absl::StatusOr<std::string> Write(const std::vector<OwnedSample>& samples, ShardSpec spec = {}) {
  ScratchFolder scratch;
  return WriteShard(kWebDatasetFormat, spec, samples, scratch.File("shard.tar"));
}

std::string Md5(std::string_view bytes) {
  Md5Stream stream;
  stream.Update(AsBytes(bytes));
  return stream.FinishHex();
}

// Built by webdataset's rules; webdataset, GNU tar and bsdtar read it back.
TEST(WebdatasetWriter, WritesTheGoldenVector) {
  absl::StatusOr<std::string> bytes = Write({Sample("a/b", "xx", 3), Sample("a/c", "", 4)});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->size(), 10240u);
  EXPECT_EQ(Md5(*bytes), "f09b0fb155ac719295ed6a1972c89df7");
}

TEST(WebdatasetWriter, AnEmptyShardIsOneRecordOfZeros) {
  absl::StatusOr<std::string> bytes = Write({});
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, std::string(10240, '\0'));
}

TEST(WebdatasetWriter, MembersAreSortedByExtension) {
  OwnedSample sample = Sample("k", "image", 7);
  sample.fields.emplace_back("txt", "caption");
  sample.fields.emplace_back("json", "{}");
  sample.fields.emplace_back("mask.png", "m");
  sample.fields.emplace_back("-", "dash");
  absl::StatusOr<std::string> bytes = Write({sample});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  std::vector<std::string> names;
  for (size_t at = 0; (*bytes)[at] != '\0'; at += 1024) names.emplace_back(&(*bytes)[at]);
  EXPECT_EQ(names,
            (std::vector<std::string>{"k.-", "k.cls", "k.jpg", "k.json", "k.mask.png", "k.txt"}));
}

TEST(WebdatasetWriter, MetadataHasTheSameKeysInEverySample) {
  OwnedSample labelled = Sample("a", "x", 12), bare = Sample("b", "x");
  labelled.source_path = "caf\xc3\xa9/50%\xff\"\\\n\x1b.jpg";
  absl::StatusOr<std::string> bytes = Write({labelled, bare}, {.with_metadata = true});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const ScanResult scan = ScanBytes(kWebDatasetFormat, *bytes);
  ASSERT_EQ(scan.records.size(), 2u);
  const auto text = [&](const FoundRecord& record) {
    return bytes->substr(record.Find("json")->offset, record.Find("json")->length);
  };
  EXPECT_EQ(text(scan.records[1]),
            R"({"class":"","filename":"b.JPEG","height":2,"label":-1,"width":3})");
  const nlohmann::json first = nlohmann::json::parse(text(scan.records[0]));
  EXPECT_EQ(first["class"], "a class");
  EXPECT_EQ(first["label"], 12);
  EXPECT_EQ(first["filename"], "caf\xc3\xa9/50%\xef\xbf\xbd\"\\\n\x1b.jpg");
  EXPECT_NE(text(scan.records[0]).find("caf\xc3\xa9/50%\xef\xbf\xbd\\\"\\\\\\n\\u001b.jpg"),
            std::string::npos);
  EXPECT_EQ(first.dump(), text(scan.records[0]));  // sorted, compact
}

TEST(WebdatasetWriter, RefusesWhatReadersWouldNotFindAgain) {
  struct Case {
    std::string key, expected;
  };
  const Case cases[] = {
      {"", "empty"},
      {"a/", "slash"},
      {"a/b.v2", "dot"},
      {"/a", "absolute"},
      {"../a", ".."},
      {"a/../b", ".."},
      {std::string("a\0b", 3), "NUL"},
      {"__x__/a", "__x__"},
      {std::string(97, 'k'), "100 bytes"},
      {std::string(300, 'k'), "limit"},
      {"good", "same key"},
  };
  ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("shard.tar"));
  const ShardSpec spec;
  auto writer = WebdatasetWriter::Create(**file, spec);
  ASSERT_TRUE(writer.ok());
  const OwnedSample good = Sample("good", "x", 1);
  ASSERT_TRUE((*writer)->Append(good.Borrow().view).ok());
  const uint64_t size = (*file)->size();
  for (const Case& c : cases) {
    const OwnedSample sample = Sample(c.key, "x", 1);
    const absl::Status status = (*writer)->Append(sample.Borrow().view);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.key << ": " << status;
    const std::string message(status.message());
    EXPECT_NE(message.find(c.expected), std::string::npos) << message;
    EXPECT_NE(message.find("key \"" + EscapeForTerminal(c.key)), std::string::npos) << message;
    EXPECT_EQ((*file)->size(), size);
  }
}

TEST(WebdatasetWriter, RefusesFieldsThatReadersWouldMistake) {
  struct Case {
    std::string field, bytes, expected;
    int64_t label;
    bool with_metadata;
  };
  const Case cases[] = {
      {"jpg", "x", "two fields", 1, false},
      {"cls", "x", "two fields", 1, false},
      {"cls", " 12\n", "label", kNoLabel, false},
      {"json", "{}", "two fields", 1, true},
      {"gif", "x", "image", 1, false},
      {"TXT", "x", "lower-case", 1, false},
      {"a/b", "x", "lower-case", 1, false},
      {"", "x", "lower-case", 1, false},
      {"image", "x", "image", 1, false},
  };
  for (const Case& c : cases) {
    OwnedSample sample = Sample("k", "x", c.label);
    sample.fields.emplace_back(c.field, c.bytes);
    const absl::Status status = Write({sample}, {.with_metadata = c.with_metadata}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.field << ": " << status;
    EXPECT_NE(std::string(status.message()).find(c.expected), std::string::npos) << status;
  }
  OwnedSample text_label = Sample("k", "x");
  text_label.fields.emplace_back("cls", "cat dog");
  EXPECT_TRUE(Write({text_label}).ok());
}

TEST(WebdatasetWriter, ImageFieldNamesTheImage) {
  for (const std::string_view name : {"png", "image", "img", "photo"}) {
    OwnedSample sample = Sample("k", "\xff\xd8\xff\xe0 and so on", 1);
    sample.fields.emplace_back("mask.png", "m");
    absl::StatusOr<std::string> bytes = Write({sample}, {.image_field = name});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_NE(bytes->find("k." + std::string(name)), std::string::npos);
    const ScanResult scan = ScanBytes(kWebDatasetFormat, *bytes);
    ASSERT_EQ(scan.records.size(), 1u);
    EXPECT_EQ(scan.records[0].fields[0].name, kImageField);
    EXPECT_EQ(scan.records[0].fields[0].length, sample.fields[0].second.size());
  }
  for (const std::string_view name : {"cls", "json", "a.b", "JPG", "a/b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Write({}, {.image_field = name}).status())) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Write({}, {.layout = "gnu"}).status()));
}

TEST(WebdatasetWriter, PaxRecordsStandOnlyBeforeNamesThatDoNotFit) {
  const OwnedSample fits = Sample("d/fits", "x"), longer = Sample(std::string(140, 'k'), "yy", 5);
  EXPECT_TRUE(absl::IsInvalidArgument(Write({fits, longer}).status()));
  absl::StatusOr<std::string> bytes = Write({fits, longer}, {.layout = kPaxLayout});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ((*bytes)[156], '0');
  EXPECT_EQ((*bytes)[1024 + 156], 'x');
  EXPECT_EQ(bytes->substr(1024 + 512, 154), "154 path=" + longer.key + ".cls\n");
  const ScanResult scan = ScanBytes(kWebDatasetFormat, *bytes);
  ASSERT_EQ(scan.records.size(), 2u);
  EXPECT_EQ(scan.records[1].key, longer.key);
  EXPECT_EQ(scan.records[1].label, 5);
  EXPECT_EQ(scan.records[1].offset, 1024u);
  EXPECT_EQ(scan.records[1].length, 2 * 2048u);
}

TEST(WebdatasetWriter, RecordBoundIsExactForUstar) {
  const ShardSpec spec{.layout = kUstarLayout, .image_field = "jpg"};
  for (const size_t bytes : {0, 1, 511, 512, 513, 40000}) {
    OwnedSample sample = Sample("cat/1", std::string(bytes, 'x'), bytes % 2 == 0 ? kNoLabel : 3);
    sample.fields.emplace_back("txt", "caption");
    const ScanResult scan = ScanBytes(kWebDatasetFormat, *Write({sample}, spec));
    ASSERT_EQ(scan.records.size(), 1u);
    std::vector<uint64_t> field_bytes;
    EXPECT_EQ(kWebDatasetFormat.record_bound(spec, ShapeOf(sample, field_bytes)),
              scan.records[0].length);
  }
}

TEST(WebdatasetWriter, RecordBoundHoldsForTheWorstMetadata) {
  OwnedSample sample = Sample("k", "x", std::numeric_limits<int64_t>::max());
  sample.source_path = std::string(900, '\x1b');
  sample.class_name = std::string(300, '\xff');
  sample.image.width = sample.image.height = 0xffffffff;
  const ShardSpec spec{.with_metadata = true};
  const ScanResult scan = ScanBytes(kWebDatasetFormat, *Write({sample}, spec));
  std::vector<uint64_t> field_bytes;
  ASSERT_EQ(scan.records.size(), 1u);
  EXPECT_GE(kWebDatasetFormat.record_bound(spec, ShapeOf(sample, field_bytes)),
            scan.records[0].length);
}

TEST(WebdatasetWriter, RecordBoundHoldsForPax) {
  const ShardSpec spec{.layout = kPaxLayout};
  for (size_t key_bytes = 80; key_bytes <= 120; ++key_bytes) {
    OwnedSample sample = Sample(std::string(key_bytes, 'k'), "x", 1);
    sample.fields.emplace_back("a.rather.long.name", "caption");
    const ScanResult scan = ScanBytes(kWebDatasetFormat, *Write({sample}, spec));
    std::vector<uint64_t> field_bytes;
    ASSERT_EQ(scan.records.size(), 1u);
    EXPECT_GE(kWebDatasetFormat.record_bound(spec, ShapeOf(sample, field_bytes)),
              scan.records[0].length);
  }
}

TEST(WebdatasetWriter, TheEndComesOnce) {
  ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("shard.tar"));
  const ShardSpec spec;
  auto writer = WebdatasetWriter::Create(**file, spec);
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->Finish()));
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->Append(Sample("a", "x").Borrow().view)));
  EXPECT_EQ((*file)->size(), kTarBlockingBytes);
}

TEST(WebdatasetFormat, SniffsTarFiles) {
  const auto sniff = [](std::string_view head, std::string_view name) {
    return kWebDatasetFormat.sniff(AsBytes(head), name);
  };
  const std::string shard = *Write({Sample("a", "x")});
  EXPECT_TRUE(sniff(std::string_view(shard).substr(0, 1024), ""));
  EXPECT_TRUE(sniff("", "train-000000.tar"));
  EXPECT_FALSE(sniff("", "train.tfrecord"));
  EXPECT_FALSE(sniff(std::string(1024, 'x'), "x"));
  EXPECT_FALSE(sniff(std::string(1024, '\0'), "x"));
  EXPECT_EQ(kWebDatasetFormat.shard_name("val", 12, 40), "val-000012.tar");
}

}  // namespace
}  // namespace shardpack
