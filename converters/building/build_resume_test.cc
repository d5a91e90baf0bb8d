// Builds that others began, are in the middle of, or have finished: workers side by side, resume,
// conflicts, journals of older versions.

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "converters/building/build.h"
#include "converters/building/build_testing.h"
#include "converters/publishing/commit.h"
#include "converters/publishing/shard_results.h"
#include "converters/publishing/workers_state.h"
#include "converters/testing/memory_source.h"
#include "formats/core/index_name.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack::testing {
namespace {

using ::testing::HasSubstr;

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
    if (packed) {  // verified against the bytes that the source had then
      EXPECT_TRUE(report.ok()) << report.status();
      continue;
    }
    EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(report.status().message()), HasSubstr(changed.Path(row)));
  }
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

}  // namespace
}  // namespace shardpack::testing
