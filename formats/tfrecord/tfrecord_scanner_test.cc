#include "formats/tfrecord/tfrecord_scanner.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/testing/test_shard.h"
#include "formats/tfrecord/example.pb.h"
#include "formats/tfrecord/record_framing.h"
#include "formats/tfrecord/tfrecord_format.h"
#include "formats/tfrecord/tfrecord_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using testing::FoundField;
using testing::FoundRecord;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScanBytes;
using testing::ScanResult;

std::string Golden(const std::string& name) {
  absl::StatusOr<std::string> bytes = ReadWholeFile("formats/tfrecord/testdata/" + name, 1 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

// A record around these bytes whose header has the length `length`.
std::string FrameAs(uint64_t length, std::string_view payload) {
  const auto header = EncodeRecordHeader(length);
  const auto footer = EncodeRecordFooter(Crc32c(AsBytes(payload)));
  std::string record(AsText(header));
  record.append(payload);
  return record.append(AsText(footer));
}
std::string Frame(std::string_view payload) { return FrameAs(payload.size(), payload); }

class ExampleBuilder {
 public:
  ExampleBuilder& Bytes(const std::string& name, const std::string& value) {
    map()[name].mutable_bytes_list()->add_value(value);
    return *this;
  }
  ExampleBuilder& Integer(const std::string& name, int64_t value) {
    map()[name].mutable_int64_list()->add_value(value);
    return *this;
  }
  ExampleBuilder& Nothing(const std::string& name) {
    map()[name];
    return *this;
  }
  std::string Record() const { return Frame(example_.SerializeAsString()); }

 private:
  google::protobuf::Map<std::string, tfrecord::Feature>& map() {
    return *example_.mutable_features()->mutable_feature();
  }
  tfrecord::Example example_;
};

ExampleBuilder Sound() {
  return ExampleBuilder().Bytes("image/encoded", "\xff\xd8 image").Integer("image/class/label", 1);
}

ScanResult Scan(std::string_view bytes, bool strict = true) {
  ScanResult result = ScanBytes(kTfrecordFormat, bytes, strict);
  EXPECT_TRUE(result.status.ok()) << result.status;
  for (const FoundRecord& record : result.records) {
    for (const FoundField& field : record.fields) {
      EXPECT_EQ(field.hash, Xxh3_64(AsBytes(bytes.substr(field.offset, field.length))));
    }
  }
  return result;
}

std::vector<FindingId> Ids(const ScanResult& result) {
  std::vector<FindingId> ids;
  for (const Finding& finding : result.findings.findings()) ids.push_back(finding.id);
  return ids;
}

std::string_view Field(std::string_view bytes, const FoundRecord& record, std::string_view name) {
  const FoundField* field = record.Find(name);
  return field == nullptr ? "(none)" : bytes.substr(field->offset, field->length);
}

std::string Repeat(std::string_view text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated.append(text);
  return repeated;
}

// The images that testdata/make_testdata.py writes.
const std::string kImages[] = {
    "\xff\xd8"
    "first\xff\xd9",
    Repeat("\xff\xd8second, longer\xff\xd9", 20), "\x89PNG third"};
constexpr int64_t kLabels[] = {0, 1, 300};
const std::string kNames[] = {"cat/1.jpg", "dog/2.jpg", "n\xc3\xa9on/3.png"};

TEST(TfrecordScanner, ReadsTensorFlow) {
  const std::string bytes = Golden("tensorflow.tfrecord");
  const ScanResult result = Scan(bytes);
  EXPECT_EQ(result.Complaints(), "");
  ASSERT_EQ(result.records.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const FoundRecord& record = result.records[i];
    EXPECT_EQ(record.key, "");
    EXPECT_EQ(record.source_path, kNames[i]);
    EXPECT_EQ(record.label, kLabels[i]);
    ASSERT_EQ(record.fields.size(), 2u);  // neither numbers nor metadata
    EXPECT_EQ(record.fields[0].name, kImageField);
    EXPECT_EQ(Field(bytes, record, kImageField), kImages[i]);
    EXPECT_EQ(Field(bytes, record, "caption"), "a caption of " + kNames[i]);
  }
  EXPECT_EQ(result.records[0].offset, 0u);
  EXPECT_EQ(result.records[2].offset + result.records[2].length, bytes.size());
}

TEST(TfrecordScanner, ReadsTfds) {
  const std::string bytes = Golden("tfds.tfrecord");
  const ScanResult result = Scan(bytes);
  EXPECT_EQ(result.Complaints(), "");
  ASSERT_EQ(result.records.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.records[i].source_path, "x.png");
    EXPECT_EQ(result.records[i].label, kLabels[i]);
    ASSERT_EQ(result.records[i].fields.size(), 1u);
    EXPECT_EQ(Field(bytes, result.records[i], kImageField), kImages[i]);
  }
}

TEST(TfrecordScanner, ReadsVahidk) {
  const std::string bytes = Golden("vahidk.tfrecord");
  const ScanResult result = Scan(bytes);
  EXPECT_EQ(result.Complaints(), "");
  ASSERT_EQ(result.records.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.records[i].label, kLabels[i]);
    EXPECT_EQ(Field(bytes, result.records[i], kImageField), kImages[i]);
    EXPECT_EQ(Field(bytes, result.records[i], "name"), kNames[i]);
  }
}

