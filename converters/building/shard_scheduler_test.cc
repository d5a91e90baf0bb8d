// Builds in which something throws, fails late or is stopped, or in which memory is scarce. See
// build_test.cc for the rest.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "converters/building/build.h"
#include "converters/publishing/shard_claims.h"
#include "converters/publishing/workers_state.h"
#include "converters/testing/memory_source.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::MemorySource;
using ::shardpack::testing::ScratchFolder;
using ::shardpack::testing::ToyFormat;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kImages = 300;

PlanOptions SmallShards() {
  PlanOptions options;
  options.samples_per_shard = 10;
  return options;
}

PlanOptions LargeImages() {
  PlanOptions options = SmallShards();
  options.pixels.resize = ResizeMode::kExact;
  options.pixels.width = options.pixels.height = 96;
  return options;
}

class SchedulerTest : public ::testing::Test {
 protected:
  Plan MakePlan(const PlanOptions& options, const Format& format = ToyFormat()) {
    return *Plan::Make(*source_.List(), options, format);
  }
  absl::StatusOr<RunReport> Run(const Plan& plan, const std::string& out, int jobs = 2,
                                uint64_t memory_bytes = 0) {
    BuildOptions options;
    options.out = scratch_.File(out);
    options.jobs = jobs;
    options.memory_bytes = memory_bytes;
    options.output.fsync = false;
    BuildProgress progress;
    const std::atomic<int> stop{0};
    return Build(plan, source_, options, pool_, progress, stop);
  }
  bool IsPublished(const std::string& out) {
    return std::filesystem::exists(scratch_.File(out + "/manifest.json"));
  }

  ScratchFolder scratch_;
  IoPool pool_{4};  // one for all runs of a test: what a run leaves in it must do no harm
  MemorySource source_{kImages};
};

// When a writer throws.
enum class Moment : uint8_t { kCreate, kAppend, kFinish };

template <typename Exception>
class ThrowingWriter : public ShardWriter {
 public:
  ThrowingWriter(std::unique_ptr<ShardWriter> writer, Moment moment)
      : writer_(std::move(writer)), moment_(moment) {}
  absl::Status Append(const SampleView& sample) override {
    if (moment_ == Moment::kAppend && sample.number > kImages / 2) throw Exception();
    return writer_->Append(sample);
  }
  absl::Status Finish() override {
    if (moment_ == Moment::kFinish) throw Exception();
    return writer_->Finish();
  }

 private:
  std::unique_ptr<ShardWriter> writer_;
  const Moment moment_;
};

template <typename Exception, Moment moment>
Format ThrowingFormat() {
  Format format = ToyFormat();
  format.create =
      +[](StagedFile& file, const ShardSpec& spec) -> absl::StatusOr<std::unique_ptr<ShardWriter>> {
    if (moment == Moment::kCreate) throw Exception();
    auto writer = ToyFormat().create(file, spec);
    if (!writer.ok()) return writer.status();
    return std::make_unique<ThrowingWriter<Exception>>(*std::move(writer), moment);
  };
  return format;
}

struct Odd : std::runtime_error {
  Odd() : std::runtime_error("odd bytes") {}
};

TEST_F(SchedulerTest, NoMemoryForAReadEndsTheRunWhichResumes) {
  for (const PlanOptions& options : {SmallShards(), LargeImages()}) {
    const Plan plan = MakePlan(options);
    const std::string kind = options.pixels.identity() ? "kept" : "resized";
    auto whole = Run(plan, "whole-" + kind);
    ASSERT_TRUE(whole.ok()) << whole.status();
    for (const int jobs : {1, 2, 16}) {
      for (const uint64_t after : {1, 40, 299}) {
        std::atomic<uint64_t> seen{0};
        source_.set_on_load([&](uint64_t) {
          if (++seen >= after) throw std::bad_alloc();
        });
        const std::string out = absl::StrCat(kind, "-", jobs, "-", after);
        const auto ended = Run(plan, out, jobs);
        source_.set_on_load(nullptr);
        EXPECT_EQ(ended.status().code(), absl::StatusCode::kResourceExhausted) << ended.status();
        EXPECT_THAT(std::string(ended.status().message()), HasSubstr("out of memory"));
        EXPECT_THAT(std::string(ended.status().message()), HasSubstr("--memory"));
        EXPECT_THAT(std::string(ended.status().message()), HasSubstr("--jobs"));
        EXPECT_FALSE(IsPublished(out));
        const auto resumed = Run(plan, out, jobs);
        ASSERT_TRUE(resumed.ok()) << resumed.status();
        EXPECT_EQ(resumed->manifest.Identity(), whole->manifest.Identity());
      }
    }
  }
}

