// Single images of the C interface: the pixels of a loader, whatever the format; and bytes that are
// none, or not all, of an image.
#include <malloc.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "formats/core/image_info.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"
#include "tests/api/fixture.h"

namespace shardpack::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

class ApiImagesTest : public ApiTest {
 protected:
  shardpack_code InfoOf(const Image& image, shardpack_image_info& info, uint64_t max_pixels = 0) {
    info = {};
    info.size = sizeof(info);
    return shardpack_image_info_of(image.data(), image.size(), max_pixels, &info, Error());
  }
  shardpack_image_info InfoOf(const Image& image) {
    shardpack_image_info info;
    EXPECT_EQ(InfoOf(image, info), SHARDPACK_OK) << Why();
    return info;
  }
  shardpack_code Decode(const Image& image, const shardpack_image* stored, uint32_t channels,
                        std::vector<uint8_t>& pixels) {
    return shardpack_image_decode(image.data(), image.size(), stored, channels, pixels.data(),
                                  pixels.size(), Error());
  }
  // Empty if they are not there.
  std::vector<uint8_t> LoaderPixels(const DatasetHandle& dataset, uint64_t id, uint32_t width,
                                    uint32_t height, uint32_t channels) {
    shardpack_order_options order_options = OrderOptions(1);
    order_options.mode = SHARDPACK_SEQUENTIAL;
    order_options.subset = &id;
    order_options.subset_count = 1;
    const OrderHandle order = MakeOrder(order_options);
    shardpack_decode decode = {};
    decode.size = sizeof(decode);
    decode.crop = SHARDPACK_RESIZE;
    decode.width = width;
    decode.height = height;
    decode.channels = channels;
    shardpack_loader_options options = LoaderOptions();
    options.decode = &decode;
    shardpack_loader* loader = nullptr;
    EXPECT_EQ(shardpack_loader_open(dataset.get(), order.get(), &options, &loader, Error()),
              SHARDPACK_OK)
        << Why();
    const LoaderHandle owner(loader);
    const BatchHandle batch = Next(owner);
    if (batch == nullptr) return {};
    const shardpack_batch_view view = View(batch);
    const auto* const pixels = static_cast<const uint8_t*>(view.pixels);
    return {pixels, pixels + view.pixel_bytes};
  }
};

TEST_F(ApiImagesTest, HavePixelsOfALoader) {
  const std::vector<TestImage> images = LoadTestImages();
  TestDatasetOptions options{.shards = 1, .records_per_shard = images.size()};
  options.samples = MakeTestSamples(options);
  for (size_t i = 0; i < images.size(); ++i) {
    options.samples[i].image.assign(images[i].bytes.begin(), images[i].bytes.end());
    options.samples[i].info = images[i].expected;
  }
  WriteTestDataset(folder_, ToyFormat(), options);
  samples_ = options.samples;
  const DatasetHandle dataset = Open();
  size_t decoded = 0;
  for (size_t i = 0; i < images.size(); ++i) {
    SCOPED_TRACE(images[i].name);
    const shardpack_image_info info = InfoOf(images[i].bytes);
    EXPECT_EQ(std::memcmp(&info.stored, &images[i].expected, sizeof(info.stored)), 0);
    const bool turned = info.stored.orientation >= 5;
    EXPECT_EQ(info.width, turned ? info.stored.height : info.stored.width);
    EXPECT_EQ(info.height, turned ? info.stored.width : info.stored.height);
    for (const uint32_t channels : {1u, 3u}) {
      const std::vector<uint8_t> expected =
          LoaderPixels(dataset, i, info.width, info.height, channels);
      for (const bool known : {false, true}) {
        std::vector<uint8_t> pixels(size_t{info.width} * info.height * channels, 77);
        const shardpack_code code =
            Decode(images[i].bytes, known ? &info.stored : nullptr, channels, pixels);
        if (expected.empty()) {
          EXPECT_THAT(code, AnyOf(SHARDPACK_UNSUPPORTED, SHARDPACK_DATA_LOSS));
          EXPECT_THAT(pixels, Each(77));
          continue;
        }
        EXPECT_EQ(code, SHARDPACK_OK) << Why();
        EXPECT_EQ(pixels, expected);
        ++decoded;
      }
    }
  }
  EXPECT_GT(decoded, 4 * (images.size() - 6));
}

// They have no headers, so their facts are those of the index.
TEST_F(ApiImagesTest, OfRawPixels) {
  Image raw(6 * 5 * 4);
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<uint8_t>(7 * i);
  const ImageInfo facts = RawImageInfo(6, 5, 4);
  shardpack_image stored;
  std::memcpy(&stored, &facts, sizeof(stored));
  std::vector<uint8_t> pixels(6 * 5 * 3);
  ASSERT_EQ(Decode(raw, &stored, 3, pixels), SHARDPACK_OK) << Why();
  for (size_t i = 0; i < 30; ++i) {
    for (size_t c = 0; c < 3; ++c) ASSERT_EQ(pixels[3 * i + c], raw[4 * i + c]);
  }
  EXPECT_EQ(Decode(raw, nullptr, 3, pixels), SHARDPACK_INVALID);
  raw.pop_back();
  EXPECT_EQ(Decode(raw, &stored, 3, pixels), SHARDPACK_DATA_LOSS) << Why();
}

