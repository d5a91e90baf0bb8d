// Requirements for every format: facts, truncation at every length, flips, limits, no allocation.
#include "images/probe/probe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "images/probe/probe_testing.h"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

// Counts allocations, to prove that probing makes none.
void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace shardpack {
namespace {

constexpr ProbeOptions kHeaderOnly{.level = ProbeLevel::kHeader};
constexpr ProbeOptions kAllowTruncated{.allow_truncated = true};

Image Prefix(const Image& image, size_t size) {
  return Image(image.begin(), image.begin() + static_cast<ptrdiff_t>(size));
}

std::string Describe(const ProbeResult& result) {
  const ImageInfo& info = result.info;
  return std::string(ProbeVerdictName(result.verdict)) + " '" + result.detail + "' at " +
         std::to_string(result.offset) + ": " + std::string(ImageExtension(info.format)) + " " +
         std::to_string(info.width) + "x" + std::to_string(info.height) + " color " +
         std::to_string(static_cast<int>(info.color_space)) + " channels " +
         std::to_string(info.channels) + " bits " + std::to_string(info.bits_per_channel) +
         " orientation " + std::to_string(info.orientation) + " flags " +
         std::to_string(info.flags);
}

TEST(ProbeTest, FactsOfEveryTestImageAtBothLevels) {
  const std::vector<TestImage> images = LoadTestImages();
  ASSERT_GE(images.size(), 50u);
  for (const TestImage& image : images) {
    for (const ProbeOptions& options : {ProbeOptions{}, kHeaderOnly, kAllowTruncated}) {
      const ProbeResult result = Probe(image.bytes, options);
      EXPECT_EQ(result.verdict, ProbeVerdict::kOk) << image.name << ": " << Describe(result);
      EXPECT_EQ(result.info, image.expected) << image.name << ": " << Describe(result);
      EXPECT_STREQ(result.detail, "") << image.name;
    }
  }
}

TEST(ProbeTest, SniffNeedsEighteenBytes) {
  for (const TestImage& image : LoadTestImages()) {
    const Image head = Prefix(image.bytes, 18);
    EXPECT_EQ(SniffImageFormat(std::as_bytes(std::span(head))), image.expected.format)
        << image.name;
  }
}

// Each file of testdata ends with a byte that its format needs, so every truncation must be
// detected.
TEST(ProbeTest, EveryCutOfEveryFileIsSeen) {
  for (const TestImage& image : LoadTestImages()) {
    for (size_t size = 0; size < image.bytes.size(); ++size) {
      const Image cut = Prefix(image.bytes, size);
      const ProbeResult result = Probe(cut);
      ASSERT_NE(result.verdict, ProbeVerdict::kOk) << image.name << " cut to " << size;
      ASSERT_NE(result.verdict, ProbeVerdict::kBadCrc) << image.name << " cut to " << size;
      ASSERT_EQ(result.verdict == ProbeVerdict::kEmpty, size == 0);
      ASSERT_STRNE(result.detail, "");
      ASSERT_LE(result.offset, size) << image.name << " cut to " << size;
      if (size >= 18) {
        ASSERT_EQ(result.verdict, ProbeVerdict::kTruncated) << image.name << " cut to " << size;
      }
    }
  }
}

TEST(ProbeTest, AllowTruncatedTakesACutImageOfKnownSizeFlagged) {
  for (const TestImage& image : LoadTestImages()) {
    size_t taken = 0;
    for (size_t size = 1; size < image.bytes.size(); ++size) {
      const Image cut = Prefix(image.bytes, size);
      const ProbeResult strict = Probe(cut), result = Probe(cut, kAllowTruncated);
      if (result.verdict != ProbeVerdict::kOk) {
        ASSERT_EQ(result.info.width * uint64_t{result.info.height}, 0u) << image.name;
        continue;
      }
      ++taken;
      ASSERT_EQ(strict.verdict, ProbeVerdict::kTruncated);
      ASSERT_TRUE(result.info.truncated()) << image.name << " cut to " << size;
      ASSERT_EQ(result.info.width, image.expected.width) << image.name << " cut to " << size;
      ASSERT_EQ(result.info.height, image.expected.height) << image.name << " cut to " << size;
      ASSERT_STRNE(result.detail, "");
      const ProbeResult header = Probe(cut, kHeaderOnly);
      ASSERT_EQ(header.verdict, ProbeVerdict::kOk) << image.name << " cut to " << size;
      ASSERT_FALSE(header.info.truncated());
    }
    EXPECT_GT(taken, 0u) << image.name;
  }
}

TEST(ProbeTest, BytesAfterTheEndAreNoTrouble) {
  for (const TestImage& image : LoadTestImages()) {
    for (const uint8_t fill : {0x00, 0xFF, 0x20}) {
      Image longer = image.bytes;
      longer.insert(longer.end(), 100, fill);
      const ProbeResult result = Probe(longer);
      EXPECT_EQ(result.verdict, ProbeVerdict::kOk) << image.name << ": " << Describe(result);
      EXPECT_EQ(result.info, image.expected) << image.name;
    }
  }
}

TEST(ProbeTest, EveryBitFlipOfEveryPngIsSeen) {
  for (TestImage& image : LoadTestImages()) {
    if (image.expected.format != ImageFormat::kPng) continue;
    for (size_t at = 0; at < image.bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        image.bytes[at] ^= static_cast<uint8_t>(1 << bit);
        ASSERT_NE(Probe(image.bytes).verdict, ProbeVerdict::kOk) << image.name << " byte " << at;
        image.bytes[at] ^= static_cast<uint8_t>(1 << bit);
      }
    }
  }
}

// No particular verdict is expected; sanitizers and the bounds of the result are the check.
TEST(ProbeTest, RandomDamageNeverLeavesTheFile) {
  std::mt19937 random(7);
  for (const TestImage& image : LoadTestImages()) {
    for (int round = 0; round < 2000; ++round) {
      Image damaged = image.bytes;
      for (uint32_t n = random() % 4 + 1; n > 0; --n) {
        const uint8_t odd[] = {0x00, 0xFF, 0x7F, 0x80, 0x01, static_cast<uint8_t>(random())};
        damaged[random() % damaged.size()] = odd[random() % 6];
      }
      for (const ProbeOptions& options : {ProbeOptions{}, kHeaderOnly}) {
        const ProbeResult result = Probe(damaged, options);
        ASSERT_LE(result.offset, damaged.size()) << image.name;
        if (result.verdict == ProbeVerdict::kOk) {
          ASSERT_GT(result.info.width * uint64_t{result.info.height}, 0u) << image.name;
          ASSERT_LE(result.info.width * uint64_t{result.info.height}, options.max_pixels);
        }
      }
    }
  }
}

TEST(ProbeTest, PixelLimitIsExact) {
  for (const TestImage& image : LoadTestImages()) {
    const uint64_t pixels = uint64_t{image.expected.width} * image.expected.height;
    for (const ProbeLevel level : {ProbeLevel::kHeader, ProbeLevel::kStructure}) {
      EXPECT_EQ(Probe(image.bytes, {.level = level, .max_pixels = pixels}).verdict,
                ProbeVerdict::kOk)
          << image.name;
      const ProbeResult over = Probe(image.bytes, {.level = level, .max_pixels = pixels - 1});
      EXPECT_EQ(over.verdict, ProbeVerdict::kPixelLimit) << image.name;
      EXPECT_EQ(over.info.width, image.expected.width) << image.name;
    }
  }
}

TEST(ProbeTest, WhatIsNoImage) {
  EXPECT_EQ(Probe({}).verdict, ProbeVerdict::kEmpty);
  for (const std::string text :
       {"\xFF", "\xFF\xD8", "<!DOCTYPE html><html><body>404</body></html>", "<svg/>",
        "BMX is a sport, not a bitmap", "RIFF\x10\0\0\0WAVEfmt ", "\x89PNG\n\x1A\n", "GIF88a", "II",
        "{\"error\": \"not found\"}", "\xEF\xBB\xBF\xFF\xD8\xFF\xE0"}) {
    const ProbeResult result = Probe(Image(text.begin(), text.end()));
    EXPECT_EQ(result.verdict, ProbeVerdict::kNotAnImage) << text;
    EXPECT_EQ(result.info, ImageInfo()) << text;
  }
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(Probe({static_cast<uint8_t>(byte)}).verdict, ProbeVerdict::kNotAnImage);
  }
  EXPECT_EQ(Probe(Image(1000, 0)).verdict, ProbeVerdict::kNotAnImage);
}

TEST(ProbeTest, AllocatesNothing) {
  const std::vector<TestImage> images = LoadTestImages();
  const uint64_t before = allocations.load();
  size_t ok = 0;
  for (const TestImage& image : images) {
    for (size_t size = 0; size <= image.bytes.size(); ++size) {
      const auto bytes = std::as_bytes(std::span(image.bytes)).first(size);
      if (ProbeImage(bytes, {}).verdict == ProbeVerdict::kOk) ++ok;
    }
  }
  EXPECT_EQ(allocations.load(), before);
  EXPECT_EQ(ok, images.size());
}

TEST(ProbeTest, ManyThreadsAtOnce) {
  const std::vector<TestImage> images = LoadTestImages();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        for (const TestImage& image : images) {
          const ProbeResult result = ProbeImage(std::as_bytes(std::span(image.bytes)), {});
          if (result.info != image.expected) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace shardpack