TEST_F(SchedulerTest, AShardThatOthersFailedAtDoesNotEndTheShardsThatAreOpen) {
  // Shards of several chunks, of which some are issued after the last shard was opened.
  MemorySource source(3000);
  PlanOptions large;
  large.samples_per_shard = 600;
  const Plan plan = *Plan::Make(*source.List(), large, ToyFormat());
  ASSERT_EQ(plan.shards().size(), 5u);
  constexpr uint32_t kFailed = 4;
  BuildOptions options;
  options.out = scratch_.File("out");
  options.jobs = 8;
  options.output.fsync = false;
  options.output.worker = WorkerOptions{.ranges = {{0, 1}}, .named = true};
  BuildProgress progress;
  const std::atomic<int> stop{0};
  ASSERT_TRUE(Build(plan, source, options, pool_, progress, stop).ok());
  for (size_t n = 0; n < ShardFailure::kMostWorkers; ++n) {
    std::ofstream(scratch_.File(absl::StrCat("out/.pack/failed/00000", kFailed, ".node", n,
                                             "-00000000-1-0123456789abcde", n)))
        << "odd bytes";
  }
  options.output.worker = WorkerOptions{.join = true};
  const auto joined = Build(plan, source, options, pool_, progress, stop);
  EXPECT_TRUE(absl::IsDataLoss(joined.status())) << joined.status();
  EXPECT_THAT(std::string(joined.status().message()), HasSubstr("failed at shard 4"));
  const auto state = ReadWorkersState(options.out, plan, 60, pool_);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->Unfinished(), std::set<uint32_t>{kFailed});
}

TEST_F(SchedulerTest, NoMemoryForAWriterEndsTheRun) {
  for (const Format& format : {ThrowingFormat<std::bad_alloc, Moment::kCreate>(),
                               ThrowingFormat<std::bad_alloc, Moment::kAppend>(),
                               ThrowingFormat<std::bad_alloc, Moment::kFinish>()}) {
    for (const PlanOptions& options : {SmallShards(), LargeImages()}) {
      // Little memory: chunks are parked, and appended in pieces.
      const auto ended = Run(MakePlan(options, format), "out", 2, 1 << 16);
      EXPECT_EQ(ended.status().code(), absl::StatusCode::kResourceExhausted) << ended.status();
      EXPECT_THAT(std::string(ended.status().message()), HasSubstr("--memory"));
      EXPECT_FALSE(IsPublished("out"));
      std::filesystem::remove_all(scratch_.File("out"));
    }
  }
}

TEST_F(SchedulerTest, AnyOtherExceptionEndsTheRunAsAnInternalError) {
  const Format format = ThrowingFormat<Odd, Moment::kAppend>();
  const auto ended = Run(MakePlan(SmallShards(), format), "out");
  EXPECT_EQ(ended.status().code(), absl::StatusCode::kInternal) << ended.status();
  EXPECT_THAT(std::string(ended.status().message()), HasSubstr("odd bytes"));
  EXPECT_FALSE(IsPublished("out"));
  const Format strange = ThrowingFormat<int, Moment::kFinish>();
  EXPECT_EQ(Run(MakePlan(SmallShards(), strange), "strange").status().code(),
            absl::StatusCode::kInternal);
}

// The threads that append to the shards of the format below.
std::mutex appenders_mutex;
std::set<std::thread::id> appenders;

class NotingWriter : public ShardWriter {
 public:
  explicit NotingWriter(std::unique_ptr<ShardWriter> writer) : writer_(std::move(writer)) {}
  absl::Status Append(const SampleView& sample) override {
    const std::lock_guard lock(appenders_mutex);
    appenders.insert(std::this_thread::get_id());
    return writer_->Append(sample);
  }
  absl::Status Finish() override { return writer_->Finish(); }

