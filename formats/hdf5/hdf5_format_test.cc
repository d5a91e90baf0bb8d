// Covers what the contract suite does not: further fields, shards with fewer samples than planned,
// a full disk under the library, and specs that must be refused.
#include "formats/hdf5/hdf5_format.h"

#include <sys/resource.h>

#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/hdf5/hdf5_layout.h"
#include "formats/hdf5/writing/hdf5_output.h"
#include "formats/io/file.h"
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
using testing::SpecFor;

class EachLayout : public ::testing::TestWithParam<std::string_view> {
 protected:
  ShardSpec Spec() const { return {.layout = GetParam(), .split = "train"}; }
  // Writes all samples except those with these numbers, with a spec for all.
  absl::StatusOr<std::string> Write(const ShardSpec& base, const std::vector<OwnedSample>& samples,
                                    const std::string& name, size_t skipped = 1 << 30) {
    const ShardSpec spec = SpecFor(base, samples);
    auto file = StagedFile::Create(scratch_.File(name + ".part"));
    if (!file.ok()) return file.status();
    auto writer = kHdf5Format.create(**file, spec);
    if (!writer.ok()) return writer.status();
    for (size_t i = 0; i < samples.size(); ++i) {
      if (i == skipped) continue;
      const auto borrowed = samples[i].Borrow();
      absl::Status appended = (*writer)->Append(borrowed.view);
      if (!appended.ok()) return appended;
    }
    absl::Status finished = (*writer)->Finish();
    if (!finished.ok()) return finished;
    EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->Finish()));
    absl::Status published = (*file)->Publish(scratch_.File(name));
    if (!published.ok()) return published;
    return ReadWholeFile(scratch_.File(name), 1 << 28);
  }

  const ScratchFolder scratch_;
};

TEST_P(EachLayout, FurtherFieldsComeBack) {
  const auto samples = GenerateSamples({.count = 30, .extra_fields = {"json", "mask.png", "txt"}});
  const auto bytes = Write(Spec(), samples, "shard");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const ScanResult scan = ScanBytes(kHdf5Format, *bytes);
  EXPECT_EQ(scan.Complaints(), "");
  ASSERT_EQ(scan.records.size(), samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(scan.records[i].key, samples[i].key);
    EXPECT_EQ(scan.records[i].label, samples[i].label);
    ASSERT_EQ(scan.records[i].fields.size(), 4u);
    EXPECT_EQ(scan.records[i].fields[0].name, kImageField);
    for (const auto& [name, content] : samples[i].fields) {
      const auto* field = scan.records[i].Find(name);
      ASSERT_NE(field, nullptr) << name;
      EXPECT_TRUE(bytes->substr(field->offset, field->length) == content) << name;
    }
  }
}

TEST_P(EachLayout, AShardWithoutASampleOfThePlanIsSound) {
  const auto samples = GenerateSamples({.count = 30});
  for (const size_t skipped : {0, 17, 29}) {
    const auto bytes = Write(Spec(), samples, absl::StrCat(skipped), skipped);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const ScanResult scan = ScanBytes(kHdf5Format, *bytes);
    EXPECT_EQ(scan.Complaints(), "");
    ASSERT_EQ(scan.records.size(), 29u);
    EXPECT_EQ(scan.records[skipped == 0 ? 0 : 1].key, samples[1].key);
    EXPECT_EQ(scan.records.back().key, samples[skipped == 29 ? 28 : 29].key);
  }
}

TEST_P(EachLayout, MoreThanThePlanIsRefused) {
  auto samples = GenerateSamples({.count = 3});
  const ShardSpec spec = SpecFor(Spec(), samples);
  auto file = StagedFile::Create(scratch_.File("part"));
  auto writer = kHdf5Format.create(**file, spec);
  ASSERT_TRUE(writer.ok());
  for (const OwnedSample& sample : samples) {
    ASSERT_TRUE((*writer)->Append(sample.Borrow().view).ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Append(samples[0].Borrow().view)));
  EXPECT_TRUE((*writer)->Finish().ok());
}