TEST(TfrecordScanner, CompressedFilesAreOneFinding) {
  for (const auto& [name, how] : {std::pair("tensorflow_gzip.tfrecord", "gzip"),
                                  std::pair("tensorflow_zlib.tfrecord", "zlib")}) {
    const ScanResult result = Scan(Golden(name));
    EXPECT_THAT(Ids(result), ElementsAre(FindingId::kTfrecordCompressed));
    EXPECT_EQ(result.findings.findings()[0].detail, how);
    EXPECT_THAT(result.records, IsEmpty());
  }
}

TEST(TfrecordScanner, SequenceExampleIsAFinding) {
  const ScanResult result = Scan(Golden("sequence.tfrecord"));
  EXPECT_THAT(Ids(result), ElementsAre(FindingId::kTfrecordSequenceExample));
  EXPECT_THAT(result.records, IsEmpty());
}

TEST(TfrecordScanner, EveryBitFlipIsAFinding) {
  const std::string bytes = Golden("tfds.tfrecord");
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    for (const bool strict : {true, false}) {
      const ScanResult result = Scan(flipped, strict);
      ASSERT_GE(result.findings.errors(), 1u) << "bit " << bit;
      // One record is damaged; the others are still found.
      ASSERT_EQ(result.records.size(), 2u) << "bit " << bit;
    }
  }
}

TEST(TfrecordScanner, EveryTruncationIsAFindingUnlessAtARecordsEnd) {
  const std::string bytes = Golden("tfds.tfrecord");
  std::vector<uint64_t> ends = {0};
  for (const FoundRecord& record : Scan(bytes).records)
    ends.push_back(record.offset + record.length);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const ScanResult result = Scan(bytes.substr(0, size));
    const auto whole = std::upper_bound(ends.begin(), ends.end(), size) - ends.begin() - 1;
    ASSERT_EQ(result.records.size(), static_cast<size_t>(whole)) << size;
    if (ends[whole] == size) {
      ASSERT_EQ(result.Complaints(), "") << size;
    } else {
      ASSERT_THAT(Ids(result), ElementsAre(FindingId::kContainerTruncated)) << size;
      EXPECT_EQ(result.findings.findings()[0].offset, ends[whole]);
      EXPECT_EQ(result.findings.findings()[0].length, size - ends[whole]);
      EXPECT_EQ(result.findings.findings()[0].record, static_cast<uint64_t>(whole));
    }
  }
}

TEST(TfrecordScanner, ImpossibleLengthsAllocateNothing) {
  const std::string good = Sound().Record();
  for (const uint64_t length :
       {uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 15, uint64_t{1} << 40, uint64_t{1000}}) {
    const std::string bytes = good + FrameAs(length, "short") + good;
    const ScanResult result = Scan(bytes);
    EXPECT_THAT(Ids(result), ElementsAre(FindingId::kContainerTruncated)) << length;
    EXPECT_EQ(result.findings.findings()[0].offset, good.size());
    EXPECT_EQ(result.findings.findings()[0].length, 16u + 5u);
    EXPECT_EQ(result.records.size(), 2u);
  }
}

TEST(TfrecordScanner, GoesOnAfterADamagedLength) {
  const std::string good = Sound().Record();
  std::string damaged = ExampleBuilder().Bytes("image", std::string(200000, '\0')).Record();
  damaged[1] = static_cast<char>(damaged[1] ^ 1);
  const std::string bytes = good + damaged + good + good;
  const ScanResult result = Scan(bytes);
  ASSERT_THAT(Ids(result), ElementsAre(FindingId::kTfrecordLengthCrc));
  const Finding& finding = result.findings.findings()[0];
  EXPECT_EQ(finding.record, 1u);
  EXPECT_EQ(finding.offset, good.size());
  EXPECT_EQ(finding.length, damaged.size());
  EXPECT_NE(finding.expected, finding.actual);
  EXPECT_THAT(finding.detail, HasSubstr("offset " + std::to_string(good.size() + damaged.size())));
  ASSERT_EQ(result.records.size(), 3u);
  EXPECT_EQ(result.records[1].offset, good.size() + damaged.size());
}

