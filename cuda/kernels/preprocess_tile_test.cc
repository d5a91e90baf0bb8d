// The kernel's code by a block of real threads: the same bytes as by one, and under the thread
// sanitizer no two threads meet without a barrier.
#include "cuda/kernels/preprocess_tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "cuda/testing/preprocess_testing.h"

namespace shardpack {
namespace {

// One thread's view of a block. Calls are dealt out in any order.
struct ThreadBlock {
  uint32_t thread, threads;
  std::barrier<>* barrier;

  template <typename F>
  void Spread(uint32_t count, const F& f) const {
    // The last ones first, for odd threads.
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t call = thread % 2 == 0 ? i : count - 1 - i;
      if (call % threads == thread) f(call);
    }
  }
  template <typename F>
  void SpreadRows(uint32_t rows, uint32_t columns, const F& f) const {
    Spread(rows * columns, [&](uint32_t i) { f(i / columns, i % columns); });
  }
  void Wait() const { barrier->arrive_and_wait(); }
};

std::vector<uint8_t> ByThreads(const TestBatch& batch, uint32_t width, uint32_t height,
                               ResizeFilter filter, const OutputFormat& format) {
  constexpr uint32_t kThreads = 3;
  const PixelOutput output(format, batch.channels);
  std::vector<uint8_t> out(output.Bytes(width, height) * batch.samples.size());
  const auto work = MakePreprocessWork(LaunchOf(batch, width, height, filter, format, out.data()));
  // A kernel's shared memory holds whatever was there.
  const auto memory = std::make_unique<TileMemory>();
  std::memset(memory.get(), 0xCD, sizeof(TileMemory));
  std::barrier barrier(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const ThreadBlock block{t, kThreads, &barrier};
      for (uint64_t tile = 0; tile < TileCount(work); ++tile) {
        if (batch.channels == 1) {
          PreprocessTile<1>(work, tile, *memory, block);
        } else {
          PreprocessTile<3>(work, tile, *memory, block);
        }
        block.Wait();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return out;
}

void ExpectSame(const TestBatch& batch, uint32_t width, uint32_t height, ResizeFilter filter,
                const OutputFormat& format) {
  ASSERT_EQ(ByThreads(batch, width, height, filter, format),
            OnHost(batch, width, height, filter, format))
      << width << "x" << height << " filter " << static_cast<int>(filter);
}

TEST(PreprocessTile, ThreadsShareATile) {
  const OutputFormat f16 = {.type = PixelType::kF16, .layout = PixelLayout::kNchw};
  for (const uint32_t channels : {1u, 3u}) {
    TestBatch batch = MakeTestBatch({.count = 3, .channels = channels});
    batch.samples[2].pixels = nullptr;
    ExpectSame(batch, 33, 70, ResizeFilter::kBilinear, {});
    ExpectSame(batch, 40, 28, ResizeFilter::kLanczos, f16);
    for (const uint8_t exif : {3, 6, 7}) {
      ExpectSame(TurnedBatch(batch, exif), 33, 70, ResizeFilter::kBilinear, {});
    }
  }
}

TEST(PreprocessTile, ThreadsShareAPixel) {
  TestBatch batch;
  AddImage(MakePattern(2000, 300, 3), {0, 0, 2000, 300}, true, 1, 0, batch);
  ExpectSame(batch, 3, 2, ResizeFilter::kLanczos, {});
  ExpectSame(batch, 2, 40, ResizeFilter::kBicubic, {});
}

// A line's taps lie among those that it is given, which lie in the input and in the memory.
void ExpectCovers(const TileMemory::Axis& axis, const ResizeTaps& taps) {
  const EvenTaps even = EvenTapsOf(axis, taps);
  ASSERT_EQ(even.first + even.before, taps.first);
  ASSERT_LE(even.before + taps.count, even.count);
  ASSERT_LE(even.first + even.count, axis.in_size);
  ASSERT_LE(even.count, axis.taps);
}

// Lines that meet an edge have as many taps as others, and there are hardly any with more.
TEST(PreprocessTile, AllLinesHaveAsManyTaps) {
  uint32_t lines = 0, even_lines = 0, padded = 0;
  for (const ResizeFilter filter : {ResizeFilter::kBox, ResizeFilter::kBilinear,
                                    ResizeFilter::kBicubic, ResizeFilter::kLanczos}) {
    for (uint32_t in = 100; in < 700; in += 7) {
      const ResizeAxis axis = MakeResizeAxis(filter, 0, in, in, 224);
      const TileMemory::Axis shared = SharedAxis(axis);
      for (uint32_t i = 0; i < 224; ++i) {
        const ResizeTaps taps = TapsOf(axis, i);
        const EvenTaps even = EvenTapsOf(shared, taps);
        ++lines;
        even_lines += even.count == shared.even_taps;
        padded += even.count != taps.count;
      }
    }
  }
  EXPECT_GT(even_lines, lines - lines / 1000);
  EXPECT_GT(padded, lines / 4);
}

// Each of an NHWC result's lines of 16 bytes, at every width and type, by threads that share
// `stage`; and pixel by pixel where rows are no such lines.
TEST(PreprocessTile, LinesOfPixelsSideBySide) {
  const TestBatch three = MakeTestBatch({.count = 2, .channels = 3, .seed = 4});
  const TestBatch one = MakeTestBatch({.count = 2, .channels = 1, .seed = 5});
  for (const PixelType type :
       {PixelType::kU8, PixelType::kF16, PixelType::kBf16, PixelType::kF32}) {
    const OutputFormat planes = {.type = type,
                                 .layout = PixelLayout::kNchw,
                                 .mean = {0.4f, 0.5f, 0.6f},
                                 .std = {0.2f, 0.3f, 0.4f}};
    OutputFormat together = planes;
    together.layout = PixelLayout::kNhwc;
    for (const TestBatch* const batch : {&three, &one}) {
      for (const uint32_t width : {4u, 8u, 16u, 20u, 32u, 40u, 48u, 72u}) {
        const std::vector<uint8_t> by_planes =
            OnHost(*batch, width, 9, ResizeFilter::kBilinear, planes);
        const std::vector<uint8_t> got =
            OnHost(*batch, width, 9, ResizeFilter::kBilinear, together);
        const size_t bytes = BytesOf(type), channels = batch->channels, plane = width * size_t{9};
        for (size_t n = 0; n < batch->samples.size() * plane * channels; ++n) {
          const size_t image = n / (plane * channels), at = n / channels % plane;
          const size_t in_planes = (image * channels + n % channels) * plane + at;
          ASSERT_EQ(std::memcmp(&got[n * bytes], &by_planes[in_planes * bytes], bytes), 0)
              << "width " << width << " type " << static_cast<int>(type) << " number " << n;
        }
        ExpectSame(*batch, width, 9, ResizeFilter::kBilinear, together);
      }
    }
  }
}

TEST(PreprocessTile, PartsFitTheMemory) {
  const auto memory = std::make_unique<TileMemory>();
  std::mt19937_64 random(3);
  uint32_t whole = 0, parts = 0, wide = 0;
  for (int i = 0; i < 200'000; ++i) {
    const auto any = [&](uint32_t bits) {
      return 1 + static_cast<uint32_t>(random() % (uint64_t{1} << (1 + random() % bits)));
    };
    const auto filter = static_cast<ResizeFilter>(random() % 4);
    const uint32_t in_x = any(15), in_y = any(15), out_x = any(10), out_y = any(10);
    const auto columns = MakeResizeAxis(filter, 0, in_x, in_x, out_x);
    const auto rows = MakeResizeAxis(filter, 0.25, in_y, in_y, out_y);
    memory->columns = SharedAxis(columns);
    memory->rows = SharedAxis(rows);
    ChooseParts(*memory);
    const uint32_t width = 1u << memory->width_bits, height = 1u << memory->height_bits;
    ++(width == 32 && height == 64 ? whole : memory->width_bits == 0 ? wide : parts);
    if (memory->width_bits == 0) continue;
    ASSERT_GE(width, 4u);
    ASSERT_LE(memory->columns.taps * width + memory->rows.taps * height, TileMemory::kWeights);
    // The part at any place.
    const auto range = [](const ResizeAxis& axis, uint32_t out, uint32_t first, uint32_t size) {
      const TileMemory::Axis shared = SharedAxis(axis);
      const EvenTaps a = EvenTapsOf(shared, TapsOf(axis, std::min(first, out - 1)));
      const EvenTaps b = EvenTapsOf(shared, TapsOf(axis, std::min(first + size, out) - 1));
      return std::pair(a.first, b.first + b.count);
    };
    const auto [left, right] =
        range(columns, out_x, static_cast<uint32_t>(random() % out_x) / width * width, width);
    const auto [top, bottom] =
        range(rows, out_y, static_cast<uint32_t>(random() % out_y) / height * height, height);
    ASSERT_LE(StageWidth(left, right), TileMemory::kStageWords / TileMemory::kRowsACall);
    ASSERT_LT((bottom - top + TileMemory::kRowsACall - 1) * width, TileMemory::kMiddleWords);
    for (uint32_t k = 0; k < 3; ++k) {
      const uint32_t x = static_cast<uint32_t>(random() % out_x);
      ExpectCovers(memory->columns, TapsOf(columns, x));
      const uint32_t y = static_cast<uint32_t>(random() % out_y);
      ExpectCovers(memory->rows, TapsOf(rows, y));
    }
  }
  EXPECT_GT(whole, 50'000u);
  EXPECT_GT(parts, 10'000u);
  EXPECT_GT(wide, 1'000u);
}

}  // namespace
}  // namespace shardpack
