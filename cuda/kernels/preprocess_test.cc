#include "cuda/kernels/preprocess.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cuda/testing/preprocess_testing.h"
#include "images/resize/resize.h"

namespace shardpack {
namespace {

constexpr std::array kFilters = {ResizeFilter::kBox, ResizeFilter::kBilinear,
                                 ResizeFilter::kBicubic, ResizeFilter::kLanczos};
constexpr std::array<std::array<uint32_t, 2>, 6> kSizes = {
    {{1, 1}, {7, 3}, {32, 32}, {33, 65}, {64, 40}, {224, 224}}};

// What the CPU's own resize says of the i-th sample, in u8 NHWC.
std::vector<uint8_t> ByResizer(const TestBatch& batch, size_t i, uint32_t width, uint32_t height,
                               ResizeFilter filter) {
  const PixelOutput output({}, batch.channels);
  std::vector<uint8_t> out(output.Bytes(width, height));
  const PreprocessSample& sample = batch.samples[i];
  Resizer resizer;
  const auto status = resizer.Resize(
      batch.images[i].view(), sample.box,
      {.width = width, .height = height, .filter = filter, .mirror_x = sample.mirror}, output,
      out.data());
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

void ExpectAsResizer(const TestBatch& batch, uint32_t width, uint32_t height, ResizeFilter filter) {
  const std::vector<uint8_t> ours = OnHost(batch, width, height, filter, {});
  const size_t each = ours.size() / batch.samples.size();
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    const std::vector<uint8_t> expected = ByResizer(batch, i, width, height, filter);
    int largest = 0;
    for (size_t k = 0; k < each; ++k) {
      largest = std::max(largest, std::abs(ours[i * each + k] - expected[k]));
    }
    const PreprocessSample& sample = batch.samples[i];
    ASSERT_LE(largest, 1) << "sample " << i << " of " << sample.width << "x" << sample.height
                          << " to " << width << "x" << height << " filter "
                          << static_cast<int>(filter) << " mirror " << sample.mirror;
  }
}

TEST(Preprocess, WithinOneLevelOfTheResizer) {
  for (const uint32_t channels : {1u, 3u}) {
    for (const ResizeFilter filter : kFilters) {
      for (const auto [width, height] : kSizes) {
        TestBatchOptions options = {.count = 12, .channels = channels, .coarse_boxes = false};
        options.seed = width + channels;
        ExpectAsResizer(MakeTestBatch(options), width, height, filter);
        options.max_side = 8;
        ExpectAsResizer(MakeTestBatch(options), width, height, filter);
      }
    }
  }
}

// By threads and with a way of their own for samples that are only converted.
TEST(Preprocess, ByThreadsTheSameBytes) {
  for (const uint32_t channels : {1u, 3u}) {
    TestBatch batch = MakeTestBatch({.count = 6, .channels = channels, .min_side = 40});
    for (const bool mirror : {false, true}) {
      const TestPixels pixels = MakePattern(33, 40, channels);
      AddImage(pixels, {0, 0, 33, 40}, mirror, 1, 3, batch);
      AddImage(MakePattern(50, 60, channels), {5, 7, 38, 47}, mirror, 0, 0, batch);
      AddImage(MakePattern(50, 60, channels), {5.5, 7, 38.5, 47}, mirror, 0, 0, batch);
    }
    batch.samples.push_back({});  // padding
    for (const ResizeFilter filter : kFilters) {
      for (const PixelType type : {PixelType::kU8, PixelType::kF16, PixelType::kF32}) {
        for (const PixelLayout layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
          const OutputFormat format = {.type = type,
                                       .layout = layout,
                                       .mean = {0.4f, 0.5f, 0.6f},
                                       .std = {0.2f, 0.3f, 0.4f}};
          const std::vector<uint8_t> expected = OnHost(batch, 33, 40, filter, format);
          for (const int threads : {0, 1, 3}) {
            std::vector<uint8_t> got(expected.size(), 0xEE);
            const absl::Status done =
                PreprocessByThreads(LaunchOf(batch, 33, 40, filter, format, got.data()), threads);
            ASSERT_TRUE(done.ok()) << done;
            EXPECT_TRUE(got == expected);
          }
        }
      }
    }
    batch.samples[2].box.right = batch.samples[2].width + 1;
    std::vector<uint8_t> out(batch.samples.size() * 33 * 40 * channels);
    EXPECT_EQ(
        PreprocessByThreads(LaunchOf(batch, 33, 40, ResizeFilter::kBilinear, {}, out.data()), 2)
            .code(),
        absl::StatusCode::kInvalidArgument);
  }
}

// Filters for which parts of a tile are smaller, down to pixel by pixel.
TEST(Preprocess, LargeReductions) {
  for (const ResizeFilter filter : kFilters) {
    for (const auto [width, height] : {std::array{2u, 3u}, {5u, 1u}, {9u, 6u}}) {
      for (const uint32_t from : {700u, 1500u}) {
        TestBatch batch;
        AddImage(MakePattern(from, 300, 3), {0, 0, double(from), 300}, false, 1, 3, batch);
        AddImage(MakePattern(400, from, 3), {3.25, 1.5, 390, double(from)}, true, 0, 0, batch);
        ExpectAsResizer(batch, width, height, filter);
      }
    }
  }
}

// More taps than there is room for weights.
TEST(Preprocess, OnePixelOfThousands) {
  TestBatch batch;
  AddImage(MakePattern(6000, 3, 3), {0, 0, 6000, 3}, false, 1, 0, batch);
  AddImage(MakePattern(2, 5000, 3), {0, 0, 2, 5000}, false, 0, 0, batch);
  ExpectAsResizer(batch, 1, 1, ResizeFilter::kBilinear);
}

TEST(Preprocess, EveryTypeAndLayout) {
  const OutputFormat numbers = {.mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}};
  for (const uint32_t channels : {1u, 3u}) {
    const TestBatch batch = MakeTestBatch({.count = 5, .channels = channels});
    for (const auto [width, height] : kSizes) {
      const std::vector<uint8_t> plain = OnHost(batch, width, height, ResizeFilter::kBilinear, {});
      for (const auto type : {PixelType::kU8, PixelType::kF32, PixelType::kF16, PixelType::kBf16}) {
        for (const auto layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
          OutputFormat format = numbers;
          format.type = type;
          format.layout = layout;
          const PixelOutput output(format, channels);
          const size_t each = output.Bytes(width, height);
          std::vector<uint8_t> expected(each * 5);
          for (uint32_t i = 0; i < 5 * height; ++i) {
            output.PutRow(plain.data() + size_t{i} * width * channels, i % height, width, height,
                          expected.data() + i / height * each);
          }
          ASSERT_EQ(OnHost(batch, width, height, ResizeFilter::kBilinear, format), expected)
              << width << "x" << height << " type " << static_cast<int>(type) << " layout "
              << static_cast<int>(layout) << " channels " << channels;
        }
      }
    }
  }
}

// Vectors are stored where they may be; elsewhere the same numbers, one by one.
TEST(Preprocess, OutputOfAnyAlignment) {
  const TestBatch batch = MakeTestBatch({.count = 3});
  for (const auto type : {PixelType::kU8, PixelType::kF32, PixelType::kF16}) {
    const OutputFormat format = {.type = type, .layout = PixelLayout::kNchw};
    const std::vector<uint8_t> expected = OnHost(batch, 40, 36, ResizeFilter::kBicubic, format);
    const size_t size = BytesOf(type);
    std::vector<uint8_t> out(expected.size() + size);
    uint8_t* const odd = out.data() + size;
    ASSERT_TRUE(
        PreprocessOnHost(LaunchOf(batch, 40, 36, ResizeFilter::kBicubic, format, odd)).ok());
    EXPECT_EQ(std::vector<uint8_t>(odd, odd + expected.size()), expected);
  }
}

TEST(Preprocess, MirrorTurnsTheResult) {
  TestBatch batch;
  const TestPixels image = MakePattern(201, 99, 3);
  for (const bool mirror : {false, true}) AddImage(image, {10, 5, 150, 90}, mirror, 0, 0, batch);
  const std::vector<uint8_t> out = OnHost(batch, 37, 20, ResizeFilter::kLanczos, {});
  // Weights are made for the mirrored columns themselves, so this is exact.
  for (uint32_t y = 0; y < 20; ++y) {
    for (uint32_t x = 0; x < 37; ++x) {
      const uint8_t* a = out.data() + (y * 37 + x) * 3;
      const uint8_t* b = out.data() + ((20 + y) * 37 + 36 - x) * 3;
      ASSERT_EQ(std::memcmp(a, b, 3), 0) << x << " " << y;
    }
  }
}

TEST(Preprocess, GrayIsOneOfThree) {
  TestBatch gray, colour;
  gray.channels = 1;
  const TestPixels image = MakePattern(130, 77, 1);
  TestPixels three = {130, 77, 3, Image(130 * 77 * 3)};
  for (size_t i = 0; i < three.bytes.size(); ++i) three.bytes[i] = image.bytes[i / 3];
  AddImage(image, {0, 0, 130, 77}, false, 3, 1, gray);
  AddImage(three, {0, 0, 130, 77}, false, 3, 1, colour);
  const auto one = OnHost(gray, 50, 60, ResizeFilter::kBilinear, {});
  const auto all = OnHost(colour, 50, 60, ResizeFilter::kBilinear, {});
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], one[i / 3]);
}

