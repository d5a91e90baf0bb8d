// Equal results on all processors; mirrors, transposition, output kinds; edges of memory;
// rejections.
#include "images/resize/resize.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "images/codecs/decode_testing.h"

namespace shardpack {
namespace {

PixelBox WholeBox(const TestPixels& image) {
  return {0, 0, double(image.width), double(image.height)};
}

TestPixels Resized(const TestPixels& image, const PixelBox& box, const ResizeOptions& options,
                   const ResizeKernels& kernels = BestResizeKernels()) {
  // Exact copies, so that ASan detects accesses past them.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[image.bytes.size()]);
  std::memcpy(copy.get(), image.bytes.data(), image.bytes.size());
  PixelView view = image.view();
  view.pixels = copy.get();
  Resizer resizer(kernels);
  const PixelOutput output({}, image.channels);
  TestPixels made{options.width, options.height, image.channels, {}};
  made.bytes.resize(output.Bytes(made.width, made.height));
  const absl::Status status = resizer.Resize(view, box, options, output, made.bytes.data());
  EXPECT_TRUE(status.ok()) << status;
  return made;
}

TEST(Resize, AllProcessorsGiveTheSameBytes) {
  std::mt19937 random(3);
  const auto size = [&](uint32_t most) { return 1 + static_cast<uint32_t>(random() % most); };
  for (int i = 0; i < 400; ++i) {
    const TestPixels image = MakePattern(size(90), size(90), i % 4 == 3 ? 1 : 3, i);
    ResizeOptions options{.width = size(80), .height = size(80)};
    options.filter = static_cast<ResizeFilter>(random() % 4);
    options.mirror_x = random() % 2;
    options.mirror_y = random() % 2;
    options.transpose = random() % 2;
    PixelBox box = WholeBox(image);
    if (i % 2 == 1)
      box = {image.width * 0.2, image.height * 0.3, image.width * 0.7, double(image.height)};
    const TestPixels best = Resized(image, box, options);
    const TestPixels portable = Resized(image, box, options, PortableResizeKernels());
    ASSERT_EQ(best.bytes, portable.bytes) << i;
  }
}

// Rounding of positions gives a row of these results two taps, the first of which weighs nothing.
TEST(Resize, TheSecondOfTwoRowsMayWeighAll) {
  for (const auto& [from, to] : {std::array{5u, 77u}, {13u, 23u}, {21u, 79u}}) {
    const TestPixels image = MakePattern(50, from, 3);
    const ResizeOptions options{.width = 50, .height = to};
    EXPECT_EQ(Resized(image, WholeBox(image), options).bytes,
              Resized(image, WholeBox(image), options, PortableResizeKernels()).bytes)
        << from;
  }
}

TEST(Resize, SameSizeIsTheIdentity) {
  const TestPixels image = MakePattern(77, 51, 3);
  for (const auto filter : {ResizeFilter::kBox, ResizeFilter::kBilinear, ResizeFilter::kBicubic,
                            ResizeFilter::kLanczos}) {
    const ResizeOptions options{.width = 77, .height = 51, .filter = filter};
    EXPECT_EQ(Resized(image, WholeBox(image), options).bytes, image.bytes);
  }
}

TEST(Resize, PlainAreasKeepTheirValue) {
  for (const uint8_t value : {0, 1, 127, 254, 255}) {
    TestPixels image = MakePattern(333, 200, 3);
    std::fill(image.bytes.begin(), image.bytes.end(), value);
    for (const uint32_t size : {1u, 13u, 224u, 400u}) {
      for (int filter = 0; filter < 4; ++filter) {
        const ResizeOptions options{
            .width = size, .height = size, .filter = static_cast<ResizeFilter>(filter)};
        const TestPixels made = Resized(image, {0.3, 0.7, 331.5, 199.9}, options);
        for (const uint8_t v : made.bytes) ASSERT_EQ(v, value) << size << " " << filter;
      }
    }
  }
}

TEST(Resize, MirrorsAreThoseOfTheResult) {
  const TestPixels image = MakePattern(60, 41, 3);
  const PixelBox box{3.25, 2, 51.5, 40};
  const TestPixels plain = Resized(image, box, {.width = 31, .height = 29});
  const auto at = [](const TestPixels& p, uint32_t x, uint32_t y) {
    const uint8_t* pixel = p.view().Row(y) + x * 3;
    return std::vector<uint8_t>(pixel, pixel + 3);
  };
  const TestPixels x_mirrored = Resized(image, box, {.width = 31, .height = 29, .mirror_x = true});
  const TestPixels turned =
      Resized(image, box, {.width = 29, .height = 31, .transpose = true, .mirror_x = true});
  for (uint32_t y = 0; y < 29; ++y) {
    for (uint32_t x = 0; x < 31; ++x) {
      ASSERT_EQ(at(plain, x, y), at(x_mirrored, 30 - x, y));
      ASSERT_EQ(at(plain, x, y), at(turned, 28 - y, x));
    }
  }
}

TEST(Resize, OutputsOfAllKinds) {
  const TestPixels image = MakePattern(60, 41, 3);
  const ResizeOptions options{.width = 21, .height = 17};
  const TestPixels plain = Resized(image, WholeBox(image), options);
  Resizer resizer;
  const std::array<float, 3> mean = {0.485f, 0.456f, 0.406f}, std = {0.229f, 0.224f, 0.225f};
  for (const auto layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
    for (const auto type : {PixelType::kU8, PixelType::kF32, PixelType::kF16}) {
      const PixelOutput output({.type = type, .layout = layout, .mean = mean, .std = std}, 3);
      std::vector<uint8_t> out(output.Bytes(21, 17));
      ASSERT_TRUE(resizer.Resize(image.view(), WholeBox(image), options, output, out.data()).ok());
      for (uint32_t i = 0; i < 21 * 17 * 3; ++i) {
        const uint32_t c = i % 3, pixel = i / 3;
        const size_t at = layout == PixelLayout::kNhwc ? i : c * 21 * 17 + pixel;
        const float number = (static_cast<float>(plain.bytes[i]) / 255.0f - mean[c]) / std[c];
        if (type == PixelType::kU8) {
          ASSERT_EQ(out[at], plain.bytes[i]);
        } else if (type == PixelType::kF32) {
          float got;
          std::memcpy(&got, out.data() + 4 * at, 4);
          ASSERT_EQ(got, number);
        } else {
          uint16_t got;
          std::memcpy(&got, out.data() + 2 * at, 2);
          ASSERT_EQ(got, FloatToHalf(number));
        }
      }
    }
  }
}

// Peak memory of this process.
size_t MostBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) << 10;
}

