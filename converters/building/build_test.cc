// Builds of images in memory with the toy format: laws 1, 4 and 5, resume, budgets, conflicts,
// faults.
#include "converters/building/build.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "converters/publishing/commit.h"
#include "converters/publishing/shard_results.h"
#include "converters/publishing/workers_state.h"
#include "converters/testing/memory_source.h"
#include "formats/core/index_name.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

WorkerOptions Named(size_t begin, size_t end) {
  return WorkerOptions{.ranges = {{begin, end}}, .named = true};
}

using ::shardpack::testing::MemorySource;
using ::shardpack::testing::ScratchFolder;
using ::shardpack::testing::ToyFormat;
using ::testing::HasSubstr;

PlanOptions SmallShards() {
  PlanOptions options;
  options.samples_per_shard = 10;
  return options;
}

// Every file in the folder, with its bytes.
std::map<std::string, std::string> Snapshot(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[std::filesystem::relative(entry.path(), folder).string()] =
        *ReadWholeFile(entry.path().string(), uint64_t{1} << 30);
  }
  return files;
}

class BuildTest : public ::testing::Test {
 protected:
  Plan MakePlan(MemorySource& source, const PlanOptions& options = SmallShards(),
                const Format& format = ToyFormat()) {
    absl::StatusOr<Plan> plan = Plan::Make(*source.List(), options, format);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  }
  absl::StatusOr<RunReport> Run(const Plan& plan, const MemorySource& source,
                                BuildOptions options) {
    IoPool pool(4);
    BuildProgress progress;
    return Build(plan, source, options, pool, progress, stop_);
  }
  absl::StatusOr<RunReport> Run(MemorySource& source, BuildOptions options,
                                const PlanOptions& plan_options = SmallShards()) {
    return Run(MakePlan(source, plan_options), source, std::move(options));
  }
  BuildOptions Out(const std::string& name, int jobs = 2) {
    BuildOptions options;
    options.out = scratch_.File(name);
    options.jobs = jobs;
    return options;
  }

  ScratchFolder scratch_;
  std::atomic<int> stop_{0};
};

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

TEST_F(BuildTest, WorkersSideBySideMakeTheSameBytes) {
  MemorySource source(95);
  const Plan plan = MakePlan(source);
  ASSERT_TRUE(Run(plan, source, Out("one")).ok());
  std::vector<std::thread> workers;
  for (const auto& [begin, end] : {std::pair<size_t, size_t>(0, 3), {3, 7}, {7, 10}}) {
    workers.emplace_back([&, begin = begin, end = end] {
      BuildOptions options = Out("three");
      options.output.worker = Named(begin, end);
      auto report = Run(plan, source, options);
      EXPECT_TRUE(report.ok()) << report.status();
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("three/manifest.json")));
  IoPool pool(2);
  auto out = OutputDir::Open(scratch_.File("three"), plan, {}, pool);
  ASSERT_TRUE(out.ok()) << out.status();
  auto manifest = Commit(plan, out->finished(), *out, {});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(Snapshot(scratch_.File("one")), Snapshot(scratch_.File("three")));
}

TEST_F(BuildTest, AShardThatIsReplacedDuringACommitIsNotPublished) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  BuildOptions options = Out("out");
  options.output.worker = Named(0, 3);
  ASSERT_TRUE(Run(plan, source, options).ok());
  OutputOptions only_commit;
  only_commit.only_commit = true;
  const std::string shard = scratch_.File("out/" + plan.shards()[1].name);
  const std::string bytes = *ReadWholeFile(shard, 1 << 30);
  std::string other = bytes;
  other[100] ^= 1;
  const auto replace = [&](const std::string& by) {
    std::ofstream(shard + ".new") << by;
    std::filesystem::rename(shard + ".new", shard);
  };
  IoPool pool(2);
  {
    auto out = OutputDir::Open(scratch_.File("out"), plan, only_commit, pool);
    ASSERT_TRUE(out.ok()) << out.status();
    replace(other);
    const auto manifest = Commit(plan, out->finished(), *out, {});
    EXPECT_TRUE(absl::IsFailedPrecondition(manifest.status())) << manifest.status();
    EXPECT_THAT(std::string(manifest.status().message()), HasSubstr("was replaced or removed"));
    EXPECT_FALSE(std::filesystem::exists(scratch_.File("out/manifest.json")));
    replace(bytes);
  }
  auto out = OutputDir::Open(scratch_.File("out"), plan, only_commit, pool);
  ASSERT_TRUE(out.ok()) << out.status();
  replace(bytes);  // equal bytes do no harm
  EXPECT_TRUE(Commit(plan, out->finished(), *out, {}).ok());
}