TEST_F(ApiImagesTest, BadArguments) {
  const Image image = LoadTestImage("orientation-6.jpg");  // 16 x 8
  const shardpack_image_info info = InfoOf(image);
  std::vector<uint8_t> pixels(16 * 8 * 3);
  for (const uint32_t channels : {0u, 2u, 4u, ~0u}) {
    EXPECT_EQ(Decode(image, &info.stored, channels, pixels), SHARDPACK_INVALID);
    EXPECT_THAT(Why(), HasSubstr("channels must be 1 or 3"));
  }
  const auto decode = [&](const void* data, uint64_t bytes, void* into, uint64_t into_bytes) {
    return shardpack_image_decode(data, bytes, &info.stored, 3, into, into_bytes, Error());
  };
  for (const uint64_t other : {uint64_t{0}, pixels.size() - 3, pixels.size() - 1, pixels.size() + 1,
                               pixels.size() + 3, ~uint64_t{0}}) {
    EXPECT_EQ(decode(image.data(), image.size(), pixels.data(), other), SHARDPACK_INVALID);
    EXPECT_THAT(Why(), HasSubstr("8 x 16 pixels of 3 bytes"));
  }
  EXPECT_EQ(decode(nullptr, 0, pixels.data(), pixels.size()), SHARDPACK_INVALID);
  EXPECT_EQ(decode(image.data(), image.size(), nullptr, pixels.size()), SHARDPACK_INVALID);
  shardpack_image_info into = {};
  EXPECT_EQ(shardpack_image_info_of(image.data(), image.size(), 0, &into, Error()),
            SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("sizeof"));
  EXPECT_EQ(shardpack_image_info_of(image.data(), image.size(), 0, nullptr, Error()),
            SHARDPACK_INVALID);
  // A column's row of an image whose headers nobody has read has a format alone.
  shardpack_image unknown = info.stored;
  unknown.width = 0;
  EXPECT_EQ(Decode(image, &unknown, 3, pixels), SHARDPACK_INVALID);
  shardpack_image other = info.stored;
  std::swap(other.width, other.height);
  EXPECT_EQ(Decode(image, &other, 3, pixels), SHARDPACK_DATA_LOSS);
}

TEST_F(ApiImagesTest, AreLimited) {
  const Image image = LoadTestImage("rgb.png");  // 20 x 12
  shardpack_image_info info;
  EXPECT_EQ(InfoOf(image, info, 240), SHARDPACK_OK);
  EXPECT_EQ(InfoOf(image, info, 239), SHARDPACK_NO_MEMORY);
  EXPECT_EQ(info.width, 0u);
  // Headers that claim more than 64 million pixels: IHDR is not checked here.
  Image huge = image;
  Store(&huge, 16, std::string_view("\0\1\0\0\0\1\0\0", 8));
  EXPECT_EQ(InfoOf(huge, info), SHARDPACK_NO_MEMORY) << Why();
}

TEST_F(ApiImagesTest, HostileBytesBreakNothing) {
  std::mt19937 random(9);
  for (const TestImage& image : LoadTestImages()) {
    const size_t pixels = size_t{image.expected.width} * image.expected.height;
    std::vector<uint8_t> into(pixels * 3);
    for (int i = 0; i < 100; ++i) {
      Image damaged = image.bytes;
      for (int k = 0; k <= i % 3; ++k)
        damaged[random() % damaged.size()] = static_cast<uint8_t>(random());
      if (i % 5 == 0) damaged.resize(random() % damaged.size());
      // Of exactly this size, so that sanitizers find reads past its end.
      const Image exact(damaged);
      shardpack_image_info info;
      const shardpack_code probed = InfoOf(exact, info);
      EXPECT_THAT(probed,
                  AnyOf(SHARDPACK_OK, SHARDPACK_INVALID, SHARDPACK_DATA_LOSS, SHARDPACK_NO_MEMORY));
      EXPECT_EQ(probed == SHARDPACK_OK, Why().empty());
      for (const bool known : {false, true}) {
        EXPECT_THAT(Decode(exact, known ? &info.stored : nullptr, 3, into),
                    AnyOf(SHARDPACK_OK, SHARDPACK_INVALID, SHARDPACK_DATA_LOSS,
                          SHARDPACK_UNSUPPORTED, SHARDPACK_NO_MEMORY));
      }
    }
  }
  const Image none, text = {'t', 'e', 'x', 't'};
  shardpack_image_info info;
  EXPECT_EQ(InfoOf(none, info), SHARDPACK_INVALID);
  EXPECT_EQ(InfoOf(text, info), SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("no known image signature"));
}

TEST_F(ApiImagesTest, AreDecodedByAnyThread) {
  const Image image = LoadTestImage("baseline.jpg");
  const shardpack_image_info info = InfoOf(image);
  std::vector<uint8_t> expected(size_t{info.width} * info.height * 3);
  ASSERT_EQ(Decode(image, &info.stored, 3, expected), SHARDPACK_OK);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        std::vector<uint8_t> pixels(expected.size());
        EXPECT_EQ(shardpack_image_decode(image.data(), image.size(), &info.stored, 3, pixels.data(),
                                         pixels.size(), nullptr),
                  SHARDPACK_OK);
        EXPECT_EQ(pixels, expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Under sanitizers, whose allocator is another one, this sees nothing.
TEST_F(ApiImagesTest, OfALargeOneAThreadKeepsNothing) {
  const auto bytes_in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const TestPixels square = MakePattern(1024, 1024, 3);
  const Image image = EncodeJpeg(square, {});
  const shardpack_image_info info = InfoOf(image);
  std::vector<uint8_t> pixels(square.bytes.size());
  const size_t before = bytes_in_use();
  ASSERT_EQ(Decode(image, &info.stored, 3, pixels), SHARDPACK_OK) << Why();
  EXPECT_LT(bytes_in_use(), before + pixels.size() / 2);
}

}  // namespace
}  // namespace shardpack::testing
