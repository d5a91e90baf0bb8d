// On a GPU: the kernel's bytes are those of PreprocessOnHost; and its speed beside a copy on the
// device. It fails where there is no GPU. cuda/gpu_check/pack takes it to another machine.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "cuda/kernels/augment_round.h"
#include "cuda/kernels/preprocess.h"
#include "cuda/testing/preprocess_testing.h"

namespace shardpack {
namespace {

#define ASSERT_CUDA(call)                                       \
  do {                                                          \
    const cudaError_t error = (call);                           \
    ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); \
  } while (false)

constexpr std::array kFilters = {ResizeFilter::kBox, ResizeFilter::kBilinear,
                                 ResizeFilter::kBicubic, ResizeFilter::kLanczos};

// A batch on the device; each image in memory of its own, exactly as large, so that memcheck sees
// every read beyond it.
class OnDevice {
 public:
  void Upload(const TestBatch& batch) {
    std::vector<PreprocessSample> samples = batch.samples;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].pixels == nullptr) continue;
      samples[i].pixels = static_cast<uint8_t*>(Put(batch.memory[i].get(), batch.sizes_bytes[i])) +
                          batch.offsets[i];
    }
    samples_ = static_cast<PreprocessSample*>(
        Put(samples.data(), samples.size() * sizeof(PreprocessSample)));
  }
  ~OnDevice() {
    for (void* memory : memory_) cudaFree(memory);
  }
  const PreprocessSample* samples() const { return samples_; }

  void* Put(const void* from, size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    memory_.push_back(memory);
    if (from != nullptr) {
      EXPECT_EQ(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    }
    return memory;
  }

 private:
  std::vector<void*> memory_;
  const PreprocessSample* samples_ = nullptr;
};

void ExpectSame(const TestBatch& batch, uint32_t width, uint32_t height, ResizeFilter filter,
                const OutputFormat& format) {
  const std::vector<uint8_t> expected = OnHost(batch, width, height, filter, format);
  OnDevice device;
  device.Upload(batch);
  void* const out = device.Put(nullptr, expected.size());
  PreprocessLaunch launch = LaunchOf(batch, width, height, filter, format, out);
  launch.samples = device.samples();
  ASSERT_EQ(LaunchPreprocess(launch, nullptr), 0);
  ASSERT_CUDA(cudaDeviceSynchronize());
  std::vector<uint8_t> got(expected.size());
  ASSERT_CUDA(cudaMemcpy(got.data(), out, got.size(), cudaMemcpyDeviceToHost));
  size_t other = 0;
  for (size_t i = 0; i < got.size(); ++i) other += got[i] != expected[i];
  ASSERT_EQ(other, 0u) << "of " << got.size() << " bytes: " << width << "x" << height << " filter "
                       << static_cast<int>(filter) << " type " << static_cast<int>(format.type)
                       << " layout " << static_cast<int>(format.layout) << " channels "
                       << batch.channels;
}

class PreprocessOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    ASSERT_TRUE(error == cudaSuccess && count > 0) << "no GPU: " << cudaGetErrorString(error);
    cudaDeviceProp properties = {};
    ASSERT_CUDA(cudaGetDeviceProperties(&properties, 0));
    static bool named = false;
    if (!std::exchange(named, true)) std::printf("%s\n", properties.name);
  }
};