TEST_F(BuildTest, ShardsThatWereDoneAreNotLookedAtAgain) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  BuildOptions options = Out("out");
  options.output.worker = Named(0, 2);
  ASSERT_TRUE(Run(plan, source, options).ok());
  IoPool pool(2);
  const auto done = [&](const std::set<uint32_t>& known) {
    const auto state = ReadWorkersState(scratch_.File("out"), plan, 60, pool, known);
    EXPECT_TRUE(state.ok()) << state.status();
    return state->done;
  };
  EXPECT_EQ(done({}), (std::set<uint32_t>{0, 1}));
  std::filesystem::remove(scratch_.File("out/" + plan.shards()[1].name));
  EXPECT_EQ(done({1}), (std::set<uint32_t>{0, 1}));
  EXPECT_EQ(done({}), (std::set<uint32_t>{0}));
}

TEST_F(BuildTest, DamagedShardsAreNamedThoughManyAreMissing) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  std::set<uint32_t> many;
  for (uint32_t n = 0; n < 100'000; n += 2) many.insert(n);
  const std::string both = HowToBuild("out", plan, {5}, many);
  EXPECT_THAT(both, HasSubstr(" -o out --shards 5\n"));
  EXPECT_THAT(both, HasSubstr(" -o out --join\n"));
  EXPECT_LT(both.size(), 1000u);
  EXPECT_THAT(HowToBuild("out", plan, {5}, {7}), HasSubstr(" -o out --shards 5,7\n"));
  // A word of a command line ends at 128 KiB.
  std::set<uint32_t> named;
  const std::string long_lists = HowToBuild("out", plan, many);
  size_t commands = 0;
  for (const absl::string_view line : absl::StrSplit(long_lists, '\n')) {
    const size_t at = line.find("--shards ");
    if (at == absl::string_view::npos) continue;
    ++commands;
    EXPECT_LT(line.size(), size_t{128} << 10);
    for (const absl::string_view each : absl::StrSplit(line.substr(at + 9), ',')) {
      uint32_t number = 0;
      ASSERT_TRUE(absl::SimpleAtoi(each, &number)) << each;
      named.insert(number);
    }
  }
  EXPECT_GT(commands, 1u);
  EXPECT_EQ(named, many);
}

TEST_F(BuildTest, CommitNamesTheFirstShardThatIsMissing) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  BuildOptions options = Out("out");
  options.output.worker = Named(0, 1);
  ASSERT_TRUE(Run(plan, source, options).ok());
  IoPool pool(2);
  auto out = OutputDir::Open(scratch_.File("out"), plan, {}, pool);
  auto manifest = Commit(plan, out->finished(), *out, {});
  EXPECT_EQ(manifest.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(manifest.status().message()),
              HasSubstr("2 of 3 shards are not built yet, the first is number 1"));
}

TEST_F(BuildTest, AStoppedRunResumesToTheSameBytes) {
  MemorySource source(300);
  ASSERT_TRUE(Run(source, Out("whole")).ok());
  for (const uint64_t after : {1, 40, 150, 299}) {
    std::atomic<uint64_t> seen{0};
    source.set_on_load([&](uint64_t) {
      if (++seen == after) stop_ = 2;
    });
    const std::string name = absl::StrCat("stopped", after);
    auto stopped = Run(source, Out(name));
    source.set_on_load(nullptr);
    stop_ = 0;
    if (!stopped.ok()) {
      EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
      EXPECT_FALSE(std::filesystem::exists(scratch_.File(name + "/manifest.json")));
    }
    auto resumed = Run(source, Out(name));
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(Snapshot(scratch_.File("whole")), Snapshot(scratch_.File(name)));
  }
}

