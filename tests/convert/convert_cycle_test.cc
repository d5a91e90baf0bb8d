// folder -> A -> B -> C -> A is byte-identical to folder -> A, for all formats of the table, and
// for one that is not in it: a format that wants its shards in the order of keys.
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/building/build.h"
#include "converters/planning/plan.h"
#include "converters/planning/record_order.h"
#include "converters/sources/dataset_source.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"
#include "readers/dataset/dataset.h"

namespace shardpack {
namespace {

// TFRecord, sorted by key.
const Format& SortedFormat() {
  static const std::vector<LayoutSpec> layouts = [] {
    const auto of = FindFormat("tfrecord")->layouts;
    std::vector<LayoutSpec> sorted(of.begin(), of.end());
    for (LayoutSpec& layout : sorted) layout.key_ordered = true;
    return sorted;
  }();
  static const Format format = [] {
    Format sorted = *FindFormat("tfrecord");
    sorted.name = "sorted-tfrecord";
    sorted.layouts = layouts;
    return sorted;
  }();
  return format;
}

std::vector<const Format*> Formats() {
  std::vector<const Format*> formats(AllFormats().begin(), AllFormats().end());
  // Pixels of one shape are not image files.
  std::erase_if(formats, [](const Format* format) { return format->layouts[0].fixed_shape; });
  formats.push_back(&SortedFormat());
  return formats;
}

class ConvertCycleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::Random random(7);
    for (int i = 0; i < 40; ++i) {
      const std::string stem =
          scratch_.File(absl::StrCat("source/class", i % 3, "/image ", i * 37 % 100));
      ASSERT_TRUE(MakeDirectory(scratch_.File("source")).ok());
      ASSERT_TRUE(MakeDirectory(scratch_.File(absl::StrCat("source/class", i % 3))).ok());
      testing::WriteTestFile(
          stem + ".jpg",
          testing::MakeTinyJpeg(1 + static_cast<uint32_t>(random.Below(40)), 9, random));
      testing::WriteTestFile(stem + ".json", absl::StrCat("{\"n\":", i, "}"));
    }
  }

  std::string NewOut() { return scratch_.File(absl::StrCat("out", next_++)); }

  // The folder that it was built in.
  std::string MustBuild(SampleSource& source, Listing listing, const PlanOptions& options,
                        const Format& format) {
    absl::StatusOr<Plan> plan = Plan::Make(std::move(listing), options, format);
    EXPECT_TRUE(plan.ok()) << plan.status();
    const std::string out = NewOut();
    BuildProgress progress;
    const std::atomic<int> stop{0};
    BuildOptions build;
    build.out = out;
    build.jobs = 2;
    build.output.fsync = false;
    build.max_skip = 0;
    const absl::StatusOr<RunReport> report = Build(*plan, source, build, pool_, progress, stop);
    EXPECT_TRUE(report.ok()) << format.name << ": " << report.status();
    return out;
  }

  std::string Pack(const Format& format, const PlanOptions& options, bool with_fields) {
    FolderSourceOptions folder;
    if (with_fields) folder.sidecars = {{"json", "json"}};
    FolderSource source(scratch_.File("source"), folder, pool_);
    absl::StatusOr<Listing> listing = source.List();
    EXPECT_TRUE(listing.ok()) << listing.status();
    return MustBuild(source, *std::move(listing), options, format);
  }

  std::string Convert(const std::string& in, const Format& format, PlanOptions options) {
    const absl::StatusOr<Dataset> dataset = Dataset::Open(in);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    DatasetSource source(*dataset, {.root = in});
    absl::StatusOr<Listing> listing = source.List();
    EXPECT_TRUE(listing.ok()) << listing.status();
    options.shuffle = false;
    options.splits = {};
    InheritOptions(*dataset, format, {}, &options);
    return MustBuild(source, *std::move(listing), options, format);
  }

  // Every file but what says where the samples came from.
  std::map<std::string, std::string> Bytes(const std::string& out) {
    std::map<std::string, std::string> bytes;
    const Manifest manifest = *Manifest::Read(out);
    for (const FileEntry& file : manifest.files)
      bytes[file.name] = testing::ReadTestFile(absl::StrCat(out, "/", file.name));
    bytes["identity"] = manifest.Identity().ToHex();
    return bytes;
  }

  testing::ScratchFolder scratch_;
  IoPool pool_{4};
  int next_ = 0;
};

PlanOptions Sized(uint64_t shards) {
  PlanOptions options;
  options.shards = shards;
  return options;
}

TEST_F(ConvertCycleTest, EndsWhereItBegan) {
  const auto holds_fields = [](const Format* format) { return format->layouts[0].extra_fields; };
  for (const Format* a : Formats()) {
    PlanOptions packing = Sized(4);
    packing.seed = 11;
    packing.splits = {{"train", 0.7}, {"val", 0.3}};
    packing.key = KeyMode::kPath;
    for (const Format* b : Formats()) {
      for (const Format* c : Formats()) {
        SCOPED_TRACE(absl::StrCat(std::string(a->name), " -> ", std::string(b->name), " -> ",
                                  std::string(c->name)));
        const bool fields = holds_fields(a) && holds_fields(b) && holds_fields(c);
        const std::string first = Pack(*a, packing, fields);
        const std::string last =
            Convert(Convert(Convert(first, *b, Sized(3)), *c, Sized(5)), *a, Sized(4));
        EXPECT_EQ(Bytes(first), Bytes(last));
      }
    }
  }
}

// The test above would prove nothing if sorting kept the order.
TEST_F(ConvertCycleTest, TheSortedFormatLosesTheOrderInItsShards) {
  PlanOptions options = Sized(2);
  options.key = KeyMode::kPath;
  const std::string out = Pack(SortedFormat(), options, false);
  EXPECT_TRUE(Bytes(out).contains(std::string(kRecordOrderName)));
  EXPECT_FALSE(
      Bytes(Pack(*FindFormat("tfrecord"), options, false)).contains(std::string(kRecordOrderName)));
}

TEST_F(ConvertCycleTest, ADamagedOrderIsRefused) {
  PlanOptions options = Sized(2);
  options.key = KeyMode::kPath;
  const std::string out = Pack(SortedFormat(), options, false);
  const std::string path = absl::StrCat(out, "/", std::string(kRecordOrderName));
  std::string bytes = testing::ReadTestFile(path);
  std::swap(bytes[0], bytes[4]);
  testing::WriteTestFile(path, bytes);
  DatasetSource source(*Dataset::Open(out), {.root = out});
  EXPECT_TRUE(absl::IsDataLoss(source.List().status()));
}

}  // namespace
}  // namespace shardpack
