// Regions and scales against the whole image, for all samplings; damage; limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "images/codecs/decode.h"
#include "images/codecs/decode_testing.h"

namespace shardpack {
namespace {

struct Kind {
  const char* name;
  uint32_t channels;
  JpegKind jpeg;
};

std::vector<Kind> AllKinds() {
  return {
      {"444", 3, {}},
      {"422", 3, {.sampling = {2, 1}}},
      {"420", 3, {.sampling = {2, 2}}},
      {"440", 3, {.sampling = {1, 2}}},
      {"411", 3, {.sampling = {4, 1}}},
      {"410", 3, {.sampling = {4, 2}}},
      {"441", 3, {.sampling = {1, 4}}},
      {"chroma_12_of_22", 3, {.sampling = {2, 2}, .chroma = {1, 2}}},
      {"chroma_21_of_22", 3, {.sampling = {2, 2}, .chroma = {2, 1}}},
      {"all_21", 3, {.sampling = {2, 1}, .chroma = {2, 1}}},
      {"progressive_444", 3, {.progressive = true}},
      {"progressive_420", 3, {.sampling = {2, 2}, .progressive = true}},
      {"progressive_422", 3, {.sampling = {2, 1}, .progressive = true}},
      {"arithmetic_420", 3, {.sampling = {2, 2}, .arithmetic = true}},
      {"restart_420", 3, {.sampling = {2, 2}, .restart_rows = 1}},
      {"rgb", 3, {.rgb_coded = true}},
      {"gray", 1, {}},
      {"gray_progressive", 1, {.progressive = true}},
      {"gray_22", 1, {.sampling = {2, 2}}},
      {"cmyk", 4, {}},
      {"ycck_420", 4, {.sampling = {2, 2}, .ycck = true}},
  };
}

class JpegRegions : public ::testing::TestWithParam<Kind> {
 protected:
  // Decodes the region and expects the same pixels as in the whole image at the same scale.
  void ExpectAsInWhole(const Image& file, const DecodeOptions& options) {
    ImageDecoder decoder, whole_decoder;
    const auto part = decoder.Decode(Bytes(file), ImageInfo(), options);
    ASSERT_TRUE(part.ok()) << part.status();
    DecodeOptions all = options;
    const ProbeResult probe = Probe(file);
    const auto up = [&](uint32_t size) { return std::max(1u, size / part->scale); };
    all.region = {0, 0, probe.info.width, probe.info.height};
    // The same scale for the whole image.
    all.min_width = part->scale == 1 ? 0 : up(probe.info.width);
    all.min_height = part->scale == 1 ? 0 : up(probe.info.height);
    const auto whole = whole_decoder.Decode(Bytes(file), ImageInfo(), all);
    ASSERT_TRUE(whole.ok()) << whole.status();
    ASSERT_EQ(whole->scale, part->scale);
    const PixelRegion& region = options.region;
    const uint32_t scale = part->scale;
    const uint32_t left = region.left / scale, top = region.top / scale;
    const uint32_t right = (region.left + region.width + scale - 1) / scale;
    const uint32_t bottom = (region.top + region.height + scale - 1) / scale;
    const TestPixels expected = CropPixels(whole->view, {left, top, right - left, bottom - top});
    ASSERT_EQ(LargestDifference(part->view, expected.view()), 0)
        << region.left << "," << region.top << " " << region.width << "x" << region.height
        << " at 1/" << scale << " of " << probe.info.width << "x" << probe.info.height;
    // The box has the region's own edges.
    EXPECT_EQ((part->box.left + left) * scale, region.left);
    EXPECT_EQ((part->box.top + top) * scale, region.top);
    EXPECT_EQ((part->box.right + left) * scale, region.left + region.width);
    EXPECT_EQ((part->box.bottom + top) * scale, region.top + region.height);
  }