 private:
  std::unique_ptr<ShardWriter> writer_;
};

TEST_F(SchedulerTest, ThreadsThatReadAlsoAppendUnlessTheyAreTooFew) {
  Format format = ToyFormat();
  format.create =
      +[](StagedFile& file, const ShardSpec& spec) -> absl::StatusOr<std::unique_ptr<ShardWriter>> {
    auto writer = ToyFormat().create(file, spec);
    if (!writer.ok()) return writer.status();
    return std::make_unique<NotingWriter>(*std::move(writer));
  };
  const Plan plan = MakePlan(SmallShards(), format);
  std::mutex mutex;
  std::set<std::thread::id> readers;
  source_.set_on_load([&](uint64_t) {
    const std::lock_guard lock(mutex);
    readers.insert(std::this_thread::get_id());
  });
  const auto both = [&] {
    std::set<std::thread::id> both;
    std::set_intersection(readers.begin(), readers.end(), appenders.begin(), appenders.end(),
                          std::inserter(both, both.end()));
    return both;
  };
  // More computing threads than the pool ever has.
  ASSERT_TRUE(Run(plan, "too-few", pool_.threads() + 1).ok());
  EXPECT_THAT(both(), IsEmpty());
  readers.clear();
  appenders.clear();
  ASSERT_TRUE(Run(plan, "enough", pool_.threads()).ok());
  EXPECT_THAT(both(), Not(IsEmpty()));
  source_.set_on_load(nullptr);
  appenders.clear();
}

// What the writers of the format below have done, and what they do.
struct Writers {
  std::mutex mutex;
  std::condition_variable changed;
  size_t created = 0, finished = 0, most_open = 0;
  uint64_t appended = 0;  // samples of all shards
  // Called with the number of the shard's first sample, without the lock.
  std::function<absl::Status(uint64_t first)> on_finish;

  template <typename Condition>
  bool WaitUntil(Condition condition, std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, at_most, condition);
  }
};
std::unique_ptr<Writers> writers;

class CountedWriter : public ShardWriter {
 public:
  explicit CountedWriter(std::unique_ptr<ShardWriter> writer) : writer_(std::move(writer)) {
    const std::lock_guard lock(writers->mutex);
    ++writers->created;
    writers->most_open = std::max(writers->most_open, writers->created - writers->finished);
    writers->changed.notify_all();
  }
  absl::Status Append(const SampleView& sample) override {
    first_ = std::min(first_, sample.number);
    const absl::Status status = writer_->Append(sample);
    const std::lock_guard lock(writers->mutex);
    ++writers->appended;
    writers->changed.notify_all();
    return status;
  }
  absl::Status Finish() override {
    const absl::Status status = writers->on_finish(first_);
    if (!status.ok()) return status;
    const std::lock_guard lock(writers->mutex);
    ++writers->finished;
    return writer_->Finish();
  }

 private:
  std::unique_ptr<ShardWriter> writer_;
  uint64_t first_ = UINT64_MAX;
};

// Restarts the count.
const Format& CountingFormat() {
  writers = std::make_unique<Writers>();
  static const Format counting = [] {
    Format format = ToyFormat();
    format.create = +[](StagedFile& file,
                        const ShardSpec& spec) -> absl::StatusOr<std::unique_ptr<ShardWriter>> {
      auto writer = ToyFormat().create(file, spec);
      if (!writer.ok()) return writer.status();
      return std::make_unique<CountedWriter>(*std::move(writer));
    };
    return format;
  }();
  return counting;
}

TEST_F(SchedulerTest, FewShardsWaitToBeFinished) {
  PlanOptions tiny;
  tiny.samples_per_shard = 3;
  const Plan plan = MakePlan(tiny, CountingFormat());
  // No shard is finished before all have been opened, or nothing else happens.
  bool released = false;
  writers->on_finish = [&](uint64_t) {
    writers->WaitUntil([&] { return released || writers->created == plan.shards().size(); },
                       std::chrono::milliseconds(500));
    const std::lock_guard lock(writers->mutex);
    released = true;
    writers->changed.notify_all();
    return absl::OkStatus();
  };
  const int jobs = pool_.threads();
  const auto built = Run(plan, "out", jobs);
  ASSERT_TRUE(built.ok()) << built.status();
  const int chunks_in_flight = pool_.threads() + 2 * jobs;
  EXPECT_LE(writers->most_open, static_cast<size_t>(jobs + chunks_in_flight + jobs));
}

