// Builds of images in memory with the toy format: the same bytes every time, every input accounted
// for, manifest last; bad inputs, budgets, faults.
#include "converters/building/build.h"

#include <errno.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/building/build_testing.h"
#include "converters/testing/memory_source.h"
#include "formats/core/index_name.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(BuildTest, TheSameBytesWithAnyNumberOfThreads) {
  MemorySource source(205);
  for (const int jobs : {1, 2, 16}) {
    auto report = Run(source, Out(absl::StrCat("j", jobs), jobs));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->manifest.counts.packed, 205u);
    EXPECT_EQ(report->built_shards, 21u);
  }
  const auto one = Snapshot(scratch_.File("j1"));
  EXPECT_EQ(one.size(), 21u * 2 + 1);
  EXPECT_EQ(one, Snapshot(scratch_.File("j2")));
  EXPECT_EQ(one, Snapshot(scratch_.File("j16")));
}

TEST_F(BuildTest, TheBytesOfTheSourceAreInTheShards) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  auto report = Run(plan, source, Out("out"));
  ASSERT_TRUE(report.ok()) << report.status();
  uint64_t position = 0;
  for (const ManifestShard& shard : report->manifest.shards) {
    const std::string bytes = *ReadWholeFile(scratch_.File("out/" + shard.name), 1 << 30);
    EXPECT_EQ(Xxh3_128(AsBytes(bytes)), shard.xxh3_128);
    auto index = ShardIndex::Open(scratch_.File("out/" + shard.index.name), shard.bytes,
                                  shard.index.xxh3_128);
    ASSERT_TRUE(index.ok()) << index.status();
    for (uint64_t r = 0; r < index->records(); ++r, ++position) {
      const uint32_t row = plan.row(position);
      const Extent image = index->field(r, 0);
      EXPECT_EQ(bytes.substr(image.offset, image.length), source.bytes(row));
      EXPECT_EQ(index->hash(r, 0), Xxh3_64(AsBytes(source.bytes(row))));
      EXPECT_EQ(index->label(r), plan.listing().label[row]);
      EXPECT_EQ(index->source_path(r), plan.listing().Path(row));
      EXPECT_EQ(index->image(r).format, ImageFormat::kJpeg);
    }
  }
  EXPECT_EQ(position, 30u);
}

// The toy format with a layout that has its own names, label base and one file for each split.
const Format& FormatWithFiles() {
  static const LayoutSpec kLayouts[] = {
      {.name = ToyFormat().layouts[0].name,
       .doc = "",
       .label_base = 1,
       .shard_name =
           [](std::string_view split, uint32_t number, uint32_t) {
             return split == "odd" ? "" : absl::StrCat("own-", std::string(split), "-", number);
           },
       .files = [](const SidecarInput& input) -> absl::StatusOr<std::vector<NamedBytes>> {
         EXPECT_EQ(input.indexes.size(), input.manifest.shards.size());
         EXPECT_TRUE(std::filesystem::is_directory(input.scratch));
         std::vector<NamedBytes> files;
         for (const auto& [split, records] : input.manifest.splits) {
           files.push_back({split + ".json", absl::StrCat(records)});
         }
         files.push_back({".nv-meta/.info.json", "{}"});
         return files;
       }}};
  static const Format kFormat = [] {
    Format format = ToyFormat();
    format.layouts = kLayouts;
    return format;
  }();
  return kFormat;
}

TEST_F(BuildTest, FilesThatTheLayoutHas) {
  MemorySource source(30);
  auto report = Run(MakePlan(source, SmallShards(), FormatWithFiles()), source, Out("out"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->manifest.label_base, 1);
  const auto files = Snapshot(scratch_.File("out"));
  EXPECT_EQ(files.at("train.json"), "30");
  EXPECT_EQ(files.count("own-train-0"), 1u);
  const auto manifest = Manifest::Read(scratch_.File("out"));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->label_base, 1);
  EXPECT_EQ(manifest->files.size() + 1, files.size());
  EXPECT_EQ(manifest->files[0].name, ".nv-meta/.info.json");
}

TEST_F(BuildTest, NamesOfSplitsThatCannotBe) {
  MemorySource source(30);
  PlanOptions options = SmallShards();
  // The file of this split would have the name of the manifest.
  options.splits = {{"manifest", 1.0}};
  auto report = Run(MakePlan(source, options, FormatWithFiles()), source, Out("out"));
  EXPECT_TRUE(absl::IsInvalidArgument(report.status())) << report.status();
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("called manifest.json"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("out/manifest.json")));
  options.splits = {{"odd", 1.0}};
  const auto plan = Plan::Make(*source.List(), options, FormatWithFiles());
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status()));
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("of split odd"));
}

