// BuildTest: builds of images in memory with the toy format, in a scratch folder.
//
//   TEST_F(BuildTest, ...) {
//     MemorySource source(100);
//     ASSERT_TRUE(Run(source, Out("out")).ok());
//
// Lifetime: the folder goes with the test.
#ifndef SHARDPACK_CONVERTERS_BUILDING_BUILD_TESTING_H_
#define SHARDPACK_CONVERTERS_BUILDING_BUILD_TESTING_H_

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "converters/building/build.h"
#include "converters/testing/memory_source.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack::testing {

inline WorkerOptions Named(size_t begin, size_t end) {
  return WorkerOptions{.ranges = {{begin, end}}, .named = true};
}

inline PlanOptions SmallShards() {
  PlanOptions options;
  options.samples_per_shard = 10;
  return options;
}

// Every file in the folder, with its bytes.
inline std::map<std::string, std::string> Snapshot(const std::string& folder) {
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

}  // namespace shardpack::testing

#endif  // SHARDPACK_CONVERTERS_BUILDING_BUILD_TESTING_H_
