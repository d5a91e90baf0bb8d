// Shards from NumPy and for NumPy: images, labels, skipped samples, refused files.
#include "formats/npy/npy_format.h"

#include <errno.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/io/staged_file.h"
#include "formats/npy/npy_layout.h"
#include "formats/testing/fault_injection.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::GenerateSamples;
using testing::OwnedSample;
using testing::ScratchFolder;

struct Row {
  int64_t label;
  uint64_t offset, length;
  ImageInfo image;
};
class Rows : public RecordSink {
 public:
  void OnRecord(const ScannedRecord& record) override {
    rows.push_back({record.label, record.offset, record.length, record.image});
    EXPECT_EQ(record.fields.size(), 1u);
    EXPECT_EQ(record.fields[0].offset, record.offset);
  }
  std::vector<Row> rows;
};

struct Scanned {
  std::vector<Row> rows;
  FindingList findings;
  std::string Names() const {
    std::string names;
    for (const Finding& finding : findings.findings()) {
      absl::StrAppend(&names, std::string(SpecOf(finding.id).name), " ");
    }
    return names;
  }
};

// Scans the shard in this folder.
Scanned Scan(const std::string& folder) {
  const File file = *File::OpenRead(folder + "/images.npy");
  SequentialReader in(file, *file.Size());
  Rows rows;
  Scanned scanned;
  EXPECT_TRUE(kNpyFormat.scanner->Scan(in, {.shard_name = "shard"}, rows, scanned.findings).ok());
  scanned.rows = rows.rows;
  return scanned;
}

Scanned ScanGolden(const std::string& name) { return Scan("formats/npy/testdata/" + name); }

std::vector<int64_t> LabelsOf(const Scanned& scanned) {
  std::vector<int64_t> labels;
  for (const Row& row : scanned.rows) labels.push_back(row.label);
  return labels;
}

TEST(Golden, ImagesAndLabels) {
  Scanned rgb = ScanGolden("rgb");
  EXPECT_EQ(rgb.Names(), "");
  EXPECT_EQ(LabelsOf(rgb), (std::vector<int64_t>{3, 1, -1, 0, 2}));
  for (size_t i = 0; i < rgb.rows.size(); ++i) {
    EXPECT_EQ(rgb.rows[i].offset, 128 + i * 72);
    EXPECT_EQ(rgb.rows[i].length, 72u);
    EXPECT_EQ(rgb.rows[i].image, RawImageInfo(4, 6, 3));
  }
  Scanned gray = ScanGolden("gray");
  EXPECT_EQ(gray.Names(), "");
  EXPECT_EQ(LabelsOf(gray), (std::vector<int64_t>{3, 1, 9, 0, 2}));
  EXPECT_EQ(gray.rows[0].image, RawImageInfo(4, 6, 1));
  Scanned second = ScanGolden("version-2");
  EXPECT_EQ(second.Names(), "");
  EXPECT_EQ(LabelsOf(second), (std::vector<int64_t>{3, 1, -5, 0, 2}));
  Scanned third = ScanGolden("version-3");
  EXPECT_EQ(third.Names(), "");
  EXPECT_EQ(LabelsOf(third), (std::vector<int64_t>{kNoLabel, kNoLabel}));
  EXPECT_EQ(third.rows[0].image, RawImageInfo(3, 2, 4));
  EXPECT_EQ(ScanGolden("empty").Names(), "");
}

TEST(Golden, WhatHoldsNoImages) {
  for (const char* name : {"fortran", "floats", "channels-first", "structure"}) {
    const Scanned scanned = ScanGolden(name);
    EXPECT_EQ(scanned.Names(), "npy-layout ") << name;
    EXPECT_TRUE(scanned.rows.empty());
  }
  EXPECT_NE(ScanGolden("fortran").findings.findings()[0].actual.find("Fortran"), std::string::npos);
}

TEST(Golden, LabelsThatDoNotFit) {
  for (const char* name : {"labels-short", "labels-floats"}) {
    const Scanned scanned = ScanGolden(name);
    EXPECT_EQ(scanned.Names(), "npy-labels ") << name;
    ASSERT_EQ(scanned.rows.size(), 5u);
    EXPECT_EQ(scanned.rows[0].label, kNoLabel);
  }
}