TEST_F(BuildTest, BadInputsAreLeftOutListedAndBudgeted) {
  MemorySource source(100);
  source.Replace(3, "<html>not an image</html>");
  source.Replace(50, std::string(source.bytes(50).substr(0, source.bytes(50).size() - 2)));
  BuildOptions strict = Out("out");
  strict.max_skip = 0.01;
  auto refused = Run(source, strict);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("2 of 100 inputs cannot be packed"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("000003.jpg: not-an-image"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("out/manifest.json")));

  BuildOptions lenient = Out("out");
  lenient.max_skip = 0.02;
  const uint64_t loads = source.loads();
  auto report = Run(source, lenient);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(source.loads(), loads) << "finished shards are kept";
  EXPECT_EQ(report->manifest.counts.packed, 98u);
  EXPECT_EQ(report->manifest.counts.skipped, 2u);
  const std::string skipped = *ReadWholeFile(scratch_.File("out/skipped.jsonl"), 1 << 20);
  EXPECT_THAT(skipped, HasSubstr("{\"detail\":\"no EOI marker"));
  EXPECT_LT(skipped.find("000003.jpg"), skipped.find("000050.jpg"));
  // A bad sample never moves a neighbour to another shard.
  MemorySource whole(100);
  ASSERT_TRUE(Run(whole, Out("whole")).ok());
  uint64_t same = 0;
  const auto a = Snapshot(scratch_.File("out")), b = Snapshot(scratch_.File("whole"));
  for (const auto& [name, bytes] : a)
    same += name.ends_with(".toy") && b.count(name) > 0 && b.at(name) == bytes;
  EXPECT_GE(same, 8u);
}

TEST_F(BuildTest, AShardWithoutASampleStopsThePublishing) {
  MemorySource source(40);
  PlanOptions options = SmallShards();
  options.shuffle = false;
  for (uint64_t row = 10; row < 20; ++row) source.Replace(row, "junk");
  BuildOptions lenient = Out("out");
  lenient.max_skip = 1;
  auto report = Run(source, lenient, options);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("every sample of shard"));
  for (uint64_t row = 0; row < 40; ++row) source.Replace(row, "junk");
  EXPECT_EQ(Run(source, Out("none"), options).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(BuildTest, AStrangersFileStopsThePublishing) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  BuildOptions part = Out("out");
  part.output.worker = Named(0, 1);
  ASSERT_TRUE(Run(plan, source, part).ok());
  std::ofstream(scratch_.File("out/notes.txt")) << "mine";
  auto refused = Run(plan, source, Out("out"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("notes.txt"));
}

TEST_F(BuildTest, ExpectIsCheckedBeforePublishing) {
  MemorySource source(30);
  BuildOptions wrong = Out("out");
  wrong.expect = Digest{1, 2};
  EXPECT_EQ(Run(source, wrong).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("out/manifest.json")));
}

TEST_F(BuildTest, MemoryInFlightStaysBelowTheCeiling) {
  MemorySource source(500);
  const Plan plan = MakePlan(source);
  BuildOptions options = Out("out");
  options.memory_bytes = 40'000;
  IoPool pool(8);
  BuildProgress progress;
  std::atomic<int64_t> most{0};
  source.set_on_load([&](uint64_t) {
    const int64_t now = progress.memory_bytes.load();
    int64_t was = most.load();
    while (now > was && !most.compare_exchange_weak(was, now)) {
    }
  });
  ASSERT_TRUE(Build(plan, source, options, pool, progress, stop_).ok());
  EXPECT_GT(most.load(), 0);
  EXPECT_LE(most.load(), 20'000);
}

// ---- faults

ssize_t (*real_writev)(int, const iovec*, int);
std::atomic<int> writes_to_fail{0};
int fail_with = 0;

ssize_t FailingWritev(int fd, const iovec* vectors, int count) {
  char link[64], target[512] = {};
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  if (::readlink(link, target, sizeof(target) - 1) > 0 && std::string(target).ends_with(".toy") &&
      writes_to_fail > 0 && writes_to_fail-- > 0) {
    errno = fail_with;
    return -1;
  }
  return real_writev(fd, vectors, count);
}

class FaultTest : public BuildTest {
 protected:
  void SetUp() override {
    real_writev = SyscallsForTesting().writev;
    SyscallsForTesting().writev = FailingWritev;
  }
  void TearDown() override {
    SyscallsForTesting().writev = real_writev;
    writes_to_fail = 0;
  }
};

TEST_F(FaultTest, AShardThatCouldNotBeWrittenIsBuiltOnceMore) {
  MemorySource source(100);
  ASSERT_TRUE(Run(source, Out("whole")).ok());
  fail_with = EIO;
  writes_to_fail = 1;
  auto report = Run(source, Out("out"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Snapshot(scratch_.File("whole")), Snapshot(scratch_.File("out")));
}

TEST_F(FaultTest, AFullDiskEndsTheRunAndResumes) {
  MemorySource source(100);
  ASSERT_TRUE(Run(source, Out("whole")).ok());
  fail_with = ENOSPC;
  writes_to_fail = 1000;
  auto full = Run(source, Out("out"));
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("out/manifest.json")));
  writes_to_fail = 0;
  ASSERT_TRUE(Run(source, Out("out")).ok());
  EXPECT_EQ(Snapshot(scratch_.File("whole")), Snapshot(scratch_.File("out")));
}

