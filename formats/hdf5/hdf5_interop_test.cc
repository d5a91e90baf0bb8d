// h5py, PyTables, numpy and the HDF5 tools read what we write; we read what the tools copy.
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/hdf5/hdf5_format.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/io/file.h"
#include "formats/io/staged_file.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "formats/testing/test_shard.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::GenerateSamples;
using testing::OwnedSample;
using testing::ScanBytes;
using testing::ScanResult;
using testing::ScratchFolder;

int RunTool(const std::string& command) { return std::system(command.c_str()); }

class Interop : public ::testing::TestWithParam<std::string_view> {
 protected:
  Interop() : samples_(GenerateSamples({.count = 1100, .extra_fields = {"txt"}})) {
    spec_.layout = GetParam();
    spec_.split = "train";
    spec_.classes = classes_;
    bytes_ = *testing::WriteShard(kHdf5Format, spec_, samples_, path());
    std::ofstream expected(scratch_.File("expected"));
    for (const OwnedSample& sample : samples_) {
      expected << sample.key << "\t" << sample.label;
      for (const auto& field : sample.fields)
        expected << "\t" << absl::BytesToHexString(field.second);
      expected << "\n";
    }
  }
  std::string path() const { return scratch_.File("shard.h5"); }

  const ScratchFolder scratch_;
  const std::vector<std::string> classes_ = {"cat", "dog", "\xc3\xa9l\xc3\xa9phant", "d", "e"};
  const std::vector<OwnedSample> samples_;
  ShardSpec spec_;
  std::string bytes_;
};

// One script compares all that Python's readers return with the expected file.
TEST_P(Interop, PythonReadersSeeTheSamples) {
  EXPECT_EQ(RunTool(absl::StrCat("/usr/bin/python3 -B formats/hdf5/testdata/read_shard.py ", path(),
                                 " ", scratch_.File("expected"), " ", std::string(GetParam()))),
            0);
}

TEST_P(Interop, TheToolsReadIt) {
  for (const char* tool : {"h5dump -pH", "h5dump -d /labels", "h5ls -rv", "h5stat"}) {
    EXPECT_EQ(RunTool(absl::StrCat(tool, " ", path(), " > ", scratch_.File("out"))), 0) << tool;
  }
}