// A sparse file could hold more of them than their index fits in memory.
TEST(Damage, ImagesOfAFewBytes) {
  const ScratchFolder scratch;
  const std::vector<std::pair<uint64_t, std::string>> cases = {{2, "npy-layout "}, {4, ""}};
  for (const auto& [side, names] : cases) {
    const uint64_t shape[] = {3, side, side};
    std::ofstream(scratch.File("images.npy"), std::ios::binary)
        << MakeNpyHeader("|u1", shape) << std::string(3 * side * side, 'x');
    EXPECT_EQ(Scan(scratch.path()).Names(), names) << side;
  }
}

// Unreadable labels are not the same as missing labels.
TEST(Labels, AReadThatFailsIsAnError) {
  const File file = *File::OpenRead("formats/npy/testdata/rgb/images.npy");
  uint64_t reads = 0;
  for (uint64_t number = 0; number == 0 || number < reads; ++number) {
    testing::FaultInjection faults;
    if (reads > 0) faults.FailOneRead(number - 1, EIO);
    SequentialReader in(file, *file.Size());
    Rows rows;
    FindingList findings;
    const absl::Status scanned =
        kNpyFormat.scanner->Scan(in, {.shard_name = "shard"}, rows, findings);
    if (reads == 0) {
      reads = faults.reads() + 1;
      EXPECT_TRUE(scanned.ok());
    } else {
      EXPECT_TRUE(absl::IsUnavailable(scanned)) << "read " << number - 1 << ": " << scanned;
      EXPECT_TRUE(findings.findings().empty());
    }
  }
  EXPECT_GE(reads, 4u) << "images, and header and numbers of the labels";
}

void CopyFile(const std::string& from, const std::string& to, size_t less = 0) {
  std::string bytes = *ReadWholeFile(from, 1 << 20);
  bytes.resize(bytes.size() - less);
  std::ofstream(to, std::ios::binary) << bytes;
}

TEST(Damage, CutAndLongAndOddNeighbours) {
  const ScratchFolder scratch;
  const std::string images = scratch.File("images.npy"), labels = scratch.File("labels.npy");
  CopyFile("formats/npy/testdata/rgb/images.npy", images, 73);
  Scanned scanned = Scan(scratch.path());
  EXPECT_EQ(scanned.Names(), "container-truncated ");
  EXPECT_EQ(scanned.rows.size(), 3u);
  EXPECT_EQ(scanned.findings.findings()[0].expected, "5 images of 72 bytes");
  CopyFile("formats/npy/testdata/rgb/images.npy", images);
  std::ofstream(images, std::ios::app) << "more";
  EXPECT_EQ(Scan(scratch.path()).Names(), "trailing-data ");
  CopyFile("formats/npy/testdata/rgb/images.npy", images);
  CopyFile("formats/npy/testdata/rgb/labels.npy", labels, 1);
  EXPECT_EQ(Scan(scratch.path()).Names(), "npy-labels ");
  ASSERT_TRUE(RemoveFile(labels).ok());
  ASSERT_EQ(::mkfifo(labels.c_str(), 0600), 0);
  EXPECT_EQ(Scan(scratch.path()).Names(), "npy-labels ") << "a pipe must not block";
  std::ofstream(images, std::ios::binary) << "\x93NUMPY\x01";
  EXPECT_EQ(Scan(scratch.path()).Names(), "npy-header ");
}

ShardSpec Spec(uint64_t records) {
  ShardSpec spec{.raw_image = RawImageInfo(4, 6, 3)};
  spec.max_records = records;
  spec.fields = {{std::string(kImageField), records * 72}};
  return spec;
}

