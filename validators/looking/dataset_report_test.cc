#include "validators/looking/dataset_report.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/core/image_info.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"

namespace shardpack {
namespace {

using testing::TestSample;

class DatasetReportTest : public ::testing::Test {
 protected:
  // Classes 0, 1 and 2, of which the last one has no sample.
  Dataset Write(std::vector<TestSample> samples, size_t shards = 3) {
    manifest_ = testing::WriteTestDataset(folder_, testing::ToyFormat(),
                                          {.shards = shards, .samples = std::move(samples)});
    manifest_.classes = {"cat", "dog", "bird"};
    testing::Reseal(folder_, manifest_);
    return *Dataset::Open(folder_);
  }
  static TestSample Sample(const std::string& key, int64_t label, std::string image) {
    return {.key = key, .source_path = "", .image = std::move(image), .label = label, .info = {}};
  }
  void FlipByteOf(const std::string& file, const std::string& text) {
    std::string bytes = testing::ReadTestFile(folder_ + "/" + file);
    const size_t at = text.empty() ? 100 : bytes.find(text);
    ASSERT_LT(at, bytes.size());
    bytes[at] ^= 1;
    testing::WriteTestFile(folder_ + "/" + file, bytes);
  }
  DatasetReport Report(ReportOptions options = {.name = "x"}) {
    options.folder = folder_;
    absl::StatusOr<DatasetReport> report =
        MakeReport(*Dataset::Open(folder_), options, progress_, stop_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : DatasetReport();
  }
  static bool Says(const DatasetReport& report, const std::string& text) {
    return report.html.find(text) != std::string::npos;
  }

  const std::string folder_ = testing::MakeTestFolder("report");
  Manifest manifest_;
  const std::atomic<int> stop_{0};
  NearProgress progress_;
};

TEST_F(DatasetReportTest, WithoutAnIndexNothingIsSaidToBeMissing) {
  Write({Sample("a", 0, "image 1"), Sample("b", 1, "image 1"), Sample("c", 0, "image 3")});
  FlipByteOf(manifest_.shards[1].index.name, "");
  for (const bool near : {false, true}) {
    const DatasetReport report = Report({.name = "x", .near = near});
    EXPECT_TRUE(report.damaged);
    EXPECT_TRUE(Says(report, "1 of 3 shards could not be read"));
    EXPECT_FALSE(Says(report, "without samples"));
    EXPECT_FALSE(Says(report, "single sample"));
    EXPECT_FALSE(Says(report, "Nothing suspicious"));
    EXPECT_FALSE(Says(report, "no copies"));
    EXPECT_TRUE(Says(report, "were not looked for"));
    EXPECT_EQ(Says(report, "--near"), near);
  }
}

TEST_F(DatasetReportTest, OfFilesThatAreGoneTheIndexesTell) {
  Write({Sample("a", 0, "image 1"), Sample("b", 1, "image 1"), Sample("c", 0, "image 3")});
  const std::string missing = folder_ + "/" + manifest_.shards[0].name;
  (void)RemoveFile(missing);
  std::vector<DamagedFile> damage;
  const Dataset damaged = *Dataset::OpenDamaged(folder_, damage);
  const DatasetReport report =
      *MakeReport(damaged, {.name = "x", .damaged_files = damage}, progress_, stop_);
  EXPECT_TRUE(report.damaged);
  EXPECT_TRUE(Says(report, missing + " is missing: the manifest lists it"));
  EXPECT_TRUE(Says(report, "1 class without samples: bird"));
  EXPECT_TRUE(Says(report, "1 group of images that are equal byte for byte"));
  // An index that is gone as well says nothing.
  (void)RemoveFile(folder_ + "/" + manifest_.shards[0].index.name);
  damage.clear();
  const Dataset worse = *Dataset::OpenDamaged(folder_, damage);
  EXPECT_EQ(damage.size(), 2u);
  const DatasetReport less =
      *MakeReport(worse, {.name = "x", .damaged_files = damage}, progress_, stop_);
  EXPECT_TRUE(Says(less, "1 of 3 shards could not be read"));
  EXPECT_FALSE(Says(less, "without samples"));
}

TEST_F(DatasetReportTest, OddPicturesAreWorthALook) {
  Write({Sample("a", 0, "no image"), Sample("b", 1, "nor this one"), Sample("c", 0, "")});
  EXPECT_TRUE(Says(Report(), "Of the pictures below, 3 images do not decode: "));
  const DatasetReport none = Report({.name = "x", .thumbs = 0});
  EXPECT_FALSE(Says(none, "not decode"));
  const DatasetReport all = Report({.name = "x", .thumbs = 0, .near = true});
  EXPECT_TRUE(Says(all, "<li>3 images do not decode: "));
}

// Nobody knows whether it would decode.
TEST_F(DatasetReportTest, AHugeImageIsNotSaidToBeBroken) {
  Write({Sample("a", 0, "no image"), Sample("b", 1, std::string(kMaxImageFileBytes + 1, 'x'))}, 1);
  for (const bool near : {false, true}) {
    const DatasetReport report = Report({.name = "x", .near = near});
    EXPECT_TRUE(Says(report, "1 image does not decode: a"));
    EXPECT_TRUE(Says(report, "1 image has more than 256 MiB and was not decoded: b"));
  }
}

TEST_F(DatasetReportTest, ADatasetThatWasReplacedIsNotDamaged) {
  Write({Sample("a", 0, "image 1"), Sample("b", 1, "image 2"), Sample("c", 0, "image 3")});
  const Dataset old = *Dataset::Open(folder_);
  // Another one takes its place, as --overwrite does.
  Write({Sample("d", 0, "longer image"), Sample("e", 1, "image"), Sample("f", 0, "i")}, 1);
  const absl::Status failed = MakeReport(old, {.name = "x"}, progress_, stop_).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition) << failed;
  EXPECT_NE(std::string(failed.message()).find("is being replaced by another process"),
            std::string::npos);
}

TEST_F(DatasetReportTest, CopiesAreFoundThoughTheSkippedListIsDamaged) {
  Write({Sample("a", 0, "image 1"), Sample("b", 1, "image 1"), Sample("c", 0, "image 3")});
  testing::WriteTestFile(folder_ + "/skipped.jsonl", "{}\n");
  const DatasetReport report = Report({.name = "x", .near = true});
  EXPECT_TRUE(report.damaged);
  EXPECT_TRUE(Says(report, "1 group of images that are equal byte for byte; 1 with a label"));
  EXPECT_TRUE(Says(report, "look alike (64-bit pHash"));
  EXPECT_TRUE(Says(report, "1 class without samples: bird"));
}

TEST_F(DatasetReportTest, ImagesThatCannotBeReadAreDamage) {
  const std::vector<TestSample> samples = {Sample("a", 0, "twice"), Sample("b", 0, "twice"),
                                           Sample("c", 1, "once"), Sample("d", 1, "")};
  const std::string shard = (Write(samples, 1), manifest_.shards[0].name);
  // That they are no images is not damage.
  EXPECT_FALSE(Report({.name = "x", .near = true}).damaged);
  FlipByteOf(shard, "twice");
  const DatasetReport copy = Report({.name = "x", .thumbs = 0});
  EXPECT_TRUE(copy.damaged);
  EXPECT_TRUE(Says(copy, "could not be read (1); believed to be what the index says"));
  EXPECT_TRUE(Says(copy, "record 0 key a field image"));
  Write(samples, 1);
  FlipByteOf(shard, "once");
  EXPECT_FALSE(Report({.name = "x", .thumbs = 0}).damaged) << "nobody read it";
  EXPECT_TRUE(Report({.name = "x", .thumbs = 8}).damaged);
  const DatasetReport near = Report({.name = "x", .thumbs = 0, .near = true});
  EXPECT_TRUE(near.damaged);
  EXPECT_TRUE(Says(near, ": 1 could not be read, "));
  EXPECT_TRUE(Says(near, "record 2 key c"));
}

TEST_F(DatasetReportTest, APageThatDoesNotFitIsRefusedWithItsSize) {
  Write({Sample("a", 0, "twice"), Sample("b", 0, "twice"), Sample("c", 1, "once")});
  const auto make = [&](uint64_t most) {
    return MakeReport(*Dataset::Open(folder_), {.name = "x", .max_bytes = most}, progress_, stop_);
  };
  const absl::Status refused = make(1000).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  const std::string before = "the page takes ";
  const std::string message(refused.message());
  ASSERT_EQ(message.find(before), 0u) << message;
  const uint64_t needed = std::stoull(message.substr(before.size()));
  EXPECT_FALSE(make(needed - 1).ok());
  const absl::StatusOr<DatasetReport> bare = make(needed);
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->html.size(), needed);
  EXPECT_TRUE(Says(*bare, "No picture fits"));
  EXPECT_TRUE(Says(*bare, "1 group is not shown here"));
  const DatasetReport all = Report();
  EXPECT_FALSE(Says(all, "No picture fits"));
  EXPECT_FALSE(Says(all, "not shown here"));
}

TEST_F(DatasetReportTest, LongListsAreCutAndSaySo) {
  Write({Sample("a", 0, "image")}, 1);
  std::string skipped;
  for (int n = 0; n < 90; ++n)
    skipped += "{\"path\":\"p\",\"reason\":\"" + std::to_string(n) + std::string(20'000, 'r') +
               "\",\"detail\":\"\"}\n";
  testing::WriteTestFile(folder_ + "/skipped.jsonl", skipped);
  manifest_.facts.pixel_stats["mean"] = std::string(50'000, '1');
  manifest_.options.clear();
  for (int n = 0; n < 70; ++n) manifest_.options["option" + std::to_string(n)] = "on";
  testing::Reseal(folder_, manifest_);
  const DatasetReport report = Report();
  EXPECT_FALSE(report.damaged);
  EXPECT_LT(report.html.size(), 100'000u);
  EXPECT_TRUE(Says(report, "; and 70 more"));
  EXPECT_TRUE(Says(report, "and 20 more options"));
  EXPECT_TRUE(Says(report, "(50000 bytes)"));
}

TEST_F(DatasetReportTest, ManySplitsAreCountedTogether) {
  std::vector<TestSample> samples;
  for (int n = 0; n < 9; ++n) samples.push_back(Sample(std::to_string(n), 0, std::to_string(n)));
  for (const size_t splits : {8u, 9u}) {
    Write(samples, 9);
    manifest_.splits.clear();
    for (size_t n = 0; n < 9; ++n) {
      ManifestShard& shard = manifest_.shards[n];
      shard.split = "split" + std::to_string(n % splits);
      manifest_.splits[shard.split] += shard.records;
    }
    testing::Reseal(folder_, manifest_);
    EXPECT_EQ(Says(Report(), "All splits together, because there are 9"), splits == 9);
  }
}

}  // namespace
}  // namespace shardpack