// As many shards as there are computing threads are being finished, which waits for the disk.
TEST_F(SchedulerTest, ShardsAreFilledWhileOthersAreFinished) {
  PlanOptions in_order = SmallShards();  // a row is its position
  in_order.shuffle = false;
  const Plan plan = MakePlan(in_order, CountingFormat());
  const auto jobs = static_cast<size_t>(pool_.threads()) + 1;  // so that the readers do not append
  std::set<uint64_t> first_shards;
  size_t finishing = 0;
  bool stalled = false;
  const auto wait_until = [&](const std::function<bool()>& condition) {
    const bool reached = writers->WaitUntil([&] { return stalled || condition(); },
                                            std::chrono::milliseconds(10'000));
    const std::lock_guard lock(writers->mutex);
    stalled = stalled || !reached;
    writers->changed.notify_all();
  };
  source_.set_on_load([&](uint64_t row) {
    wait_until([&] {
      const uint64_t shard = row / in_order.samples_per_shard;
      if (first_shards.size() < jobs) first_shards.insert(shard);
      return writers->created > jobs && (first_shards.contains(shard) || finishing >= jobs);
    });
  });
  writers->on_finish = [&](uint64_t) {
    {
      const std::lock_guard lock(writers->mutex);
      ++finishing;
      writers->changed.notify_all();
    }
    wait_until([&] { return writers->appended > jobs * in_order.samples_per_shard; });
    return absl::OkStatus();
  };
  const auto built = Run(plan, "out", static_cast<int>(jobs));
  source_.set_on_load(nullptr);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_FALSE(stalled);
}

// A shard that is finished before its last chunk counts as appended hangs the run now and
// then.
TEST_F(SchedulerTest, ShardsThatFailWhenTheyAreFinishedAreBuiltOnceMore) {
  PlanOptions tiny;
  tiny.samples_per_shard = 1;
  for (int run = 0; run < 8; ++run) {
    const Plan plan = MakePlan(tiny, CountingFormat());
    std::mutex mutex;
    std::set<uint64_t> failed;
    writers->on_finish = [&](uint64_t first) {
      const std::lock_guard lock(mutex);
      return failed.insert(first).second ? absl::DataLossError("read back other bytes")
                                         : absl::OkStatus();
    };
    const auto built = Run(plan, absl::StrCat("out", run), pool_.threads());
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_EQ(failed.size(), kImages);
  }
}

TEST_F(SchedulerTest, NoMemoryForAComparisonEndsTheRun) {
  const Plan plan = MakePlan(SmallShards());
  ASSERT_TRUE(Run(plan, "out").ok());
  source_.set_on_load([](uint64_t row) {
    if (row == 100) throw std::bad_alloc();
  });
  BuildOptions options;
  options.out = scratch_.File("out");
  options.output.compare = true;
  BuildProgress progress;
  const std::atomic<int> stop{0};
  const auto ended = Build(plan, source_, options, pool_, progress, stop);
  source_.set_on_load(nullptr);
  EXPECT_EQ(ended.status().code(), absl::StatusCode::kResourceExhausted) << ended.status();
  EXPECT_TRUE(IsPublished("out"));
}

TEST_F(SchedulerTest, ScarceMemoryChangesNothing) {
  PlanOptions options = LargeImages();
  options.compute_stats = true;
  const Plan plan = MakePlan(options);
  const auto plenty = Run(plan, "plenty");
  const auto scarce = Run(plan, "scarce", 2, 1 << 16);
  ASSERT_TRUE(plenty.ok()) << plenty.status();
  ASSERT_TRUE(scarce.ok()) << scarce.status();
  EXPECT_EQ(scarce->manifest.Identity(), plenty->manifest.Identity());
  EXPECT_EQ(scarce->manifest.facts.pixel_sums, plenty->manifest.facts.pixel_sums);
  EXPECT_EQ(scarce->manifest.facts.pixel_sums.at("images"), kImages);
}

}  // namespace
}  // namespace shardpack
