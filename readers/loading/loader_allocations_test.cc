// What a loader allocates for a batch once it has what it needs: augmentation adds nothing.
//
// The rest is libjpeg's for each image, and the batch's own lists.
#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "augment/plan.h"
#include "augment/program.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gtest/gtest.h"
#include "images/codecs/decode_testing.h"
#include "readers/loading/loader.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;  // the sanitizer has its own functions
#else
constexpr bool kCounts = true;
#endif

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// In place of those of the C library, which libjpeg and operator new use as well.
extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT: the C library's names
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT
void* __libc_realloc(void* memory, size_t bytes);       // NOLINT
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT

void* malloc(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
}
#endif

namespace shardpack {
namespace {

constexpr uint32_t kWidth = 24, kHeight = 20;
constexpr char kPlan[] =
    "color_jitter(b=.4, c=.4, s=.4, h=.1) rand_augment erase(p=.5, value=random)";

TEST(LoaderAllocations, ThereAreSome) {
  if (!kCounts) GTEST_SKIP();
  const uint64_t before = allocations;
  const std::string text(1000, 'x');
  EXPECT_GT(allocations, before);
}

TEST(LoaderAllocations, NoneForDrawingAndApplying) {
  if (!kCounts) GTEST_SKIP();
  const AugmentPlan plan = *AugmentPlan::Parse(kPlan);
  std::vector<uint8_t> pixels(size_t{kWidth} * kHeight * 3, 90);
  SampleProgram program;
  ProgramRunner runner;
  const auto run = [&](uint64_t id) {
    plan.Draw({.seed = 7, .epoch = 1, .id = id}, kWidth, kHeight, program);
    ASSERT_TRUE(
        runner.Apply(program, {pixels.data(), kWidth, kHeight, 3, size_t{kWidth} * 3}).ok());
  };
  for (uint64_t id = 0; id < 50; ++id) run(id);
  const uint64_t before = allocations;
  for (uint64_t id = 50; id < 500; ++id) run(id);
  EXPECT_EQ(allocations, before);
}

// Of a loader over so many steps, after as many: the batches that it reads ahead are few beside
// them.
uint64_t AllocationsOf(const Dataset& dataset, const std::string& plan) {
  constexpr int kSteps = 300;
  LoaderOptions options{.threads = 1, .io_threads = 0};
  options.decode.emplace();
  options.decode->crop = {.width = kWidth, .height = kHeight, .flip_probability = 0.5};
  options.augment_seed = 5;
  if (!plan.empty()) options.augment = *AugmentPlan::Parse(plan);
  PageableMemory memory;
  Loader loader = *Loader::Open(
      dataset, *Order::Make({.samples = dataset.size(), .seed = 2, .global_batch = 8}), {}, options,
      memory, std::nullopt);
  uint64_t before = 0;
  for (int step = 0; step < 2 * kSteps; ++step) {
    if (step == kSteps) before = allocations;
    EXPECT_TRUE(loader.Next().ok());
  }
  return (allocations - before) / kSteps;
}

TEST(LoaderAllocations, AugmentationAddsNone) {
  if (!kCounts) GTEST_SKIP();
  const std::string folder = testing::MakeTestFolder("allocations");
  testing::TestDatasetOptions options{.shards = 3, .records_per_shard = 8};
  options.samples = testing::MakeTestSamples(options);
  for (uint32_t i = 0; i < options.samples.size(); ++i) {
    const Image jpeg = EncodeJpeg(MakePattern(40, 50, 3, i), {.sampling = {2, 2}});
    options.samples[i].image.assign(jpeg.begin(), jpeg.end());
    options.samples[i].info = {.width = 40, .height = 50, .format = ImageFormat::kJpeg};
  }
  testing::WriteTestDataset(folder, testing::ToyFormat(), options);
  const Dataset dataset = *Dataset::Open(folder);
  EXPECT_EQ(AllocationsOf(dataset, kPlan), AllocationsOf(dataset, ""));
  (void)RemoveTree(folder);
}

}  // namespace
}  // namespace shardpack