TEST_F(PreprocessOnGpu, SameBytesAsOnTheHost) {
  const OutputFormat numbers = {.mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};
  for (const uint32_t channels : {1u, 3u}) {
    for (const ResizeFilter filter : kFilters) {
      for (const auto [width, height] :
           {std::array{1u, 1u}, {7u, 3u}, {32u, 33u}, {65u, 300u}, {224u, 224u}}) {
        const TestBatch batch =
            MakeTestBatch({.count = 9, .channels = channels, .seed = width, .coarse_boxes = false});
        for (const auto type :
             {PixelType::kU8, PixelType::kF32, PixelType::kF16, PixelType::kBf16}) {
          for (const auto layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
            OutputFormat format = numbers;
            format.type = type;
            format.layout = layout;
            ExpectSame(batch, width, height, filter, format);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_F(PreprocessOnGpu, TurnsAsExifSays) {
  const TestBatch shown = MakeTestBatch({.count = 9, .coarse_boxes = false});
  for (uint8_t exif = 1; exif <= 8; ++exif) {
    for (const auto [width, height] : {std::array{7u, 3u}, {224u, 224u}}) {
      ExpectSame(TurnedBatch(shown, exif), width, height, ResizeFilter::kBilinear, {});
      if (HasFatalFailure()) return;
    }
  }
}

// One of each step, another one first for each sample. Adds the sample's table to `tables`.
PixelProgram ProgramOf(uint32_t sample, std::vector<PixelTable>& tables) {
  PixelProgram program = {};
  PixelTable& table = tables.emplace_back();
  for (uint32_t i = 0; i < 256; ++i) table.of[i] = static_cast<uint8_t>(i * 7 + sample);
  const std::array<PixelStep, 6> steps = {
      {{.kind = PixelStepKind::kTable, .table = static_cast<uint32_t>(tables.size() - 1)},
       {.kind = PixelStepKind::kSaturation, .value = 1.7f, .rest = -0.7f},
       {.kind = PixelStepKind::kHue, .value = 0.21f},
       {.kind = PixelStepKind::kErase,
        .color = {9, 8, 7},
        .left = 3,
        .top = 2,
        .right = 9,
        .bottom = 30},
       {.kind = PixelStepKind::kErase, .left = 1, .top = 1, .right = 6, .bottom = 4, .noise = 77},
       {.kind = PixelStepKind::kGray}}};
  for (uint32_t i = 0; i + 1 < steps.size(); ++i)
    program.steps[program.count++] = steps[(sample + i) % steps.size()];
  return program;
}

TEST_F(PreprocessOnGpu, StepsOnPixelsAreTheHosts) {
  const TestBatch batch = MakeTestBatch({.count = 12, .coarse_boxes = false});
  std::vector<PixelProgram> programs;
  std::vector<PixelTable> tables;
  for (uint32_t i = 0; i < 12; ++i) programs.push_back(ProgramOf(i, tables));
  for (const auto layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
    const OutputFormat format = {.type = PixelType::kF16, .layout = layout};
    for (const auto [width, height] : {std::array{7u, 3u}, {224u, 224u}}) {
      PreprocessLaunch launch =
          LaunchOf(batch, width, height, ResizeFilter::kBilinear, format, nullptr);
      std::vector<uint8_t> expected(launch.output.Bytes(width, height) * 12);
      launch.out = expected.data();
      launch.programs = programs.data();
      launch.pixel_tables = tables.data();
      ASSERT_TRUE(PreprocessOnHost(launch).ok());
      OnDevice device;
      device.Upload(batch);
      launch.samples = device.samples();
      launch.programs = static_cast<const PixelProgram*>(
          device.Put(programs.data(), programs.size() * sizeof(PixelProgram)));
      launch.pixel_tables = static_cast<const PixelTable*>(
          device.Put(tables.data(), tables.size() * sizeof(PixelTable)));
      launch.out = device.Put(nullptr, expected.size());
      ASSERT_EQ(LaunchPreprocess(launch, nullptr), 0);
      std::vector<uint8_t> got(expected.size());
      ASSERT_CUDA(cudaMemcpy(got.data(), launch.out, got.size(), cudaMemcpyDeviceToHost));
      ASSERT_TRUE(got == expected) << width << "x" << height;
    }
  }
}

// Each operation on whole images, and none.
TEST_F(PreprocessOnGpu, RoundsOfAugmentationAreTheHosts) {
  constexpr double kTurn[9] = {0.9, -0.3, 4, 0.3, 0.9, -2, 0.001, 0.002, 1};
  for (const uint32_t channels : {1u, 3u}) {
    for (const auto [width, height] : {std::array{7u, 3u}, {65u, 40u}, {224u, 224u}}) {
      std::vector<RoundTail> tails;
      for (int kind = 0; kind <= static_cast<int>(TailKind::kWarp); ++kind) {
        for (int how = 0; how < 4; ++how) {
          RoundTail tail{.kind = static_cast<TailKind>(kind),
                         .bilinear = how % 2 == 1,
                         .perspective = how >= 2,
                         .fill = 5,
                         .factor = 1.4f,
                         .rest = -0.4f};
          std::copy_n(kTurn, 9, tail.matrix);
          tails.push_back(tail);
        }
      }
      const auto count = static_cast<uint32_t>(tails.size());
      std::vector<PixelProgram> programs;
      std::vector<PixelTable> pixel_tables;
      for (uint32_t i = 0; i < count; ++i) programs.push_back(ProgramOf(i, pixel_tables));
      std::vector<uint8_t> levels(size_t{width} * height * channels * count);
      for (size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<uint8_t>(i * i / 7 + i);
      std::vector<RoundStatistics> statistics(count);
      std::vector<RoundTables> tables(count);
      RoundLaunch launch{.tails = tails.data(),
                         .programs = programs.data(),
                         .pixel_tables = pixel_tables.data(),
                         .from = levels.data(),
                         .count = count,
                         .channels = channels,
                         .width = width,
                         .height = height,
                         .statistics = statistics.data(),
                         .tables = tables.data(),
                         .output = PixelOutput({.type = PixelType::kF32}, channels)};
      std::vector<uint8_t> expected(launch.output->Bytes(width, height) * count);
      launch.out = expected.data();
      AugmentRoundOnHost(launch);
      OnDevice device;
      const auto put = [&](const auto& values) {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        return static_cast<Value*>(device.Put(values.data(), values.size() * sizeof(Value)));
      };
      launch.tails = put(tails);
      launch.programs = put(programs);
      launch.pixel_tables = put(pixel_tables);
      launch.from = put(levels);
      launch.statistics = put(statistics);
      launch.tables = put(tables);
      launch.out = device.Put(nullptr, expected.size());
      ASSERT_EQ(LaunchAugmentRound(launch, nullptr), 0);
      std::vector<uint8_t> got(expected.size());
      ASSERT_CUDA(cudaMemcpy(got.data(), launch.out, got.size(), cudaMemcpyDeviceToHost));
      ASSERT_TRUE(got == expected) << width << "x" << height << " channels " << channels;
    }
  }
}

// As many blocks as the registers and the shared memory of this GPU allow, and not half of them
// because the rest of the memory is a cache.
TEST_F(PreprocessOnGpu, FillsTheMultiprocessors) {
  cudaDeviceProp properties = {};
  ASSERT_CUDA(cudaGetDeviceProperties(&properties, 0));
  for (const uint32_t channels : {1u, 3u}) {
    const PreprocessOccupancy found = MeasurePreprocess(channels);
    ASSERT_EQ(found.error, cudaSuccess);
    const auto by_memory =
        static_cast<int>(properties.sharedMemPerMultiprocessor /
                         (found.shared_bytes + properties.reservedSharedMemPerBlock));
    const int by_registers = properties.regsPerMultiprocessor / (found.registers * 256);
    std::printf("%u channels: %d registers, %zu bytes shared, %d blocks a multiprocessor\n",
                channels, found.registers, found.shared_bytes, found.blocks);
    EXPECT_EQ(found.blocks,
              std::min({by_memory, by_registers, properties.maxThreadsPerMultiProcessor / 256}));
  }
}

TEST_F(PreprocessOnGpu, LargeReductionsAndNoPixels) {
  for (const ResizeFilter filter : kFilters) {
    TestBatch batch;
    AddImage(MakePattern(2500, 900, 3), {0, 0, 2500, 900}, false, 1, 3, batch);
    AddImage(MakePattern(700, 2500, 3), {3.25, 1.5, 690, 2500}, true, 0, 0, batch);
    AddImage(MakePattern(9, 9, 3), {0, 0, 9, 9}, true, 0, 0, batch);
    batch.samples[2].pixels = nullptr;
    for (const auto [width, height] : {std::array{2u, 3u}, {5u, 1u}, {9u, 40u}, {64u, 64u}}) {
      ExpectSame(batch, width, height, filter, {});
      if (HasFatalFailure()) return;
    }
  }
}

// Median milliseconds of `work` by events.
template <typename Work>
float Median(const Work& work) {
  cudaEvent_t from, to;
  EXPECT_EQ(cudaEventCreate(&from), cudaSuccess);
  EXPECT_EQ(cudaEventCreate(&to), cudaSuccess);
  for (int i = 0; i < 3; ++i) work();
  std::vector<float> times;
  for (int i = 0; i < 31; ++i) {
    EXPECT_EQ(cudaEventRecord(from), cudaSuccess);
    work();
    EXPECT_EQ(cudaEventRecord(to), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(to), cudaSuccess);
    float ms = 0;
    EXPECT_EQ(cudaEventElapsedTime(&ms, from, to), cudaSuccess);
    times.push_back(ms);
  }
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  std::nth_element(times.begin(), times.begin() + 15, times.end());
  return times[15];
}

struct Speed {
  const char* name;
  uint32_t width, height;
  PixelBox box;
  ResizeFilter filter;
};

// Bytes that the box covers and that are written, against the same traffic of a plain copy.
TEST_F(PreprocessOnGpu, BandwidthAgainstACopy) {
  constexpr uint32_t kCount = 256, kSide = 224;
  constexpr size_t kCopyBytes = size_t{256} << 20;
  OnDevice copies;
  void* const a = copies.Put(nullptr, kCopyBytes);
  void* const b = copies.Put(nullptr, kCopyBytes);
  ASSERT_CUDA(cudaMemset(a, 1, kCopyBytes));
  const float copy_ms =
      Median([&] { cudaMemcpyAsync(b, a, kCopyBytes, cudaMemcpyDeviceToDevice); });
  const double copy_rate = 2.0 * kCopyBytes / copy_ms / 1e6;
  std::printf("copy on the device: %.0f GB/s, read and written\n", copy_rate);
  const OutputFormat f16 = {.type = PixelType::kF16,
                            .layout = PixelLayout::kNchw,
                            .mean = {0.485f, 0.456f, 0.406f},
                            .std = {0.229f, 0.224f, 0.225f}};
  for (const Speed& speed :
       {Speed{"500x375 whole, bilinear", 500, 375, {0, 0, 500, 375}, ResizeFilter::kBilinear},
        Speed{"500x375 part, bilinear", 500, 375, {60, 50, 360, 320}, ResizeFilter::kBilinear},
        Speed{"500x375 whole, bicubic", 500, 375, {0, 0, 500, 375}, ResizeFilter::kBicubic},
        Speed{"500x375 whole, lanczos", 500, 375, {0, 0, 500, 375}, ResizeFilter::kLanczos},
        Speed{"1920x1080 whole, bilinear",
              1920,
              1080,
              {0, 0, 1920, 1080},
              ResizeFilter::kBilinear}}) {
    TestBatch batch;
    const TestPixels image = MakePattern(speed.width, speed.height, 3);
    for (uint32_t i = 0; i < kCount; ++i) AddImage(image, speed.box, i % 2 == 1, 0, 0, batch);
    OnDevice device;
    device.Upload(batch);
    const size_t out_bytes = PixelOutput(f16, 3).Bytes(kSide, kSide) * kCount;
    void* const out = device.Put(nullptr, out_bytes);
    PreprocessLaunch launch = LaunchOf(batch, kSide, kSide, speed.filter, f16, out);
    launch.samples = device.samples();
    const float ms = Median([&] { EXPECT_EQ(LaunchPreprocess(launch, nullptr), 0); });
    const double in_bytes =
        (speed.box.right - speed.box.left) * (speed.box.bottom - speed.box.top) * 3.0 * kCount;
    const double rate = (in_bytes + static_cast<double>(out_bytes)) / ms / 1e6;
    std::printf(
        "%u x (%s -> %ux%u f16 NCHW): %.1f us, %.0f images/s, %.0f GB/s, %.2f of the copy\n",
        kCount, speed.name, kSide, kSide, ms * 1e3, kCount / ms * 1e3, rate, rate / copy_rate);
  }
}

}  // namespace
}  // namespace shardpack