TEST(Resize, TallImagesTakeLittleMemory) {
  TestPixels image{1, 600'000, 3, {}};
  image.bytes.resize(size_t{image.height} * 3);
  for (size_t i = 0; i < image.bytes.size(); ++i) image.bytes[i] = i / 3 < 300'000 ? 10 : 200;
  Resizer resizer;
  const PixelOutput output({}, 3);
  std::vector<uint8_t> out(output.Bytes(224, 300)), mirrored(out.size());
  const size_t before = MostBytes();
  // All rows at this width would take 422 MB.
  ResizeOptions options{.width = 224, .height = 300};
  ASSERT_TRUE(resizer.Resize(image.view(), WholeBox(image), options, output, out.data()).ok());
  options.mirror_y = true;
  ASSERT_TRUE(resizer.Resize(image.view(), WholeBox(image), options, output, mirrored.data()).ok());
  EXPECT_LT(MostBytes() - before, size_t{100} << 20);
  const size_t row_bytes = 224 * 3;
  for (size_t y = 0; y < 300; ++y) {
    const auto row = out.begin() + static_cast<ptrdiff_t>(y * row_bytes);
    const auto turned = mirrored.begin() + static_cast<ptrdiff_t>((299 - y) * row_bytes);
    ASSERT_TRUE(std::equal(row, row + row_bytes, turned)) << y;
    const uint8_t value = y < 150 ? 10 : 200;
    if (y != 149 && y != 150) {
      ASSERT_EQ(*row, value) << y;
    }
  }
}

// One row of the result needs the whole image, 43 GB at its width.
TEST(Resize, RefusesWhatTakesTooMuchMemory) {
  const std::unique_ptr<uint8_t[]> pixels(new uint8_t[64'000'000 * 3]);
  const PixelView tall{pixels.get(), 1, 64'000'000, 3, 3};
  std::vector<uint8_t> out(224 * 3);
  Resizer resizer;
  const absl::Status status = resizer.Resize(
      tall, {0, 0, 1, 64'000'000}, {.width = 224, .height = 1}, PixelOutput({}, 3), out.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(status.message(), "resize: more than 1 GiB would be needed");
}

TEST(Resize, RefusesWhatIsNoBox) {
  const TestPixels image = MakePattern(10, 8, 3);
  Resizer resizer;
  const PixelOutput output({}, 3), gray({}, 1);
  uint8_t out[3];
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const PixelBox& box : {PixelBox{0, 0, 0, 8}, PixelBox{-0.1, 0, 1, 1}, PixelBox{5, 5, 4, 6},
                              PixelBox{0, 0, 10.01, 8}, PixelBox{0, 0, 10, nan}, PixelBox{}}) {
    EXPECT_EQ(resizer.Resize(image.view(), box, {.width = 1, .height = 1}, output, out).code(),
              absl::StatusCode::kInvalidArgument);
  }
  const PixelBox whole = WholeBox(image);
  EXPECT_FALSE(resizer.Resize(image.view(), whole, {.width = 0, .height = 1}, output, out).ok());
  EXPECT_FALSE(
      resizer.Resize(image.view(), whole, {.width = 1, .height = 65'536}, output, out).ok());
  EXPECT_FALSE(resizer.Resize(image.view(), whole, {.width = 1, .height = 1}, gray, out).ok());
  EXPECT_TRUE(resizer.Resize(image.view(), whole, {.width = 1, .height = 1}, output, out).ok());
}

// More sizes than the cache has places, some of them again.
TEST(Resize, KeptTablesAreThoseOfTheSize) {
  std::mt19937 random(5);
  Resizer kept;
  for (int i = 0; i < 600; ++i) {
    const TestPixels image = MakePattern(1 + random() % 20, 1 + random() % 20, 3, i);
    ResizeOptions options{.width = 20 + static_cast<uint32_t>(random() % 3), .height = 20};
    options.mirror_x = random() % 2;
    options.mirror_y = random() % 2;
    options.transpose = random() % 4 == 0;
    if (i % 50 == 0) options.height = 5000;  // too large to be kept
    if (i % 3 == 0) options.filter = ResizeFilter::kBox;
    PixelBox box = WholeBox(image);
    if (i % 5 == 0) box.right *= 0.75;
    std::vector<uint8_t> made(size_t{3} * options.width * options.height);
    const PixelOutput output({}, 3);
    ASSERT_TRUE(kept.Resize(image.view(), box, options, output, made.data()).ok());
    ASSERT_EQ(made, Resized(image, box, options).bytes) << i;
  }
}

TEST(ResizeTable, WeightsSumUpToOne) {
  for (int filter = 0; filter < 4; ++filter) {
    for (const uint32_t out : {1u, 7u, 99u, 1000u}) {
      ResizeTable table;
      table.Build(MakeResizeAxis(static_cast<ResizeFilter>(filter), 0.25, 498.5, 500, out), out,
                  false);
      for (uint32_t i = 0; i < out; ++i) {
        const int16_t* weights = table.weights(i);
        int sum = std::accumulate(weights, weights + table.taps(), 0);
        if (table.has_fine()) {
          const int fine = std::accumulate(table.fine(i), table.fine(i) + table.taps(), 0);
          ASSERT_EQ(fine % (1 << ResizeTable::kFineShift), 0);
          sum += fine >> ResizeTable::kFineShift;
        }
        ASSERT_EQ(sum, 1 << table.shift());
        ASSERT_LE(table.first(i) + table.inside(i), 500u);
      }
    }
  }
}

}  // namespace
}  // namespace shardpack