TEST(Writer, NumPyReadsImagesAndLabels) {
  const ScratchFolder scratch;
  // 20 samples were planned, 17 written.
  for (const size_t count : {size_t{20}, size_t{17}, size_t{0}}) {
    const std::vector<OwnedSample> samples =
        GenerateSamples({.count = count, .raw_image = RawImageInfo(4, 6, 3)});
    const std::string shard = scratch.File(absl::StrCat("shard", count));
    ASSERT_TRUE(MakeDirectory(shard).ok());
    auto file = StagedFile::Create(shard + "/images.npy.part");
    ASSERT_TRUE(file.ok());
    const ShardSpec spec = Spec(20);
    auto writer = kNpyFormat.create(**file, spec);
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::ofstream expected(scratch.File("expected"));
    for (const OwnedSample& sample : samples) {
      const auto borrowed = sample.Borrow();
      ASSERT_TRUE((*writer)->Append(borrowed.view).ok());
      expected << sample.label << "\t" << absl::BytesToHexString(sample.fields[0].second) << "\n";
    }
    expected.close();
    ASSERT_TRUE((*writer)->Finish().ok());
    ASSERT_TRUE((*file)->Publish(shard + "/images.npy").ok());
    // As a commit does.
    const std::string bytes = *ReadWholeFile(shard + "/images.npy", 1 << 20);
    const auto index =
        testing::IndexOf(testing::ScanBytes(kNpyFormat, bytes), samples, bytes.size());
    ASSERT_TRUE(index.ok()) << index.status();
    Manifest manifest;
    manifest.shards.emplace_back().name = "shard";
    const SidecarInput input{.root = scratch.path(), .manifest = manifest, .indexes = {&*index, 1}};
    const auto files = kNpyFormat.layouts[0].files(input);
    ASSERT_TRUE(files.ok());
    ASSERT_EQ(files->size(), 1u);
    EXPECT_EQ((*files)[0].name, "shard/labels.npy");
    std::ofstream(shard + "/labels.npy", std::ios::binary) << (*files)[0].bytes;
    EXPECT_EQ(std::system(absl::StrCat("/usr/bin/python3 -B formats/npy/testdata/read_shard.py ",
                                       shard, " ", scratch.File("expected"))
                              .c_str()),
              0);
    const Scanned scanned = Scan(shard);
    EXPECT_EQ(scanned.Names(), "");
    ASSERT_EQ(scanned.rows.size(), count);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(scanned.rows[i].label, samples[i].label);
  }
}

TEST(Writer, RefusesWhatIsNotOfTheShape) {
  const ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("images.npy"));
  ASSERT_TRUE(file.ok());
  const ShardSpec spec = Spec(3);
  auto writer = kNpyFormat.create(**file, spec);
  ASSERT_TRUE(writer.ok());
  const std::vector<OwnedSample> sound =
      GenerateSamples({.count = 4, .raw_image = RawImageInfo(4, 6, 3)});
  for (const ImageInfo& other :
       {RawImageInfo(6, 4, 3), RawImageInfo(4, 6, 1), RawImageInfo(4, 6, 4)}) {
    const std::vector<OwnedSample> samples = GenerateSamples({.count = 1, .raw_image = other});
    const auto borrowed = samples[0].Borrow();
    const absl::Status status = (*writer)->Append(borrowed.view);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find(samples[0].key), absl::string_view::npos) << status;
  }
  const std::vector<OwnedSample> encoded = GenerateSamples({.count = 1});
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Append(encoded[0].Borrow().view)));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE((*writer)->Append(sound[i].Borrow().view).ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Append(sound[3].Borrow().view)));
}

TEST(Writer, RefusesSpecs) {
  const ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("images.npy"));
  ASSERT_TRUE(file.ok());
  const auto refused = [&](ShardSpec spec) {
    return absl::IsInvalidArgument(kNpyFormat.create(**file, spec).status());
  };
  EXPECT_FALSE(refused(Spec(3)));
  ShardSpec spec = Spec(3);
  spec.raw_image = {};
  EXPECT_TRUE(refused(spec));
  spec = Spec(3);
  spec.raw_image.channels = 0;
  EXPECT_TRUE(refused(spec));
  spec.raw_image = RawImageInfo(5, 3, 1);
  EXPECT_TRUE(refused(spec)) << "what no reader takes for images";
  spec = Spec(3);
  spec.fields.push_back({"txt", 1});
  EXPECT_TRUE(refused(spec));
  spec = Spec(3);
  spec.image_field = "jpg";
  EXPECT_TRUE(refused(spec));
  spec = Spec(3);
  spec.with_metadata = true;
  EXPECT_TRUE(refused(spec));
}

}  // namespace
}  // namespace shardpack
