#include "cuda/testing/preprocess_testing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

namespace shardpack {
namespace {

std::pair<double, double> Edges(uint32_t length, bool coarse, std::mt19937& random) {
  if (random() % 4 == 0) return {0.0, double(length)};
  std::uniform_real_distribution<double> any(0, length);
  double first = any(random), last = any(random);
  if (first > last) std::swap(first, last);
  if (coarse) {
    first = std::floor(first * 64) / 64;
    last = std::floor(last * 64) / 64;
  }
  if (last - first < 0.5) return {0.0, 0.5};
  return {first, last};
}

}  // namespace

void AddImage(TestPixels image, const PixelBox& box, bool mirror, uint32_t offset, uint32_t gap,
              TestBatch& batch) {
  const uint32_t row_bytes = image.width * image.channels, stride = row_bytes + gap;
  const uint32_t size = offset + stride * (image.height - 1) + row_bytes;
  auto memory = std::make_unique<uint8_t[]>(size);
  std::memset(memory.get(), 0xA5, size);
  uint8_t* const pixels = memory.get() + offset;
  for (uint32_t y = 0; y < image.height; ++y) {
    std::memcpy(pixels + size_t{y} * stride, image.bytes.data() + size_t{y} * row_bytes, row_bytes);
  }
  batch.samples.push_back({pixels, image.width, image.height, stride, box, mirror, {}});
  batch.images.push_back(std::move(image));
  batch.memory.push_back(std::move(memory));
  batch.offsets.push_back(offset);
  batch.sizes_bytes.push_back(size);
}

TestBatch MakeTestBatch(const TestBatchOptions& options) {
  std::mt19937 random(options.seed);
  const auto side = [&] {
    return options.min_side + random() % (options.max_side - options.min_side + 1);
  };
  TestBatch batch;
  batch.channels = options.channels;
  for (uint32_t i = 0; i < options.count; ++i) {
    const auto width = static_cast<uint32_t>(side()), height = static_cast<uint32_t>(side());
    TestPixels image = MakePattern(width, height, options.channels, options.seed + i);
    const auto [left, right] = Edges(width, options.coarse_boxes, random);
    const auto [top, bottom] = Edges(height, options.coarse_boxes, random);
    const bool mirror = random() % 2 == 1;
    const auto offset = static_cast<uint32_t>(random() % 8), gap = uint32_t{random() % 3 == 0};
    AddImage(std::move(image), {left, top, right, bottom}, mirror, offset,
             options.packed ? 0 : gap * static_cast<uint32_t>(random() % 40), batch);
  }
  return batch;
}

// By EXIF's own words: where the stored image's first row and first column are seen.
TestBatch TurnedBatch(const TestBatch& batch, uint8_t exif) {
  constexpr bool kRowsAreColumns[] = {false, false, false, false, true, true, true, true};
  // Whether the first row is seen at the bottom or right, and the first column at the right or
  // bottom.
  constexpr bool kRowsBackwards[] = {false, false, true, true, false, true, true, false};
  constexpr bool kColumnsBackwards[] = {false, true, true, false, false, false, true, true};
  const bool swapped = kRowsAreColumns[exif - 1];
  TestBatch turned;
  turned.channels = batch.channels;
  for (size_t i = 0; i < batch.images.size(); ++i) {
    const TestPixels& shown = batch.images[i];
    TestPixels stored = shown;
    stored.width = swapped ? shown.height : shown.width;
    stored.height = swapped ? shown.width : shown.height;
    for (uint32_t row = 0; row < stored.height; ++row) {
      for (uint32_t column = 0; column < stored.width; ++column) {
        const uint32_t r = kRowsBackwards[exif - 1] ? stored.height - 1 - row : row;
        const uint32_t c = kColumnsBackwards[exif - 1] ? stored.width - 1 - column : column;
        const uint32_t x = swapped ? r : c, y = swapped ? c : r;
        std::copy_n(&shown.bytes[(size_t{y} * shown.width + x) * shown.channels], shown.channels,
                    &stored.bytes[(size_t{row} * stored.width + column) * shown.channels]);
      }
    }
    const PreprocessSample& sample = batch.samples[i];
    AddImage(std::move(stored), sample.box, sample.mirror, 3, 5, turned);
    PreprocessSample& added = turned.samples.back();
    added.width = shown.width;
    added.height = shown.height;
    added.turn = OrientationOf(exif);
    if (sample.pixels == nullptr) added.pixels = nullptr;
  }
  return turned;
}

PreprocessLaunch LaunchOf(const TestBatch& batch, uint32_t width, uint32_t height,
                          ResizeFilter filter, const OutputFormat& format, void* out) {
  return {batch.samples.data(),
          static_cast<uint32_t>(batch.samples.size()),
          batch.channels,
          width,
          height,
          filter,
          PixelOutput(format, batch.channels),
          out};
}

std::vector<uint8_t> OnHost(const TestBatch& batch, uint32_t width, uint32_t height,
                            ResizeFilter filter, const OutputFormat& format) {
  const PixelOutput output(format, batch.channels);
  std::vector<uint8_t> out(output.Bytes(width, height) * batch.samples.size(), 0x5A);
  const auto status = PreprocessOnHost(LaunchOf(batch, width, height, filter, format, out.data()));
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }
  return out;
}

}  // namespace shardpack
