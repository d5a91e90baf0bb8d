// The encoders' output, read by our decoders and the probe; settings; what formats cannot hold.
#include "images/codecs/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "images/codecs/decode_testing.h"

namespace shardpack {
namespace {

Image EncodeTo(const PixelView& view, const EncodeOptions& options) {
  ImageEncoder encoder;
  const auto file = encoder.Encode(view, options);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return {};
  const auto* data = reinterpret_cast<const uint8_t*>(file->data());
  return Image(data, data + file->size());
}

TEST(Encode, LosslessFormatsGiveBackThePixels) {
  for (uint32_t channels = 1; channels <= 4; ++channels) {
    const TestPixels pixels = MakePattern(37, 23, channels);
    for (const ImageFormat format : {ImageFormat::kPng, ImageFormat::kWebp}) {
      const Image file = EncodeTo(pixels.view(), {.format = format, .lossless = true});
      const uint8_t colors = channels <= 2 ? 1 : 3;
      const auto back = Decode(file, {.channels = colors, .alpha = channels % 2 == 0});
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(LargestDifference(back->view(), pixels.view()), 0)
          << channels << " channels, format " << static_cast<int>(format);
    }
    const Image raw = EncodeTo(pixels.view(), {.format = ImageFormat::kRaw});
    EXPECT_EQ(raw, pixels.bytes);
  }
}

TEST(Encode, LossyFormatsComeClose) {
  const TestPixels pixels = MakePattern(80, 60, 1);
  const auto back = Decode(EncodeTo(pixels.view(), {.quality = 100}), {.channels = 1});
  ASSERT_TRUE(back.ok());
  EXPECT_LE(LargestDifference(back->view(), pixels.view()), 3);
  const Image good = EncodeTo(pixels.view(), {.format = ImageFormat::kWebp, .quality = 95});
  const Image poor = EncodeTo(pixels.view(), {.format = ImageFormat::kWebp, .quality = 20});
  EXPECT_LT(poor.size(), good.size());
}

// The settings that docs/pixels.md promises, checked in the bytes.
TEST(Encode, JpegIsBaselineWithChromaHalvedAndStandardTables) {
  const Image file = EncodeTo(MakePattern(64, 48, 3).view(), {.quality = 90});
  const std::string text(file.begin(), file.end());
  EXPECT_EQ(text.substr(6, 4), "JFIF");
  const size_t frame = text.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  // Components of 3 bytes: number, sampling, table.
  EXPECT_EQ(text.substr(frame + 10, 9), std::string("\x01\x22\x00\x02\x11\x01\x03\x11\x01", 9));
  EXPECT_EQ(text.find("\xFF\xC2"), std::string::npos);
  // The first standard table, ITU-T T.81 K.3.3.1: the number of codes of each length.
  const std::string_view standard(
      "\x00\x01\x05\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00", 16);
  EXPECT_NE(text.find(standard), std::string::npos);
  EXPECT_EQ(text.find("Adobe"), std::string::npos);
}

TEST(Encode, TheSameBytesAgainAndAfterOtherImages) {
  const TestPixels small = MakePattern(31, 17, 3), large = MakePattern(700, 500, 3);
  ImageEncoder used;
  for (const ImageFormat format : {ImageFormat::kJpeg, ImageFormat::kPng, ImageFormat::kWebp}) {
    const EncodeOptions options{.format = format};
    const Image fresh = EncodeTo(small.view(), options);
    ASSERT_TRUE(used.Encode(large.view(), options).ok());
    const auto again = used.Encode(small.view(), options);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(std::ranges::equal(*again, std::as_bytes(std::span(fresh))));
  }
}

// Rows with gaps between them.
TEST(Encode, TakesAPartOfAnImage) {
  const TestPixels whole = MakePattern(50, 40, 3);
  const PixelView part{whole.view().Row(5) + 7 * 3, 20, 10, 3, 50 * 3};
  for (const ImageFormat format :
       {ImageFormat::kJpeg, ImageFormat::kPng, ImageFormat::kWebp, ImageFormat::kRaw}) {
    const EncodeOptions options{.format = format};
    EXPECT_EQ(EncodeTo(part, options), EncodeTo(Copy(part).view(), options));
  }
}

TEST(Encode, RefusesWhatTheFormatDoesNotHold) {
  ImageEncoder encoder;
  const auto code = [&](const PixelView& view, const EncodeOptions& options) {
    return encoder.Encode(view, options).status().code();
  };
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  const TestPixels rgba = MakePattern(8, 8, 4);
  EXPECT_EQ(code(rgba.view(), {}), kRefused);
  PixelView wide{rgba.bytes.data(), 4, 8, 3, 32, 2};
  EXPECT_EQ(code(wide, {.format = ImageFormat::kWebp}), kRefused);
  EXPECT_EQ(code(wide, {.format = ImageFormat::kRaw}), kRefused);
  EXPECT_EQ(code({}, {.format = ImageFormat::kPng}), kRefused);
  EXPECT_EQ(code(rgba.view(), {.format = ImageFormat::kGif}), kRefused);
  const TestPixels thin = MakePattern(65501, 1, 1);
  EXPECT_EQ(code(thin.view(), {}), kRefused);
  EXPECT_EQ(code(thin.view(), {.format = ImageFormat::kWebp}), kRefused);
  EXPECT_TRUE(encoder.Encode(thin.view(), {.format = ImageFormat::kPng}).ok());
}

}  // namespace
}  // namespace shardpack