TEST(Preprocess, SampleWithoutPixelsIsZeros) {
  TestBatch batch = MakeTestBatch({.count = 3});
  batch.samples[1].pixels = nullptr;
  const OutputFormat format = {.type = PixelType::kF16, .mean = {1, 1, 1}};
  const auto out = OnHost(batch, 41, 44, ResizeFilter::kBilinear, format);
  const size_t each = out.size() / 3;
  for (size_t i = 0; i < each; ++i) ASSERT_EQ(out[each + i], 0);
  EXPECT_NE(std::vector<uint8_t>(each), std::vector<uint8_t>(out.begin(), out.begin() + each));
}

TEST(Preprocess, RefusesWhatCannotBe) {
  TestBatch batch = MakeTestBatch({.count = 2});
  std::vector<float> out(3 * 8 * 8 * 2);
  const auto refused = [&](const PreprocessLaunch& launch) {
    return PreprocessOnHost(launch).code() == absl::StatusCode::kInvalidArgument;
  };
  const auto launch = [&] { return LaunchOf(batch, 8, 8, ResizeFilter::kBox, {}, out.data()); };
  EXPECT_FALSE(refused(launch()));
  PreprocessLaunch bad = launch();
  bad.channels = 1;
  EXPECT_TRUE(refused(bad));
  bad = launch();
  bad.out_width = 0;
  EXPECT_TRUE(refused(bad));
  bad = launch();
  bad.out_height = 65'536;
  EXPECT_TRUE(refused(bad));
  bad = launch();
  bad.out = nullptr;
  EXPECT_TRUE(refused(bad));
  const OutputFormat no_spread = {.type = PixelType::kF32, .std = {1, 0, 1}};
  EXPECT_TRUE(refused(LaunchOf(batch, 8, 8, ResizeFilter::kBox, no_spread, out.data())));
  const OutputFormat mirrored = {.type = PixelType::kF32, .std = {1, -1, 1}};
  EXPECT_TRUE(refused(LaunchOf(batch, 8, 8, ResizeFilter::kBox, mirrored, out.data())));
  EXPECT_TRUE(refused(LaunchOf(batch, 8, 8, ResizeFilter::kBox, {.type = PixelType::kF32},
                               reinterpret_cast<uint8_t*>(out.data()) + 2)));
  const PixelBox box = batch.samples[1].box;
  for (double PixelBox::*edge :
       {&PixelBox::left, &PixelBox::top, &PixelBox::right, &PixelBox::bottom}) {
    for (const double value : {-1.0, 1e6, std::numeric_limits<double>::quiet_NaN()}) {
      batch.samples[1].box = box;
      batch.samples[1].box.*edge = value;
      EXPECT_TRUE(refused(launch()));
    }
  }
}