TEST_F(BuildTest, ResumeKeepsGoodShardsAndRebuildsDamagedOnes) {
  MemorySource source(100);
  const Plan plan = MakePlan(source);
  ASSERT_TRUE(Run(plan, source, Out("whole")).ok());
  BuildOptions part = Out("out");
  part.output.worker = Named(0, 6);
  ASSERT_TRUE(Run(plan, source, part).ok());
  {  // one shard damaged, one gone, and a stranger's file with the name of a third
    std::fstream file(scratch_.File("out/" + plan.shards()[1].name), std::ios::in | std::ios::out);
    file.seekp(100);
    file.put('!');
  }
  std::filesystem::remove(scratch_.File("out/" + plan.shards()[2].name));
  const std::string theirs = scratch_.File("out/" + plan.shards()[8].name);
  std::ofstream(theirs) << "precious";
  auto report = Run(plan, source, Out("out"));
  EXPECT_TRUE(absl::IsFailedPrecondition(report.status())) << report.status();
  EXPECT_EQ("precious", *ReadWholeFile(theirs, 100));
  std::filesystem::remove(theirs);
  report = Run(plan, source, Out("out"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->kept_shards + report->built_shards, plan.shards().size());
  EXPECT_GE(report->kept_shards, 4u);
  EXPECT_EQ(Snapshot(scratch_.File("whole")), Snapshot(scratch_.File("out")));
}

TEST_F(BuildTest, ACompleteDatasetIsLeftAlone) {
  MemorySource source(30);
  auto first = Run(source, Out("out"));
  const auto before = Snapshot(scratch_.File("out"));
  std::filesystem::create_directory(scratch_.File("out/.pack"));
  const uint64_t loads = source.loads();
  auto second = Run(source, Out("out"));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->already_complete);
  EXPECT_EQ(source.loads(), loads);
  EXPECT_EQ(second->manifest.Identity(), first->manifest.Identity());
  EXPECT_EQ(Snapshot(scratch_.File("out")), before);
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("out/.pack")));
}

TEST_F(BuildTest, AnotherPlanIsRefusedAndSaysWhatDiffers) {
  MemorySource source(30);
  ASSERT_TRUE(Run(source, Out("out")).ok());
  PlanOptions other = SmallShards();
  other.seed = 5;
  auto refused = Run(source, Out("out"), other);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("seed was 0, is 5"));
}

TEST_F(BuildTest, OverwriteReplacesOnlyWhatIsOurs) {
  MemorySource source(30);
  ASSERT_TRUE(Run(source, Out("out")).ok());
  PlanOptions other = SmallShards();
  other.seed = 5;
  BuildOptions overwrite = Out("out");
  overwrite.output.overwrite = true;
  ASSERT_TRUE(Run(source, overwrite, other).ok());
  ASSERT_TRUE(Run(source, Out("fresh"), other).ok());
  EXPECT_EQ(Snapshot(scratch_.File("out")), Snapshot(scratch_.File("fresh")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("out.pack-new")));

  std::filesystem::create_directory(scratch_.File("foreign"));
  std::ofstream(scratch_.File("foreign/precious.txt")) << "keep";
  BuildOptions foreign = Out("foreign");
  foreign.output.overwrite = true;
  auto refused = Run(source, foreign);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("precious.txt"));
  EXPECT_EQ(Snapshot(scratch_.File("foreign")).size(), 1u);
}

TEST_F(BuildTest, OutMustBeAFolder) {
  MemorySource source(10);
  std::ofstream(scratch_.File("file")) << "x";
  EXPECT_EQ(Run(source, Out("file")).status().code(), absl::StatusCode::kInvalidArgument);
  std::filesystem::create_symlink("nowhere", scratch_.File("link"));
  EXPECT_EQ(Run(source, Out("link")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Run(source, Out("a/b/c")).ok());
}

TEST_F(BuildTest, TwoRunsIntoOneFolder) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  IoPool pool(2);
  auto holder = OutputDir::Open(scratch_.File("out"), plan, {}, pool);
  ASSERT_TRUE(holder.ok());
  auto refused = Run(plan, source, Out("out"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("locked by another run"));
}

TEST_F(BuildTest, ASourceChangedSinceTheInterruptionIsNamed) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  for (const bool packed : {true, false}) {
    const std::string name = packed ? "packed" : "waiting";
    BuildOptions part = Out(name);
    part.output.worker = Named(0, 1);
    ASSERT_TRUE(Run(plan, source, part).ok());
    Listing changed = *source.List();
    const uint32_t row = plan.row(packed ? 0 : 29);
    changed.mtime_ns[row] = 2000;
    auto report = Run(*Plan::Make(changed, SmallShards(), ToyFormat()), source, Out(name));
    if (packed) {  // proven against the bytes that the source had then
      EXPECT_TRUE(report.ok()) << report.status();
      continue;
    }
    EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(report.status().message()), HasSubstr(changed.Path(row)));
  }
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
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += vectors[i].iov_len;
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