TEST_P(EachLayout, ManyClassesAreADataset) {
  std::vector<std::string> classes;
  for (int i = 0; i < 5000; ++i) classes.push_back(absl::StrCat("class ", i));
  ShardSpec spec = Spec();
  for (const size_t count : {size_t{4000}, size_t{4001}, size_t{5000}}) {
    spec.classes = std::span(classes).first(count);
    const auto bytes = Write(spec, GenerateSamples({.count = 2}), absl::StrCat(count));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(ScanBytes(kHdf5Format, *bytes).Complaints(), "");
    EXPECT_EQ(ScanBytes(kHdf5Format, *bytes).records.size(), 2u);
  }
}

// The library does not see the failure, so it can close its file.
TEST_P(EachLayout, AFullDiskIsToldWhereverItStrikes) {
  std::signal(SIGXFSZ, SIG_IGN);
  const auto samples = GenerateSamples({.count = 50});
  const auto whole = Write(Spec(), samples, "whole");
  ASSERT_TRUE(whole.ok()) << whole.status();
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const size_t room : {size_t{0}, size_t{100}, size_t{5000}, whole->size() - 1}) {
    const rlimit small = {room, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto bytes = Write(Spec(), samples, absl::StrCat("room-", room));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_TRUE(absl::IsResourceExhausted(bytes.status())) << room << ": " << bytes.status();
  }
  const auto again = Write(Spec(), samples, "again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(*again == *whole) << "a failure leaves nothing behind in the library";
}

TEST_P(EachLayout, FieldNamesThatCannotBeLinksAreRefused) {
  for (const std::string name :
       {"labels", "keys", "images", "classes", "y", "paths", "a/b", ".", ""}) {
    auto samples = GenerateSamples({.count = 1, .extra_fields = {"txt"}});
    samples[0].fields[1].first = name;
    EXPECT_TRUE(absl::IsInvalidArgument(Write(Spec(), samples, "shard").status())) << name;
  }
}

TEST_P(EachLayout, AKeyWithANulIsRefused) {
  auto samples = GenerateSamples({.count = 1});
  samples[0].key = std::string("a\0b", 3);
  EXPECT_TRUE(absl::IsInvalidArgument(Write(Spec(), samples, "shard").status()));
}

INSTANTIATE_TEST_SUITE_P(Layouts, EachLayout, ::testing::Values(kPackedLayout, kVlenLayout),
                         [](const auto& info) { return std::string(info.param); });

TEST(Hdf5Format, DataIsAligned) {
  const ScratchFolder scratch;
  const auto samples = GenerateSamples({.count = 40});
  const auto bytes = testing::WriteShard(kHdf5Format, {}, samples, scratch.File("shard"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const ScanResult scan = ScanBytes(kHdf5Format, *bytes);
  ASSERT_EQ(scan.records.size(), 40u);
  EXPECT_EQ(scan.records[0].offset % kDataAlignment, 0u);
  for (size_t i = 1; i < 40; ++i) {
    EXPECT_EQ(scan.records[i].offset, scan.records[i - 1].offset + scan.records[i - 1].length);
  }
}

TEST(Hdf5Format, OptionsItDoesNotHaveAreRefused) {
  const ScratchFolder scratch;
  auto file = StagedFile::Create(scratch.File("part"));
  EXPECT_TRUE(absl::IsInvalidArgument(
      kHdf5Format.create(**file, {.layout = kPackedLayout, .image_field = "jpg"}).status()));
}

TEST(Hdf5Format, NamesTheLibrary) {
  EXPECT_EQ(kHdf5Format.library(), Hdf5LibraryVersion());
  EXPECT_TRUE(Hdf5LibraryVersion().starts_with("hdf5 1.")) << Hdf5LibraryVersion();
}

}  // namespace
}  // namespace shardpack
