// What a loader allocates for a batch once it has what it needs: augmentation adds nothing.
//
// The rest is libjpeg's for each image, and the batch's own lists.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gtest/gtest.h"
#include "images/augment/pixel_pipeline.h"
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

constexpr uint32_t kWidth = 24, kHeight = 20, kBatch = 8;
constexpr uint64_t kFirst = 20, kEpochs = 100, kSeed = 5;
constexpr char kPlan[] =
    "color_jitter(b=.4, c=.4, s=.4, h=.1) rand_augment erase(p=.5, value=random)";

PixelPipelineOptions Pixels() {
  PixelPipelineOptions options;
  options.crop = {.width = kWidth, .height = kHeight, .flip_probability = 0.5};
  return options;
}

TEST(LoaderAllocations, ThereAreSome) {
  if (!kCounts) GTEST_SKIP();
  const uint64_t before = allocations;
  const std::string text(1000, 'x');
  EXPECT_GT(allocations, before);
}

TEST(LoaderAllocations, NoneForDrawingAndApplying) {
  if (!kCounts) GTEST_SKIP();
  for (const char* const text : {kPlan, "aug_mix(p=0.9)"}) {
    const AugmentPlan plan = *AugmentPlan::Parse(text);
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
    EXPECT_EQ(allocations, before) << text;
  }
}

// Of a loader from before it is opened until it is gone, and so of an exact number of batches.
int64_t AllocationsOf(const Dataset& dataset, const AugmentPlan& plan, uint32_t batch,
                      uint64_t epochs) {
  const uint64_t before = allocations;
  LoaderOptions options{.threads = 1, .io_threads = 0, .epochs = epochs};
  options.decode = Pixels();
  options.augment_seed = kSeed;
  options.augment = plan;
  PageableMemory memory;
  Loader loader = *Loader::Open(
      dataset, *Order::Make({.samples = dataset.size(), .seed = 2, .global_batch = batch}), {},
      options, memory, std::nullopt);
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    while (loader.Next()->has_value()) {
    }
  }
  return static_cast<int64_t>(allocations - before);
}

// Of kEpochs after the first ones, so that what is made once does not count. What depends on when
// threads get the processor only adds, so the least of several runs counts.
int64_t AllocationsOfEpochs(const Dataset& dataset, const std::string& plan,
                            uint32_t batch = kBatch) {
  const AugmentPlan parsed = *AugmentPlan::Parse(plan);
  const auto least = [&](uint64_t epochs) {
    int64_t found = INT64_MAX;
    for (int run = 0; run < 3; ++run)
      found = std::min(found, AllocationsOf(dataset, parsed, batch, epochs));
    return found;
  };
  return least(kFirst + kEpochs) - least(kFirst);
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
  const auto images = static_cast<int64_t>(kEpochs * dataset.size());
  const int64_t without = AllocationsOfEpochs(dataset, "");
  // One for each batch or image would be far more than the few by which the least counts differ.
  EXPECT_LT(std::abs(AllocationsOfEpochs(dataset, kPlan) - without), images / kBatch / 10);
  // Of a batch its lists, of an image libjpeg's memory (benchmarks/log/2026-11-23-augment.md).
  auto pipeline = *PixelPipeline::Create(Pixels());
  std::vector<std::byte> slot(pipeline.output_bytes());
  const auto decode = [&](uint64_t first, uint64_t end) {
    for (uint64_t epoch = first; epoch < end; ++epoch) {
      for (uint64_t id = 0; id < options.samples.size(); ++id) {
        const testing::TestSample& sample = options.samples[id];
        ASSERT_TRUE(pipeline
                        .Run(AsBytes(sample.image), sample.info,
                             {.seed = kSeed, .epoch = epoch, .id = id}, slot.data())
                        .ok());
      }
    }
  };
  decode(0, kFirst);
  const uint64_t before = allocations;
  decode(kFirst, kFirst + kEpochs);
  const auto of_images = static_cast<int64_t>(allocations - before);
  // The same lists for a batch of any size: here for one of all samples.
  const auto lists = [&](int64_t all, int64_t batches) {
    return static_cast<double>(all - of_images) / static_cast<double>(batches);
  };
  const double few = lists(without, images / kBatch);
  const double many = lists(AllocationsOfEpochs(dataset, "", 3 * kBatch), images / (3 * kBatch));
  const std::string found =
      absl::StrCat(of_images, " for ", images, " images; lists: ", few, " for a batch of ", kBatch,
                   ", ", many, " for one of ", 3 * kBatch);
  RecordProperty("allocations", found);
  EXPECT_GT(few, 0) << found;
  EXPECT_LT(many, 1.5 * few) << found;
  (void)RemoveTree(folder);
}

}  // namespace
}  // namespace shardpack