// A writer that stores other bytes than it was given, the first `wrong` times.
std::atomic<int> wrong{0};

class LyingWriter : public ShardWriter {
 public:
  explicit LyingWriter(std::unique_ptr<ShardWriter> writer) : writer_(std::move(writer)) {}
  absl::Status Append(const SampleView& sample) override {
    if (wrong <= 0 || wrong-- <= 0) return writer_->Append(sample);
    std::string bytes(AsText(sample.fields[0].bytes));
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    const FieldView field{sample.fields[0].name, AsBytes(bytes)};
    SampleView other = sample;
    other.fields = {&field, 1};
    return writer_->Append(other);
  }
  absl::Status Finish() override { return writer_->Finish(); }

 private:
  std::unique_ptr<ShardWriter> writer_;
};

TEST_F(BuildTest, AShardMayBeAFolder) {
  Format in_folders = ToyFormat();
  in_folders.traits.data_file = "data.toy";
  MemorySource source(205);
  const Plan plan = MakePlan(source, SmallShards(), in_folders);
  auto report = Run(plan, source, Out("out"));
  ASSERT_TRUE(report.ok()) << report.status();
  const std::map<std::string, std::string> whole = Snapshot(scratch_.File("out"));
  const ManifestShard& first = report->manifest.shards[0];
  EXPECT_EQ(whole.count(first.name + "/data.toy"), 1u);
  EXPECT_EQ(first.index.name, IndexName(first.name));
  EXPECT_EQ(Manifest::Read(scratch_.File("out"))->Identity(), report->manifest.Identity());

  // The same after an interruption, with a stranger's file in the place of a shard.
  std::atomic<uint64_t> seen{0};
  source.set_on_load([&](uint64_t) {
    if (++seen == 150) stop_ = 2;
  });
  EXPECT_FALSE(Run(plan, source, Out("resumed", 1)).ok());
  source.set_on_load(nullptr);
  stop_ = 0;
  const std::string last = plan.shards().back().name;
  std::filesystem::create_directory(scratch_.File("resumed/" + last));
  std::ofstream(scratch_.File("resumed/" + last + "/data.toy")) << "half";
  auto resumed = Run(plan, source, Out("resumed"));
  EXPECT_TRUE(absl::IsFailedPrecondition(resumed.status())) << resumed.status();
  std::filesystem::remove_all(scratch_.File("resumed/" + last));
  resumed = Run(plan, source, Out("resumed"));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_GT(resumed->kept_shards, 0u);
  EXPECT_EQ(Snapshot(scratch_.File("resumed")), whole);
}

TEST_F(BuildTest, TheProofFindsAWriterThatLies) {
  Format lying = ToyFormat();
  lying.create =
      +[](StagedFile& file, const ShardSpec& spec) -> absl::StatusOr<std::unique_ptr<ShardWriter>> {
    auto writer = ToyFormat().create(file, spec);
    if (!writer.ok()) return writer.status();
    return std::make_unique<LyingWriter>(*std::move(writer));
  };
  MemorySource source(30);
  const Plan plan = MakePlan(source, SmallShards(), lying);
  wrong = 1000;
  auto refused = Run(plan, source, Out("out"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("other bytes than the source"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("out/manifest.json")));
  wrong = 1;  // a transient fault: the shard is built once more
  EXPECT_TRUE(Run(plan, source, Out("out")).ok());
  wrong = 0;
}

}  // namespace
}  // namespace shardpack::testing