TEST_P(Interop, WhatTheToolsCopyIsRead) {
  // Unchanged, in the newest file version, and as contiguous datasets.
  for (const char* options : {"", "--low=2 --high=2 -c 8 -d 6", "-l CONTI"}) {
    const std::string copy = scratch_.File("copy.h5");
    ASSERT_EQ(RunTool(absl::StrCat("h5repack ", options, " ", path(), " ", copy)), 0) << options;
    const std::string bytes = *ReadWholeFile(copy, 1 << 28);
    const ScanResult scan = ScanBytes(kHdf5Format, bytes);
    EXPECT_EQ(scan.Complaints(), "") << options;
    ASSERT_EQ(scan.records.size(), samples_.size()) << options;
    for (size_t i = 0; i < samples_.size(); ++i) {
      const auto* image = scan.records[i].Find(kImageField);
      const auto* text = scan.records[i].Find("txt");
      ASSERT_TRUE(image != nullptr && text != nullptr);
      EXPECT_EQ(scan.records[i].key, samples_[i].key);
      EXPECT_EQ(scan.records[i].label, samples_[i].label);
      EXPECT_TRUE(bytes.substr(image->offset, image->length) == samples_[i].fields[0].second);
      EXPECT_TRUE(bytes.substr(text->offset, text->length) == samples_[i].fields[1].second);
    }
    ASSERT_TRUE(RemoveFile(copy).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Interop, ::testing::Values(kPackedLayout, kVlenLayout),
                         [](const auto& info) { return std::string(info.param); });

// All planned samples, fewer, and none; with more and less than a page of pixels (only the former
// is aligned).
TEST(Decoded, PythonReadersSeeThePixels) {
  const ScratchFolder scratch;
  int number = 0;
  for (const ImageInfo& image : {RawImageInfo(32, 24, 3), RawImageInfo(9, 11, 1)}) {
    for (const auto& [planned, count] :
         {std::pair<size_t, size_t>{60, 60}, {60, 57}, {60, 2}, {3, 0}}) {
      auto samples = GenerateSamples({.count = planned, .raw_image = image});
      const ShardSpec spec = testing::SpecFor(
          {.layout = kDecodedLayout, .split = "train", .raw_image = image}, samples);
      samples.resize(count);
      const std::string path = scratch.File(absl::StrCat(++number, ".h5"));
      auto file = StagedFile::Create(path + ".part");
      ASSERT_TRUE(file.ok());
      auto writer = kHdf5Format.create(**file, spec);
      ASSERT_TRUE(writer.ok()) << writer.status();
      std::ofstream expected(scratch.File("expected"));
      for (const OwnedSample& sample : samples) {
        const auto borrowed = sample.Borrow();
        ASSERT_TRUE((*writer)->Append(borrowed.view).ok());
        expected << sample.key << "\t" << sample.label << "\t"
                 << absl::BytesToHexString(sample.fields[0].second) << "\n";
      }
      expected.close();
      ASSERT_TRUE((*writer)->Finish().ok());
      ASSERT_TRUE((*file)->Publish(path).ok());
      EXPECT_EQ(RunTool(absl::StrCat("/usr/bin/python3 -B formats/hdf5/testdata/read_pixels.py ",
                                     path, " ", scratch.File("expected"), " ", image.height, " ",
                                     image.width, " ", image.channels)),
                0)
          << planned << " " << count;
      const std::string bytes = *ReadWholeFile(path, 1 << 28);
      const ScanResult scan = ScanBytes(kHdf5Format, bytes);
      EXPECT_EQ(scan.Complaints(), "");
      ASSERT_EQ(scan.records.size(), count);
      for (size_t i = 0; i < count; ++i) {
        const auto& field = scan.records[i].fields[0];
        EXPECT_TRUE(bytes.substr(field.offset, field.length) == samples[i].fields[0].second);
        EXPECT_EQ(scan.records[i].key, samples[i].key);
        EXPECT_EQ(scan.records[i].label, samples[i].label);
        EXPECT_EQ(scan.records[i].image, image);
      }
      // The file takes no more space than the samples need.
      EXPECT_LT(bytes.size(), count * (RawImageBytes(image) + 80) + 16384);
    }
  }
}

TEST(Decoded, RefusesOtherShapes) {
  const ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("part"));
  ASSERT_TRUE(file.ok());
  ShardSpec spec{.layout = kDecodedLayout, .split = "train"};
  spec.fields = {{std::string(kImageField), 0}};
  EXPECT_TRUE(absl::IsInvalidArgument(kHdf5Format.create(**file, spec).status()));
  spec.raw_image = RawImageInfo(5, 3, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(kHdf5Format.create(**file, spec).status())) << "too small";
  spec.raw_image = RawImageInfo(4, 5, 3);
  spec.max_records = 5;
  auto writer = kHdf5Format.create(**file, spec);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const ImageInfo& other : {RawImageInfo(5, 4, 3), RawImageInfo(4, 5, 1)}) {
    const auto samples = GenerateSamples({.count = 1, .raw_image = other});
    const absl::Status status = (*writer)->Append(samples[0].Borrow().view);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find(samples[0].key), absl::string_view::npos) << status;
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument((*writer)->Append(GenerateSamples({.count = 1})[0].Borrow().view)));
}

// The message's hint works: a copy makes an unreadable file readable.
TEST(Repack, MakesReadableWhatWasNot) {
  const ScratchFolder scratch;
  int number = 0;
  for (const char* command : {"h5repack -f NONE formats/hdf5/testdata/h5py-gzip.h5",
                              "h5repack -l CONTI formats/hdf5/testdata/h5py-packed-chunked.h5"}) {
    const std::string copy = scratch.File(absl::StrCat(++number));
    ASSERT_EQ(RunTool(absl::StrCat(command, " ", copy)), 0) << command;
    const ScanResult scan = ScanBytes(kHdf5Format, *ReadWholeFile(copy, 1 << 20));
    EXPECT_EQ(scan.Complaints(), "") << command;
    EXPECT_EQ(scan.records.size(), 5u) << command;
  }
}

}  // namespace
}  // namespace shardpack