// Older versions put the whole name of the shard into the name of its index.
TEST_F(BuildTest, ABuildBegunByAnOlderVersionEndsAsAnyOther) {
  MemorySource source(205);
  const Plan plan = MakePlan(source);
  ASSERT_TRUE(Run(plan, source, Out("whole")).ok());
  const auto begin = [&](const std::string& out) {
    std::atomic<uint64_t> seen{0};
    source.set_on_load([&](uint64_t) {
      if (++seen == 150) stop_ = 2;
    });
    EXPECT_FALSE(Run(plan, source, Out(out, 1)).ok());
    source.set_on_load(nullptr);
    stop_ = 0;
    std::vector<ShardResult> results = *ReadJournals(scratch_.File(out + "/.pack"));
    EXPECT_FALSE(results.empty());
    std::ofstream journal(scratch_.File(out + "/.pack/journal.jsonl"));
    for (ShardResult& result : results) {
      const std::string was = result.index.name;
      result.index.name = absl::StrCat(result.file.name, ".pidx");
      std::filesystem::rename(scratch_.File(absl::StrCat(out, "/", was)),
                              scratch_.File(absl::StrCat(out, "/", result.index.name)));
      journal << ToJournalLine(result);
    }
    return results;
  };
  const std::vector<ShardResult> kept = begin("old");
  absl::StatusOr<RunReport> resumed = Run(plan, source, Out("old"));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->kept_shards, kept.size());
  EXPECT_EQ(Snapshot(scratch_.File("old")), Snapshot(scratch_.File("whole")));

  // Killed right after it had renamed an index; another one is damaged, so its shard is built
  // again.
  const std::vector<ShardResult> results = begin("killed");
  std::filesystem::rename(scratch_.File("killed/" + results[0].index.name),
                          scratch_.File("killed/" + IndexName(results[0].file.name)));
  std::ofstream(scratch_.File("killed/" + results[1].index.name)) << "x";
  resumed = Run(plan, source, Out("killed"));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->kept_shards, results.size() - 1);
  EXPECT_EQ(Snapshot(scratch_.File("killed")), Snapshot(scratch_.File("whole")));
}

TEST_F(BuildTest, ALineOfTheJournalIsBelievedOnlyWithTheNamesOfItsPlan) {
  MemorySource source(30);
  const Plan plan = MakePlan(source);
  BuildOptions part = Out("out");
  part.output.worker = Named(0, 3);
  ASSERT_TRUE(Run(plan, source, part).ok());
  const std::vector<ShardResult> lines = *ReadJournals(scratch_.File("out/.pack"));
  ASSERT_EQ(lines.size(), 3u);
  for (const ShardResult& line : lines) EXPECT_TRUE(FitsPlan(line, plan));
  for (const std::string& name :
       {std::string(), std::string("../precious"), std::string("/etc/passwd"),
        std::string(4096, 'a'), std::string("\xff"), std::string(".pack/plan"), lines[1].file.name,
        std::string("manifest.json")}) {
    ShardResult line = lines[0];
    line.file.name = name;
    EXPECT_FALSE(FitsPlan(line, plan)) << name;
    line = lines[0];
    line.index.name = name;
    EXPECT_FALSE(FitsPlan(line, plan)) << name;
  }
  ShardResult line = lines[0];
  line.shard = 3;
  EXPECT_FALSE(FitsPlan(line, plan));
  line = lines[0];
  line.skips.push_back({30, SkipReason::kEmpty, ""});
  EXPECT_FALSE(FitsPlan(line, plan));
  line = lines[0];
  line.plan = Digest{1, 2};
  EXPECT_FALSE(FitsPlan(line, plan));
  line.plan = std::nullopt;  // as older versions wrote it
  EXPECT_TRUE(FitsPlan(line, plan));
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
}  // namespace shardpack