// Puts the next header at every distance around the step size of the search.
TEST(TfrecordScanner, TheSearchMissesNoOffset) {
  const std::string good = Sound().Record();
  for (size_t junk = (64 << 10) - 40; junk < (64 << 10) + 40; ++junk) {
    const ScanResult result = Scan(std::string(junk, '\x01') + good);
    ASSERT_EQ(result.records.size(), 1u) << junk;
    ASSERT_EQ(result.records[0].offset, junk);
  }
}

TEST(TfrecordScanner, JunkTails) {
  const std::string good = Sound().Record();
  for (const size_t size : {1, 4, 11, 12, 15, 16, 17, 4096, 100000}) {
    for (const char fill : {'\0', 'x', '\xff'}) {
      const ScanResult result = Scan(good + std::string(size, fill));
      EXPECT_THAT(Ids(result), ElementsAre(size < 12 ? FindingId::kContainerTruncated
                                                     : FindingId::kTfrecordLengthCrc));
      EXPECT_EQ(result.findings.findings()[0].offset, good.size());
      EXPECT_EQ(result.findings.findings()[0].length, size);
      EXPECT_EQ(result.records.size(), 1u);
    }
  }
}

TEST(TfrecordScanner, DamagedDataIsNotHandedOn) {
  const std::string good = Sound().Record();
  std::string damaged = good;
  damaged[20] = static_cast<char>(damaged[20] ^ 4);
  const ScanResult result = Scan(good + damaged + good);
  ASSERT_THAT(Ids(result), ElementsAre(FindingId::kTfrecordDataCrc));
  EXPECT_EQ(result.findings.findings()[0].record, 1u);
  EXPECT_EQ(result.findings.findings()[0].offset, good.size());
  EXPECT_EQ(result.findings.findings()[0].length, good.size());
  ASSERT_EQ(result.records.size(), 2u);
  EXPECT_EQ(result.records[1].offset, 2 * good.size());
}

TEST(TfrecordScanner, WhatIsNoExampleIsAFinding) {
  const std::string good = Sound().Record();
  const ScanResult result = Scan(good + Frame("hello") + good, /*strict=*/false);
  ASSERT_THAT(Ids(result), ElementsAre(FindingId::kTfrecordExample));
  EXPECT_THAT(result.findings.findings()[0].detail, HasSubstr("of the Example"));
  EXPECT_EQ(result.records.size(), 2u);
}

TEST(TfrecordScanner, TinyFiles) {
  EXPECT_EQ(Scan("").Complaints(), "");
  for (size_t size = 1; size < 16; ++size) {
    EXPECT_EQ(Scan(std::string(size, '\0')).findings.errors(), 1u) << size;
  }
  // A record without payload is an Example without features.
  const ScanResult empty = Scan(Frame(""));
  EXPECT_THAT(Ids(empty), ElementsAre(FindingId::kTfrecordFeature));
  ASSERT_EQ(empty.records.size(), 1u);
  EXPECT_THAT(empty.records[0].fields, IsEmpty());
  EXPECT_EQ(Scan(Frame(""), /*strict=*/false).Complaints(), "");
}

// Some readers accept each of these without complaint and others do not: findings of strict mode
// only.
void ExpectWarning(const std::string& bytes, FindingId id, std::string_view field) {
  const ScanResult result = Scan(bytes);
  ASSERT_THAT(Ids(result), ElementsAre(id)) << result.Complaints();
  EXPECT_EQ(result.findings.findings()[0].field, field);
  EXPECT_EQ(result.findings.errors(), 0u);
  EXPECT_EQ(Scan(bytes, /*strict=*/false).Complaints(), "");
}

TEST(TfrecordScanner, MissingAndWrongFeatures) {
  ExpectWarning(ExampleBuilder().Integer("label", 1).Record(), FindingId::kTfrecordFeature,
                "image/encoded");
  ExpectWarning(Sound().Bytes("image/encoded", "another").Record(), FindingId::kTfrecordFeature,
                "image/encoded");
  ExpectWarning(ExampleBuilder().Bytes("jpg", "1").Bytes("jpg", "2").Record(),
                FindingId::kTfrecordFeature, "jpg");
  ExpectWarning(Sound().Bytes("image/height", "3").Record(), FindingId::kTfrecordFeature,
                "image/height");
  ExpectWarning(Sound().Integer("image/width", 3).Integer("image/width", 3).Record(),
                FindingId::kTfrecordFeature, "image/width");
  ExpectWarning(Sound().Nothing("x").Record(), FindingId::kTfrecordFeature, "x");
  ExpectWarning(ExampleBuilder().Bytes("jpg", "1").Integer("cls", 1).Integer("cls", 2).Record(),
                FindingId::kTfrecordFeature, "cls");
}

