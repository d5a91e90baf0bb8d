// Profiles in every format, in parts, in the wrong order, truncated at every byte; invalid
// profiles.
#include "images/probe/icc_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "images/codecs/decode_testing.h"
#include "images/codecs/encode.h"
#include "images/transform/color_profile.h"
#include "images/transform/profile_testing.h"

namespace shardpack {
namespace {

std::span<const std::byte> BytesOf(const Image& file) { return std::as_bytes(std::span(file)); }

Image Encoded(ImageFormat format, const Image& profile) {
  ImageEncoder encoder;
  const auto file =
      encoder.Encode(MakePattern(9, 7, 3).view(), {.format = format, .profile = BytesOf(profile)});
  EXPECT_TRUE(file.ok()) << file.status();
  const auto* data = reinterpret_cast<const uint8_t*>(file->data());
  return Image(data, data + file->size());
}

bool Finds(const Image& file, ImageFormat format, const Image& profile) {
  const std::vector<std::byte> found = FindIccProfile(BytesOf(file), format);
  return std::ranges::equal(found, BytesOf(profile));
}

TEST(IccProfile, IsFoundInEveryFormat) {
  const Image profile = WideRgbProfile();
  for (const ImageFormat format : {ImageFormat::kJpeg, ImageFormat::kPng, ImageFormat::kWebp}) {
    const Image file = Encoded(format, profile);
    EXPECT_TRUE(Finds(file, format, profile)) << static_cast<int>(format);
    EXPECT_TRUE(Finds(Encoded(format, {}), format, {}));
    // Truncated anywhere: no profile, or the whole one.
    for (size_t end = 0; end < file.size(); ++end) {
      const Image cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(end));
      EXPECT_TRUE(Finds(cut, format, {}) || Finds(cut, format, profile)) << end;
    }
  }
}

TEST(IccProfile, JpegPartsInAnyOrder) {
  const Image jpeg = EncodeJpeg(MakePattern(9, 7, 3), {});
  const Image large = InkProfile();
  EXPECT_TRUE(Finds(WithProfile(jpeg, large), ImageFormat::kJpeg, large));
  const auto part = [](uint8_t number, uint8_t count, std::string_view text) {
    Image body, segment;
    PutText(&body, "ICC_PROFILE");
    body.insert(body.end(), {0, number, count});
    PutText(&body, text);
    PutSegment(&segment, 0xE2, body);
    return segment;
  };
  const auto with = [&](const std::vector<Image>& parts) {
    Image file = jpeg;
    size_t at = 2;
    for (const Image& each : parts) {
      Insert(&file, at, each);
      at += each.size();
    }
    return FindIccProfile(BytesOf(file), ImageFormat::kJpeg).size();
  };
  EXPECT_EQ(with({part(2, 2, "cd"), part(1, 2, "ab")}), 4u);
  EXPECT_EQ(with({part(2, 2, "cd")}), 0u);
  EXPECT_EQ(with({part(1, 2, "ab"), part(2, 3, "cd")}), 0u);
  EXPECT_EQ(with({part(0, 1, "ab")}), 0u);
  EXPECT_EQ(with({part(3, 2, "ab")}), 0u);
}

TEST(IccProfile, ModelsByTheProfileItself) {
  const auto model = [](const Image& profile) { return ProfileModelOf(BytesOf(profile)); };
  EXPECT_EQ(model({}), ProfileModel::kNone);
  EXPECT_EQ(model(SrgbProfile()), ProfileModel::kNone);
  EXPECT_EQ(model(WideRgbProfile()), ProfileModel::kRgb);
  EXPECT_EQ(model(GrayProfile()), ProfileModel::kGray);
  EXPECT_EQ(model(InkProfile()), ProfileModel::kCmyk);
  Image damaged = WideRgbProfile();
  damaged[36] = 'x';  // the signature of all profiles
  EXPECT_EQ(model(damaged), ProfileModel::kUnusable);
  for (const char* kind : {"link", "nmcl"}) {
    Image other = WideRgbProfile();
    std::copy(kind, kind + 4, other.begin() + 12);  // the class of device
    EXPECT_EQ(model(other), ProfileModel::kUnusable) << kind;
  }
  // A profile without tables is rejected.
  const Image head(damaged.begin(), damaged.begin() + 132);
  ColorConverter converter;
  const TestPixels pixels = MakePattern(4, 4, 3);
  std::vector<uint8_t> out(48);
  EXPECT_FALSE(converter.ToSrgb(BytesOf(head), ProfileModel::kRgb, pixels.view(), out.data()).ok());
  EXPECT_FALSE(
      converter.ToSrgb(BytesOf(InkProfile()), ProfileModel::kCmyk, pixels.view(), out.data()).ok());
}

}  // namespace
}  // namespace shardpack
