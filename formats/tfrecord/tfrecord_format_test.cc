#include "formats/tfrecord/tfrecord_format.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/file.h"
#include "formats/io/staged_file.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "formats/tfrecord/example.pb.h"
#include "formats/tfrecord/record_framing.h"
#include "formats/tfrecord/tfrecord_index.h"
#include "formats/tfrecord/tfrecord_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using testing::OwnedSample;
using testing::ScanBytes;
using testing::ScanResult;
using testing::ScratchFolder;
using testing::WriteShard;

std::string Golden(const std::string& name) {
  absl::StatusOr<std::string> bytes = ReadWholeFile("formats/tfrecord/testdata/" + name, 1 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

TEST(TfrecordWriter, StockProtobufReadsWhatWeWrite) {
  const ScratchFolder scratch;
  const std::vector<OwnedSample> samples =
      testing::GenerateSamples({.count = 50, .extra_fields = {"json", "boxes"}});
  absl::StatusOr<std::string> bytes =
      WriteShard(kTfrecordFormat, {}, samples, scratch.File("shard"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  size_t at = 0;
  for (const OwnedSample& sample : samples) {
    const Bytes rest = AsBytes(*bytes).subspan(at);
    ASSERT_GE(rest.size(), kRecordOverheadBytes);
    const RecordHeader header = DecodeRecordHeader(rest.first<kRecordHeaderBytes>());
    ASSERT_TRUE(header.valid());
    ASSERT_LE(header.length, rest.size() - kRecordOverheadBytes);
    const Bytes payload = rest.subspan(kRecordHeaderBytes, header.length);
    EXPECT_EQ(MaskedCrc32c(payload), LoadLittle<uint32_t>(payload.data() + payload.size()));
    at += header.length + kRecordOverheadBytes;

    tfrecord::Example example;
    ASSERT_TRUE(example.ParseFromString(std::string(AsText(payload))));
    const auto& map = example.features().feature();
    EXPECT_EQ(map.size(), 11u);
    EXPECT_EQ(map.at("image/encoded").bytes_list().value(0), sample.fields[0].second);
    EXPECT_EQ(map.at("image/class/label").int64_list().value(0), sample.label);
    EXPECT_EQ(map.at("image/class/text").bytes_list().value(0), sample.class_name);
    EXPECT_EQ(map.at("image/filename").bytes_list().value(0), sample.source_path);
    EXPECT_EQ(map.at("image/width").int64_list().value(0), sample.image.width);
    EXPECT_EQ(map.at("image/height").int64_list().value(0), sample.image.height);
    EXPECT_EQ(map.at("json").bytes_list().value(0), sample.fields[1].second);
    EXPECT_EQ(map.at("boxes").bytes_list().value(0), sample.fields[2].second);
  }
  EXPECT_EQ(at, bytes->size());
}

TEST(TfrecordWriter, RefusesOptionsThatItDoesNotHave) {
  const ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("shard"));
  ASSERT_TRUE(file.ok());
  const auto refusal = [&](const ShardSpec& spec) {
    return std::string(kTfrecordFormat.create(**file, spec).status().message());
  };
  ShardSpec layout, image_field, fine;
  layout.layout = "slim";
  EXPECT_THAT(refusal(layout), HasSubstr("classification, imagenet, tfds"));
  image_field.image_field = "img";
  EXPECT_THAT(refusal(image_field), HasSubstr("image/encoded"));
  image_field.layout = "tfds";
  EXPECT_THAT(refusal(image_field), HasSubstr("as image always"));
  EXPECT_EQ(refusal(fine), "");
  fine.layout = "classification";
  fine.with_metadata = true;
  EXPECT_EQ(refusal(fine), "");
}

TEST(TfrecordWriter, NothingAfterFinish) {
  const ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("shard"));
  ASSERT_TRUE(file.ok());
  auto writer = CreateTfrecordWriter(**file, {});
  ASSERT_TRUE(writer.ok());
  EXPECT_TRUE((*writer)->Finish().ok());
  const std::vector<OwnedSample> samples = testing::GenerateSamples({.count = 1});
  EXPECT_FALSE((*writer)->Append(samples[0].Borrow().view).ok());
  EXPECT_FALSE((*writer)->Finish().ok());
  EXPECT_EQ((*file)->size(), 0u);
}

TEST(TfrecordFormat, Names) {
  EXPECT_EQ(kTfrecordFormat.shard_name("train", 0, 12), "train-00000-of-00012.tfrecord");
  EXPECT_EQ(kTfrecordFormat.shard_name("val", 123456, 1234567), "val-123456-of-1234567.tfrecord");
  EXPECT_EQ(ShardName(kTfrecordFormat, "", "train", 0, 12), "train-00000-of-00012.tfrecord");
  EXPECT_EQ(ShardName(kTfrecordFormat, "imagenet", "train", 0, 1024), "train-00000-of-01024");
  EXPECT_EQ(ShardName(kTfrecordFormat, "tfds", "train", 3, 12),
            "dataset-train.tfrecord-00003-of-00012");
  EXPECT_EQ(ShardName(kTfrecordFormat, "tfds", "a.b", 3, 12), "");
  EXPECT_NE(FindLayout(kTfrecordFormat, ""), nullptr);
  EXPECT_EQ(FindLayout(kTfrecordFormat, "")->name, "classification");
}

TEST(TfrecordFormat, Sniffs) {
  const auto sniff = [](std::string_view head, std::string_view name) {
    return kTfrecordFormat.sniff(AsBytes(head), name);
  };
  const std::string bytes = Golden("tensorflow.tfrecord");
  EXPECT_TRUE(sniff(bytes.substr(0, 1024), "train-00000-of-01024"));
  EXPECT_TRUE(sniff(bytes.substr(0, 12), ""));
  EXPECT_FALSE(sniff(bytes.substr(0, 11), ""));
  EXPECT_FALSE(sniff(bytes.substr(1), ""));
  EXPECT_FALSE(sniff("", ""));
  EXPECT_TRUE(sniff("", "a.tfrecord"));
  EXPECT_TRUE(sniff("", "a.tfrecords"));
  EXPECT_TRUE(sniff("", "mnist-train.tfrecord-00000-of-00001"));
  EXPECT_FALSE(sniff("0 106\n", "a.tfrecord.idx"));
  EXPECT_FALSE(sniff("SPKPIDX1", "a.tfrecord.pidx"));
}

// Two samples with every byte fixed here.
std::vector<OwnedSample> GoldenSamples() {
  OwnedSample labelled;
  labelled.key = "cat/1";
  labelled.source_path = "cat/1.JPEG";
  labelled.class_name = "cat";
  labelled.label = 300;
  labelled.image = {.width = 500,
                    .height = 375,
                    .format = ImageFormat::kJpeg,
                    .color_space = ColorSpace::kRgb,
                    .channels = 3,
                    .bits_per_channel = 8};
  labelled.fields = {{"image", std::string("\xff\xd8", 2) + std::string(200, 'i') + "\xff\xd9"},
                     {"json", "{}"},
                     {"boxes", std::string("\0\1", 2)}};
  OwnedSample plain = labelled;
  plain.source_path = "n\xe9on/2.png";  // a path need not be UTF-8
  plain.class_name = "";
  plain.label = kNoLabel;
  plain.image.format = ImageFormat::kPng;
  plain.image.color_space = ColorSpace::kGrayAlpha;
  return {labelled, plain};
}

// The bytes of a record are fixed: changing them changes every dataset's hash. TensorFlow 2.21 can
// parse the file.
TEST(TfrecordFormat, BytesAreThoseOfTheGoldenShard) {
  const ScratchFolder scratch;
  absl::StatusOr<std::string> bytes =
      WriteShard(kTfrecordFormat, {}, GoldenSamples(), scratch.File("shard"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  if (*bytes == Golden("shardpack.tfrecord")) return;
  const std::string kept =
      std::string(std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) + "/shardpack.tfrecord";
  std::ofstream(kept, std::ios::binary) << *bytes;
  FAIL() << "the shard differs from testdata/shardpack.tfrecord; it was written to " << kept;
}

// The payloads of a file, as messages.
std::vector<tfrecord::Example> Examples(std::string_view bytes) {
  std::vector<tfrecord::Example> examples;
  for (size_t at = 0; at < bytes.size();) {
    const Bytes rest = AsBytes(bytes.substr(at));
    const RecordHeader header = DecodeRecordHeader(rest.first<kRecordHeaderBytes>());
    tfrecord::Example example;
    EXPECT_TRUE(header.valid() && example.ParseFromString(std::string(
                                      AsText(rest.subspan(kRecordHeaderBytes, header.length)))));
    examples.push_back(std::move(example));
    at += header.length + kRecordOverheadBytes;
  }
  return examples;
}

// TensorFlow writes map entries in its own order, so the messages are compared by name.
void ExpectSameExamples(std::string_view ours, std::string_view theirs) {
  const std::vector<tfrecord::Example> a = Examples(ours), b = Examples(theirs);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(a[i].features().feature_size(), b[i].features().feature_size());
    for (const auto& [name, feature] : b[i].features().feature()) {
      const auto found = a[i].features().feature().find(name);
      ASSERT_NE(found, a[i].features().feature().end()) << name;
      EXPECT_EQ(found->second.SerializeAsString(), feature.SerializeAsString()) << name;
    }
  }
}

std::vector<OwnedSample> TwoImages() {
  std::vector<OwnedSample> samples;
  for (const char* name : {"baseline.jpg", "gray.jpg"}) {
    OwnedSample sample;
    sample.key = name;
    sample.source_path = std::string("cat/") + name;
    sample.label = static_cast<int64_t>(samples.size());
    sample.class_name = samples.empty() ? "cat" : "dog";
    sample.image = {.width = samples.empty() ? 40u : 33u,
                    .height = samples.empty() ? 24u : 17u,
                    .format = ImageFormat::kJpeg,
                    .color_space = samples.empty() ? ColorSpace::kRgb : ColorSpace::kGray,
                    .channels = static_cast<uint8_t>(samples.empty() ? 3 : 1),
                    .bits_per_channel = 8};
    sample.fields = {{"image", Golden(std::string("layouts/") + name)}};
    samples.push_back(std::move(sample));
  }
  return samples;
}

// Written with TensorFlow and with TensorFlow Datasets; see make_testdata.py.
TEST(TfrecordFormat, LayoutsAreThoseOfTheirOwnWriters) {
  const ScratchFolder scratch;
  for (const auto& [layout, name] : {std::pair("imagenet", "train-00000-of-00001"),
                                     std::pair("tfds", "dataset-train.tfrecord-00000-of-00001")}) {
    SCOPED_TRACE(layout);
    const std::string golden = Golden("layouts/" + std::string(layout) + "/" + name);
    EXPECT_EQ(ShardName(kTfrecordFormat, layout, "train", 0, 1), name);
    absl::StatusOr<std::string> bytes =
        WriteShard(kTfrecordFormat, {.layout = layout}, TwoImages(), scratch.File(layout));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ExpectSameExamples(*bytes, golden);
    // Labels start at 0, whether the layout comes from a manifest or from the records.
    const int64_t base = FindLayout(kTfrecordFormat, layout)->label_base;
    const ScanResult known = ScanBytes(kTfrecordFormat, golden, true, base);
    const ScanResult unknown = ScanBytes(kTfrecordFormat, golden);
    ASSERT_EQ(known.records.size(), 2u) << known.Complaints();
    EXPECT_EQ(known.Complaints(), "");
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(known.records[static_cast<size_t>(i)].label, i);
      EXPECT_EQ(unknown.records[static_cast<size_t>(i)].label, i);
    }
  }
  EXPECT_EQ(FindLayout(kTfrecordFormat, "imagenet")->label_base, 1);
  EXPECT_EQ(FindLayout(kTfrecordFormat, "tfds")->label_base, 0);
}

// vahidk's index of vahidk's file.
TEST(TfrecordIndex, EqualsTheForeignOne) {
  const std::string bytes = Golden("vahidk.tfrecord");
  const ScanResult scan = ScanBytes(kTfrecordFormat, bytes);
  absl::StatusOr<ShardIndex> index =
      testing::IndexOf(scan, testing::GenerateSamples({.count = 3}), bytes.size());
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(DaliIndexText(*index), Golden("vahidk.tfindex"));

  Manifest manifest;
  manifest.shards.resize(1);
  manifest.shards[0].name = "train-00000-of-00001.tfrecord";
  ASSERT_EQ(kTfrecordFormat.sidecars.size(), 1u);
  EXPECT_EQ(kTfrecordFormat.sidecars[0].name, "dali");
  const auto files = kTfrecordFormat.sidecars[0].make(
      {.root = "", .manifest = manifest, .indexes = std::span(&*index, 1)});
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ((*files)[0].name, "train-00000-of-00001.tfrecord.idx");
  EXPECT_EQ((*files)[0].bytes, Golden("vahidk.tfindex"));
  EXPECT_FALSE(MakeTfrecordDaliIndexes({.root = "", .manifest = manifest, .indexes = {}}).ok());
}

}  // namespace
}  // namespace shardpack