// An image that is read turned gives the bytes of the one that was turned before.
TEST(Preprocess, TurnsAsExifSays) {
  for (const uint32_t channels : {1u, 3u}) {
    const TestBatch shown =
        MakeTestBatch({.count = 6, .channels = channels, .coarse_boxes = false});
    TestBatch large;
    large.channels = channels;
    AddImage(MakePattern(900, 400, channels), {0.5, 0, 899, 400}, true, 1, 3, large);
    for (uint8_t exif = 1; exif <= 8; ++exif) {
      SCOPED_TRACE(int{exif});
      const TestBatch turned = TurnedBatch(shown, exif);
      for (const ResizeFilter filter : kFilters) {
        for (const auto [width, height] : kSizes) {
          ASSERT_EQ(OnHost(turned, width, height, filter, {}),
                    OnHost(shown, width, height, filter, {}));
        }
        // Wider than the tables.
        ASSERT_EQ(OnHost(TurnedBatch(large, exif), 3, 2, filter, {}),
                  OnHost(large, 3, 2, filter, {}));
      }
    }
  }
}

// Threads copy samples that need no resize, but not those that are turned.
TEST(Preprocess, TurnsWhatNeedsNoResize) {
  TestBatch shown;
  AddImage(MakePattern(24, 24, 3), {0, 0, 24, 24}, true, 0, 0, shown);
  const std::vector<uint8_t> expected = OnHost(shown, 24, 24, ResizeFilter::kBilinear, {});
  for (uint8_t exif = 1; exif <= 8; ++exif) {
    const TestBatch turned = TurnedBatch(shown, exif);
    std::vector<uint8_t> got(expected.size());
    const PreprocessLaunch launch =
        LaunchOf(turned, 24, 24, ResizeFilter::kBilinear, {}, got.data());
    ASSERT_TRUE(PreprocessByThreads(launch, 2).ok());
    EXPECT_EQ(got, expected) << int{exif};
  }
}

}  // namespace
}  // namespace shardpack