TEST(TfrecordScanner, LabelsCountFromTheBaseThatIsGiven) {
  const auto label = [](int64_t stored, int64_t base) {
    const ScanResult result =
        ScanBytes(kTfrecordFormat,
                  ExampleBuilder().Bytes("jpg", "x").Integer("image/class/label", stored).Record(),
                  /*strict=*/true, base);
    return result.records.empty() ? -99 : result.records[0].label;
  };
  EXPECT_EQ(label(300, 0), 300);
  EXPECT_EQ(label(300, 1), 299);
  EXPECT_EQ(label(0, 1), -1);
  // Manifest and shard can be any bytes.
  const auto least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(label(least, 1), least);
  EXPECT_EQ(label(1, least), 1);
}

TEST(TfrecordScanner, NamesThatAreNotUtf8) {
  // Protobuf does not write such a name, so a name of equal length is replaced.
  std::string payload = Sound().Bytes("a?", "v").Record().substr(kRecordHeaderBytes);
  payload.resize(payload.size() - kRecordFooterBytes);
  payload[payload.find('?')] = '\xff';
  ExpectWarning(Frame(payload), FindingId::kTfrecordFeatureName, "a\xff");
}

TEST(TfrecordScanner, TiffIsNotReadByTensorFlow) {
  for (const std::string& magic : {std::string("II*\0", 4), std::string("MM\0*", 4)}) {
    ExpectWarning(ExampleBuilder().Bytes("image/encoded", magic + "rest").Record(),
                  FindingId::kTfrecordImageFormat, "image/encoded");
  }
}

TEST(TfrecordScanner, FeaturesThatDrift) {
  const std::string first = Sound().Bytes("txt", "a").Record();
  ExpectWarning(first + Sound().Record(), FindingId::kTfrecordFeatureDrift, "txt");
  ExpectWarning(first + Sound().Integer("txt", 1).Record(), FindingId::kTfrecordFeatureDrift,
                "txt");
  ExpectWarning(first + Sound().Bytes("txt", "b").Bytes("json", "{}").Record(),
                FindingId::kTfrecordFeatureDrift, "json");
  ExpectWarning(first + Sound().Bytes("txt", "b").Bytes("zzz", "").Record(),
                FindingId::kTfrecordFeatureDrift, "zzz");
  EXPECT_EQ(Scan(first + first).Complaints(), "");
}

TEST(TfrecordScanner, ASecondFeatureCalledImageDoesNotHideTheFirst) {
  const std::string bytes = Sound().Bytes("image", "thumbnail").Record();
  const ScanResult result = Scan(bytes);
  ASSERT_EQ(result.records.size(), 1u);
  ASSERT_EQ(result.records[0].fields.size(), 1u);
  EXPECT_EQ(Field(bytes, result.records[0], kImageField), "\xff\xd8 image");
}

class CountRecords : public RecordSink {
 public:
  void OnRecord(const ScannedRecord&) override { ++records; }
  int records = 0;
};

// A sparse file of four gigabytes with one record, whose length is correct. The scan must not
// allocate anything of that size.
TEST(TfrecordScanner, RecordsBeyondProtobufsLimitAreCheckedInPieces) {
  const int descriptor = ::memfd_create("sparse", MFD_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  File file(descriptor, "sparse");
  const uint64_t payload_bytes = kMaxExampleBytes + 1;
  const auto header = EncodeRecordHeader(payload_bytes);
  ASSERT_EQ(::pwrite(descriptor, header.data(), header.size(), 0), 12);
  const uint64_t size = payload_bytes + kRecordOverheadBytes;
  ASSERT_EQ(::ftruncate(descriptor, static_cast<off_t>(size)), 0);
  SequentialReader in(file, size);
  CountRecords records;
  FindingList findings;
  ASSERT_TRUE(kTfrecordScanner.Scan(in, {.shard_name = "sparse"}, records, findings).ok());
  EXPECT_EQ(records.records, 0);
  ASSERT_EQ(findings.findings().size(), 2u);
  EXPECT_EQ(findings.findings()[0].id, FindingId::kTfrecordExample);
  EXPECT_EQ(findings.findings()[1].id,
            FindingId::kTfrecordDataCrc);  // the checksum of zeros is not 0
  EXPECT_EQ(in.remaining(), 0u);
}

TEST(TfrecordScanner, AFileShorterThanSaidIsAStatus) {
  const int descriptor = ::memfd_create("short", MFD_CLOEXEC);
  File file(descriptor, "short");
  SequentialReader in(file, 100);
  CountRecords records;
  FindingList findings;
  EXPECT_FALSE(kTfrecordScanner.Scan(in, {}, records, findings).ok());
}

}  // namespace
}  // namespace shardpack