  static std::span<const std::byte> Bytes(const Image& file) {
    return std::as_bytes(std::span(file));
  }
};

TEST_P(JpegRegions, EqualTheWhole) {
  const std::vector<std::pair<uint32_t, uint32_t>> sizes = {
      {211, 157}, {64, 64}, {97, 33}, {33, 97}, {17, 17}, {40, 5}, {5, 40}, {3, 3}, {1, 1}};
  std::mt19937 random(7);
  for (const auto& [width, height] : sizes) {
    const Image file = EncodeJpeg(MakePattern(width, height, GetParam().channels), GetParam().jpeg);
    const auto within = [&](uint32_t size) {
      const uint32_t first = random() % size;
      return std::pair(first, 1 + random() % (size - first));
    };
    for (int i = 0; i < 150; ++i) {
      DecodeOptions options;
      std::tie(options.region.left, options.region.width) = within(width);
      std::tie(options.region.top, options.region.height) = within(height);
      options.channels = i % 5 == 4 ? 1 : 3;
      options.fast = i % 3 == 2;
      if (i % 2 == 1) {
        const uint32_t scale = 1u << random() % 4;
        options.min_width = std::max(1u, options.region.width / scale);
        options.min_height = std::max(1u, options.region.height / scale);
      }
      SCOPED_TRACE(absl::StrCat(i, options.fast ? " fast" : "", " channels ", options.channels));
      ExpectAsInWhole(file, options);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, JpegRegions, ::testing::ValuesIn(AllKinds()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DecodeJpeg, ScaleIsTheSmallestThatIsLargeEnough) {
  const Image file = EncodeJpeg(MakePattern(200, 100, 3), {});
  const auto scale_of = [&](uint32_t min_width, uint32_t min_height) {
    ImageDecoder decoder;
    const auto image = decoder.Decode(std::as_bytes(std::span(file)), ImageInfo(),
                                      {.min_width = min_width, .min_height = min_height});
    EXPECT_TRUE(image.ok()) << image.status();
    return image->scale;
  };
  EXPECT_EQ(scale_of(0, 0), 1u);
  EXPECT_EQ(scale_of(0, 1), 1u);
  EXPECT_EQ(scale_of(1, 1), 8u);
  EXPECT_EQ(scale_of(25, 12), 8u);
  EXPECT_EQ(scale_of(25, 13), 4u);
  EXPECT_EQ(scale_of(50, 25), 4u);
  EXPECT_EQ(scale_of(51, 25), 2u);
  EXPECT_EQ(scale_of(100, 50), 2u);
  EXPECT_EQ(scale_of(100, 51), 1u);
  EXPECT_EQ(scale_of(400, 400), 1u);
}

// A file truncated anywhere is an error if all of it is requested, reported in libjpeg's words.
TEST(DecodeJpeg, TruncatedIsAnError) {
  for (const bool progressive : {false, true}) {
    const Image file =
        EncodeJpeg(MakePattern(64, 48, 3), {.sampling = {2, 2}, .progressive = progressive});
    ASSERT_TRUE(Decode(file).ok());
    for (size_t size = 0; size + 2 < file.size(); ++size) {
      const auto cut = Decode(Image(file.begin(), file.begin() + static_cast<ptrdiff_t>(size)));
      ASSERT_FALSE(cut.ok()) << size << " of " << file.size();
    }
    const auto half = Decode(Image(file.begin(), file.begin() + static_cast<ptrdiff_t>(1500)));
    EXPECT_EQ(half.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(half.status().message(), "JPEG: Premature end of JPEG file");
  }
}

TEST(DecodeJpeg, DamageBehindTheRegionIsNotLookedAt) {
  Image file = EncodeJpeg(MakePattern(64, 256, 3), {.sampling = {2, 2}});
  file.resize(file.size() / 2);
  EXPECT_FALSE(Decode(file).ok());
  const auto top = Decode(file, {.region = {0, 0, 64, 64}});
  EXPECT_TRUE(top.ok()) << top.status();
}

TEST(DecodeJpeg, LostRestartMarkerIsAnError) {
  Image file = EncodeJpeg(MakePattern(64, 64, 3), {.restart_rows = 1});
  const size_t marker = Find(file, "\xFF\xD2");
  file[marker + 1] = 0xD5;
  const auto image = Decode(file);
  EXPECT_EQ(image.status().code(), absl::StatusCode::kDataLoss) << image.status();
}

TEST(DecodeJpeg, OddHeadersAreNoDamage) {
  Image file = EncodeJpeg(MakePattern(16, 16, 3), {});
  const size_t jfif = Find(file, std::string_view("JFIF\0", 5));
  file[jfif + 5] = 9;  // JFIF 9.x
  EXPECT_TRUE(Decode(file).ok());
}

// One image's tables must not be used for the next.
TEST(DecodeJpeg, TablesAreNotKept) {
  const Image file = EncodeJpeg(MakePattern(16, 16, 3), {});
  Image bare = file;
  for (int i = 0; i < 2; ++i) {
    const size_t table = Find(bare, "\xFF\xDB");
    const size_t size = 2 + bare[table + 2] * 256 + bare[table + 3];
    bare.erase(bare.begin() + static_cast<ptrdiff_t>(table),
               bare.begin() + static_cast<ptrdiff_t>(table + size));
  }
  ImageDecoder decoder;
  EXPECT_TRUE(decoder.Decode(std::as_bytes(std::span(file)), ImageInfo(), {}).ok());
  const auto second = decoder.Decode(std::as_bytes(std::span(bare)), ImageInfo(), {});
  EXPECT_EQ(second.status().message(), "JPEG: Quantization table 0x00 was not defined");
}

// The last scan of a progressive image, repeated many times.
TEST(DecodeJpeg, ScansAreBounded) {
  Image file = EncodeJpeg(MakePattern(512, 512, 3), {.progressive = true});
  size_t scan = Find(file, "\xFF\xDA");
  for (size_t at = scan;;) {
    scan = at;
    const auto next = std::search(file.begin() + static_cast<ptrdiff_t>(at + 2), file.end(),
                                  std::begin("\xFF\xDA"), std::begin("\xFF\xDA") + 2,
                                  [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); });
    if (next == file.end()) break;
    at = static_cast<size_t>(next - file.begin());
  }
  const Image last(file.begin() + static_cast<ptrdiff_t>(scan), file.end() - 2);
  const auto with_scans = [&](int more) {
    Image made(file.begin(), file.end() - 2);
    for (int i = 0; i < more; ++i) made.insert(made.end(), last.begin(), last.end());
    made.push_back(0xFF);
    made.push_back(0xD9);
    return made;
  };
  const auto bomb = Decode(with_scans(500));
  // Reported by its own check of the progression, or by the limit.
  EXPECT_FALSE(bomb.ok());
  const auto limited = Decode(file, {.max_scans = 3});
  EXPECT_EQ(limited.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(limited.status().message(), "JPEG: more than 3 scans");
  EXPECT_TRUE(Decode(file, {.max_scans = 10}).ok());
}

TEST(DecodeJpeg, SizeMustBeThatOfTheInfo) {
  const Image file = EncodeJpeg(MakePattern(16, 16, 3), {});
  ImageInfo info = Probe(file).info;
  info.width = 15;
  ImageDecoder decoder;
  const auto image = decoder.Decode(std::as_bytes(std::span(file)), info, {});
  EXPECT_EQ(image.status().message(), "the image is 16 x 16 pixels, not 15 x 16");
}

// The fast IDCT alone, and together with chroma by repetition.
TEST(DecodeJpeg, FastIsNear) {
  for (const uint32_t channels : {1, 3}) {
    const Image file =
        EncodeJpeg(MakePattern(256, 256, channels), {.sampling = {2, 2}, .quality = 95});
    const auto exact = Decode(file);
    const auto fast = Decode(file, {.fast = true});
    ASSERT_TRUE(exact.ok() && fast.ok());
    const int largest = LargestDifference(exact->view(), fast->view());
    EXPECT_GT(largest, 0);
    EXPECT_LE(largest, channels == 1 ? 24 : 150);
  }
}

}  // namespace
}  // namespace shardpack
