// Unchanged images, reported changes, metadata, scaled decoding, damage, limits.
#include "images/transform/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "images/codecs/decode_testing.h"
#include "images/codecs/encode.h"
#include "images/probe/icc_profile.h"
#include "images/transform/profile_testing.h"

namespace shardpack {
namespace {

std::span<const std::byte> BytesOf(const Image& file) { return std::as_bytes(std::span(file)); }

ImageInfo InfoOf(const Image& file) {
  const auto info = KnownImageInfo(BytesOf(file), ImageInfo(), UINT64_MAX);
  EXPECT_TRUE(info.ok()) << info.status();
  return info.value_or(ImageInfo());
}

struct Result {
  absl::Status status;
  Image bytes;
  ImageInfo info;
  uint16_t changes = 0;
  bool same_place = false;
};

Result Apply(const Image& file, const TransformOptions& options,
             const TransformLimits& limits = {}) {
  Result result;
  const auto transform = ImageTransform::Create(options, limits);
  EXPECT_TRUE(transform.ok()) << transform.status();
  TransformScratch scratch;
  const auto image = transform->Run(BytesOf(file), InfoOf(file), scratch);
  result.status = image.status();
  if (!image.ok()) return result;
  const auto* data = reinterpret_cast<const uint8_t*>(image->bytes.data());
  result.bytes.assign(data, data + image->bytes.size());
  result.info = image->info;
  result.changes = image->changes;
  result.same_place = data == file.data();
  if (result.info.format != ImageFormat::kRaw) {
    EXPECT_EQ(InfoOf(result.bytes), result.info);
  }
  return result;
}

TEST(Transform, IdentityTouchesNothing) {
  ASSERT_TRUE(TransformOptions().identity());
  for (const TestImage& image : LoadTestImages()) {
    const Result same = Apply(image.bytes, {});
    EXPECT_TRUE(same.status.ok() && same.same_place && same.changes == 0) << image.name;
    EXPECT_EQ(same.info, InfoOf(image.bytes));
  }
}

// An image that an option does not affect keeps its bytes.
TEST(Transform, ImagesThatAreAsAskedForKeepTheirBytes) {
  const Image jpeg = LoadTestImage("baseline.jpg"), png = LoadTestImage("rgb.png");
  const ImageInfo info = InfoOf(jpeg);
  const TransformOptions kinds[] = {
      {.encode = EncodeAs::kJpeg, .quality = 10},
      {.resize = ResizeMode::kExact, .width = info.width, .height = info.height},
      {.resize = ResizeMode::kShortest, .width = 4000, .height = 4000, .only_if_bigger = true},
      {.resize = ResizeMode::kCrop, .width = 4000, .height = 20, .only_if_bigger = true},
      {.color = ColorChange::kRgb},
      {.depth8 = true},
      {.alpha = AlphaChange::kDrop},
      {.orient = OrientChange::kBake},
      {.profile = ProfileChange::kSrgb},
  };
  for (const TransformOptions& options : kinds) {
    EXPECT_FALSE(options.identity());
    EXPECT_TRUE(Apply(jpeg, options).same_place) << &options - kinds;
    const bool other = options.encode == EncodeAs::kJpeg || options.resize == ResizeMode::kExact;
    if (!other) {
      EXPECT_TRUE(Apply(png, options).same_place) << &options - kinds;
    }
  }
  EXPECT_TRUE(
      Apply(WithProfile(jpeg, SrgbProfile()), {.profile = ProfileChange::kSrgb}).same_place);
  EXPECT_FALSE(
      Apply(WithProfile(jpeg, WideRgbProfile()), {.profile = ProfileChange::kSrgb}).same_place);
}

Image Patched(Image profile, size_t at, const std::string& bytes) {
  std::copy(bytes.begin(), bytes.end(), profile.begin() + static_cast<ptrdiff_t>(at));
  return profile;
}

size_t PlaceOf(const Image& profile, const std::string& words) {
  return static_cast<size_t>(
      std::search(profile.begin(), profile.end(), words.begin(), words.end()) - profile.begin());
}

// Whatever the profile is, the pixels are valid: they are treated as without a profile, and
// counted.
TEST(Transform, AProfileThatCannotBeUsedIsIgnored) {
  const Image wide = WideRgbProfile();
  const std::map<std::string, Image> odd = {
      {"cut in the header", Image(wide.begin(), wide.begin() + 60)},
      {"cut in the tags", Image(wide.begin(), wide.begin() + 140)},
      {"of size 0", Patched(wide, 0, std::string(4, '\0'))},
      {"without tags", Patched(wide, 128, std::string(4, '\0'))},
      {"curves without primaries", Patched(wide, PlaceOf(wide, "rXYZ"), "zzzz")},
      {"a link of devices", Patched(wide, 12, "link")},
      {"named colors", Patched(wide, 12, "nmcl")},
      {"of another space", Patched(wide, 16, "Lab ")},
      {"of a space that there is not", Patched(wide, 16, "what")},
      {"of another model", GrayProfile()},
      {"ink", InkProfile()},
      {"one byte", Image(1, 0)},
  };
  const Image jpeg = LoadTestImage("baseline.jpg");
  for (const TransformOptions& options :
       {TransformOptions{.resize = ResizeMode::kShortest, .width = 9, .height = 9},
        TransformOptions{.encode = EncodeAs::kPng},
        TransformOptions{.encode = EncodeAs::kRaw, .color = ColorChange::kRgb},
        TransformOptions{.encode = EncodeAs::kPng, .profile = ProfileChange::kKeep}}) {
    const Result bare = Apply(jpeg, options);
    for (const auto& [name, profile] : odd) {
      const Result result = Apply(WithProfile(jpeg, profile), options);
      ASSERT_TRUE(result.status.ok()) << name << ": " << result.status;
      if (options.profile == ProfileChange::kKeep && result.changes == bare.changes) continue;
      EXPECT_EQ(result.changes, bare.changes | kProfileIgnored) << name;
      EXPECT_EQ(result.bytes, bare.bytes) << name;
    }
  }
  // Nothing else is requested: the file is unchanged, and the ignored profile is reported.
  for (const auto& [name, profile] : odd) {
    const Image file = WithProfile(jpeg, profile);
    const Result result = Apply(file, {.profile = ProfileChange::kSrgb});
    ASSERT_TRUE(result.status.ok()) << name << ": " << result.status;
    EXPECT_TRUE(result.same_place) << name;
    EXPECT_EQ(result.changes, kProfileIgnored) << name;
    EXPECT_FALSE(ChangesPixels(result.changes));
  }
  // CMYK without a usable profile follows Adobe's convention.
  const Image ink = LoadTestImage("cmyk.jpg");
  const Result by_rule = Apply(ink, {.encode = EncodeAs::kPng});
  const Image cut_ink = Patched(InkProfile(), 128, std::string(4, '\0'));
  const Result ignored = Apply(WithProfile(ink, cut_ink), {.encode = EncodeAs::kPng});
  ASSERT_TRUE(ignored.status.ok()) << ignored.status;
  EXPECT_EQ(ignored.bytes, by_rule.bytes);
  EXPECT_EQ(ignored.changes, by_rule.changes | kProfileIgnored);
}

struct Row {
  const char* name;
  TransformOptions options;
  ImageFormat format;
  uint8_t channels, bits;
  uint16_t changes;
};

// Inputs and results; docs/pixels.md shows this table.
TEST(Transform, OddImages) {
  const TransformOptions png{.encode = EncodeAs::kPng}, jpg{.encode = EncodeAs::kJpeg},
      raw{.encode = EncodeAs::kRaw}, webp{.encode = EncodeAs::kWebp},
      half{.resize = ResizeMode::kExact, .width = 8, .height = 8};
  const Row rows[] = {
      {"gray.jpg", png, ImageFormat::kPng, 1, 8, kOtherFormat},
      {"gray.jpg", {.color = ColorChange::kRgb}, ImageFormat::kJpeg, 3, 8, kOtherColor},
      {"baseline.jpg", {.color = ColorChange::kGray}, ImageFormat::kJpeg, 1, 8, kOtherColor},
      {"cmyk.jpg", half, ImageFormat::kJpeg, 3, 8, kResized | kOtherColor},
      {"ycck.jpg", png, ImageFormat::kPng, 3, 8, kOtherFormat | kOtherColor},
      {"gray16.png", half, ImageFormat::kPng, 1, 16, kResized},
      {"rgb16.png", half, ImageFormat::kPng, 3, 16, kResized},
      {"rgba16.png", half, ImageFormat::kPng, 4, 16, kResized},
      {"rgb16.png", {.depth8 = true}, ImageFormat::kPng, 3, 8, kOtherDepth},
      {"rgb16.png", jpg, ImageFormat::kJpeg, 3, 8, kOtherFormat | kOtherDepth},
      {"gray1.png", {.depth8 = true}, ImageFormat::kPng, 1, 8, kOtherDepth},
      {"gray-alpha.png", half, ImageFormat::kPng, 2, 8, kResized},
      {"gray-alpha.png", raw, ImageFormat::kRaw, 1, 8, kOtherFormat | kAlphaRemoved},
      {"rgba.png", jpg, ImageFormat::kJpeg, 3, 8, kOtherFormat | kAlphaRemoved},
      {"rgba.png", webp, ImageFormat::kWebp, 4, 8, kOtherFormat},
      {"rgba.png", {.alpha = AlphaChange::kDrop}, ImageFormat::kPng, 3, 8, kAlphaRemoved},
      {"palette.png", half, ImageFormat::kPng, 3, 8, kResized | kOtherColor},
      {"palette-transparent.png", half, ImageFormat::kPng, 4, 8, kResized | kOtherColor},
      {"rgb-transparent.png", half, ImageFormat::kPng, 4, 8, kResized},
      {"animated.gif", half, ImageFormat::kPng, 0, 8, 0},
      {"animated.webp", half, ImageFormat::kWebp, 0, 8, kResized | kFirstFrame},
      {"multi-page.tif", png, ImageFormat::kPng, 0, 8, 0},
      {"transparent.gif", png, ImageFormat::kPng, 4, 8, kOtherFormat | kOtherColor},
      {"rgba-v5.bmp", png, ImageFormat::kPng, 4, 8, kOtherFormat},
      {"orientation-6.jpg", half, ImageFormat::kJpeg, 3, 8, kResized | kTurnedUpright},
  };
  for (const Row& row : rows) {
    const Result result = Apply(LoadTestImage(row.name), row.options);
    ASSERT_TRUE(result.status.ok()) << row.name << ": " << result.status;
    EXPECT_EQ(result.info.format, row.format) << row.name;
    if (row.channels != 0) {
      EXPECT_EQ(result.info.channels, row.channels) << row.name;
    }
    EXPECT_EQ(result.info.bits_per_channel, row.bits) << row.name;
    EXPECT_EQ(result.info.orientation, 1) << row.name;
    EXPECT_FALSE(result.info.animated()) << row.name;
    if (row.changes != 0) {
      EXPECT_EQ(result.changes, row.changes) << row.name;
    }
  }
  EXPECT_NE(Apply(LoadTestImage("animated.gif"), half).changes & kFirstFrame, 0);
  EXPECT_NE(Apply(LoadTestImage("multi-page.tif"), png).changes & kFirstFrame, 0);
}

// 16 bits are not reduced to 8 on the way: the output equals the input.
TEST(Transform, SixteenBitsStaySixteenBits) {
  constexpr uint32_t kWidth = 31, kHeight = 17, kRowBytes = kWidth * 3 * 2;
  const TestPixels noise = MakePattern(kWidth * 2, kHeight, 3);
  const PixelView wide{noise.bytes.data(), kWidth, kHeight, 3, kRowBytes, 2};
  ImageEncoder encoder;
  const auto encoded = encoder.Encode(wide, {.format = ImageFormat::kPng});
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  const auto* data = reinterpret_cast<const uint8_t*>(encoded->data());
  const Image file(data, data + encoded->size());
  // Re-encoded only because of the bars.
  const TransformOptions padded{
      .resize = ResizeMode::kPad, .width = kWidth, .height = kHeight + 2, .only_if_bigger = true};
  const Result result = Apply(file, padded);
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(result.info.bits_per_channel, 16);
  ImageDecoder decoder;
  const auto after = decoder.Decode(BytesOf(result.bytes), result.info, {.wide = true});
  ASSERT_TRUE(after.ok());
  for (uint32_t y = 0; y < kHeight; ++y) {
    EXPECT_TRUE(std::equal(wide.Row(y), wide.Row(y) + kRowBytes, after->view.Row(y + 1))) << y;
  }
  // To 8 bits: scaled, not clamped.
  const Result narrow = Apply(file, {.depth8 = true});
  ASSERT_TRUE(narrow.status.ok());
  const auto eight = decoder.Decode(BytesOf(narrow.bytes), narrow.info, {});
  ASSERT_TRUE(eight.ok());
  for (uint32_t i = 0; i < kWidth * 3; ++i) {
    uint16_t sample;
    std::memcpy(&sample, wide.Row(0) + 2 * i, 2);
    EXPECT_NEAR(eight->view.Row(0)[i], sample / 257.0, 0.6) << i;
  }
}

TEST(Transform, MetadataIsDroppedUnlessAskedFor) {
  const Image turned = WithProfile(LoadTestImage("orientation-6.jpg"), WideRgbProfile());
  for (const EncodeAs encode : {EncodeAs::kJpeg, EncodeAs::kPng, EncodeAs::kWebp}) {
    TransformOptions options{.resize = ResizeMode::kExact, .width = 20, .height = 12};
    options.encode = encode;
    const Result bare = Apply(turned, options);
    ASSERT_TRUE(bare.status.ok()) << bare.status;
    EXPECT_EQ(bare.info.orientation, 1);
    EXPECT_TRUE(FindIccProfile(BytesOf(bare.bytes), bare.info.format).empty());
    const std::string text(bare.bytes.begin(), bare.bytes.end());
    for (const char* word :
         {"Exif", "eXIf", "EXIF", "http", "ICC_PROFILE", "iCCP", "tEXt", "tIME"}) {
      EXPECT_EQ(text.find(word), std::string::npos) << word;
    }
    options.orient = OrientChange::kKeep;
    options.profile = ProfileChange::kKeep;
    const Result kept = Apply(turned, options);
    ASSERT_TRUE(kept.status.ok()) << kept.status;
    EXPECT_EQ(kept.info.orientation, 6);
    EXPECT_EQ(kept.info.width, 20u);
    const auto profile = FindIccProfile(BytesOf(kept.bytes), kept.info.format);
    const Image expected = WideRgbProfile();
    EXPECT_TRUE(std::ranges::equal(profile, std::as_bytes(std::span(expected))));
  }
}

// The bound given in docs/pixels.md, on an image as smooth as a photograph.
TEST(Transform, ScaledDecodingIsCloseToTheWhole) {
  TransformOptions enlarge{.resize = ResizeMode::kExact, .width = 1600, .height = 1200};
  enlarge.encode = EncodeAs::kJpeg;
  const Image file = Apply(EncodeJpeg(MakePattern(400, 300, 3), {.quality = 95}), enlarge).bytes;
  TransformOptions options{.resize = ResizeMode::kShortest, .width = 128, .height = 128};
  options.encode = EncodeAs::kRaw;
  const Result scaled = Apply(file, options);
  options.exact = true;
  const Result whole = Apply(file, options);
  ASSERT_TRUE(scaled.status.ok() && whole.status.ok());
  ASSERT_EQ(scaled.bytes.size(), whole.bytes.size());
  double sum = 0;
  for (size_t i = 0; i < whole.bytes.size(); ++i) sum += std::abs(scaled.bytes[i] - whole.bytes[i]);
  const double mean = sum / static_cast<double>(whole.bytes.size());
  std::printf("scaled decoding differs by %.3f levels on average\n", mean);
  EXPECT_GT(mean, 0);
  EXPECT_LT(mean, 1);
}

TEST(Transform, RawPixelsAreFixedInShape) {
  TransformOptions options{.resize = ResizeMode::kCrop, .width = 11, .height = 7};
  options.encode = EncodeAs::kRaw;
  EXPECT_FALSE(RawShape(options).has_value());
  options.color = ColorChange::kRgb;
  ASSERT_TRUE(RawShape(options).has_value());
  for (const TestImage& image : LoadTestImages()) {
    if (image.name.starts_with("rle8")) continue;
    const Result result = Apply(image.bytes, options);
    ASSERT_TRUE(result.status.ok()) << image.name << ": " << result.status;
    EXPECT_EQ(result.bytes.size(), RawShape(options)->bytes()) << image.name;
    EXPECT_EQ(result.info.width, 11u);
    EXPECT_EQ(result.info.height, 7u);
    EXPECT_EQ(result.info.channels, 3);
    EXPECT_EQ(result.info.format, ImageFormat::kRaw);
  }
  options.only_if_bigger = true;
  EXPECT_FALSE(RawShape(options).has_value());
  options.resize = ResizeMode::kPad;
  EXPECT_TRUE(RawShape(options).has_value());
  options.alpha = AlphaChange::kKeep;
  EXPECT_FALSE(RawShape(options).has_value());
}

// A truncated file is an error, however far the transform got.
TEST(Transform, CutFilesFail) {
  for (const char* name : {"baseline.jpg", "progressive.jpg", "rgb.png", "lossy.webp", "ii.tif"}) {
    const Image file = LoadTestImage(name);
    const auto transform = ImageTransform::Create({.encode = EncodeAs::kRaw});
    for (size_t end = file.size() * 2 / 3; end < file.size() * 9 / 10; ++end) {
      const Image cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(end));
      TransformScratch scratch;
      const auto image = transform->Run(BytesOf(cut), InfoOf(file), scratch);
      ASSERT_FALSE(image.ok()) << name << " cut at " << end;
    }
  }
}

// Goes by what a profile holds: "Linear sRGB" is a name that editors give to linear profiles.
TEST(Transform, LinearProfilesNamedSrgbAreApplied) {
  TestPixels gray = {4, 1, 3, Image(12, 64)};
  const Image jpeg = EncodeJpeg(gray, {.quality = 100});
  const TransformOptions options{.encode = EncodeAs::kRaw, .profile = ProfileChange::kSrgb};
  const Result plain = Apply(WithProfile(jpeg, SrgbProfile()), options);
  const Result linear = Apply(WithProfile(jpeg, LinearSrgbProfile()), options);
  EXPECT_EQ(plain.changes & kProfileApplied, 0);
  EXPECT_EQ(linear.changes & kProfileApplied, kProfileApplied);
  EXPECT_NEAR(plain.bytes[0], 64, 1);
  EXPECT_NEAR(linear.bytes[0], 137, 2);  // 255 * (1.055 * (64 / 255) ** (1 / 2.4) - 0.055)
}

Image Png(const TestPixels& pixels) {
  ImageEncoder encoder;
  const auto file = encoder.Encode(pixels.view(), {.format = ImageFormat::kPng});
  EXPECT_TRUE(file.ok()) << file.status();
  const auto* data = reinterpret_cast<const uint8_t*>(file->data());
  return Image(data, data + file->size());
}

TEST(Transform, SidesThatWouldBeTooLongAreRefused) {
  const Image thin = Png(MakePattern(2000, 4, 3));
  TransformOptions options{.resize = ResizeMode::kShortest, .width = 131, .height = 131};
  EXPECT_EQ(Apply(thin, options).info.width, 65'500u);
  options.width = options.height = 132;
  EXPECT_EQ(Apply(thin, options).status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Transform, ResizesOfTallImagesWithAlphaAreCountedAndLimited) {
  const Image tall = Png(MakePattern(1, 100'000, 4));
  TransformOptions options{.resize = ResizeMode::kExact, .width = 512, .height = 32};
  const auto transform = ImageTransform::Create(options);
  const TransformTarget target = transform->Decide(BytesOf(tall), InfoOf(tall));
  // A row of the result takes two of its 3,125 source rows' worth of floating-point rows.
  EXPECT_GE(ImageTransform::WorkingBytes(InfoOf(tall), target), 2u * 3125 * 512 * 4 * 4);
  options.width = 65'535;
  EXPECT_EQ(Apply(tall, options).status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(Transform, LimitsAndMemory) {
  const Image file = EncodeJpeg(MakePattern(400, 300, 3), {.progressive = true});
  EXPECT_EQ(Apply(file, {.encode = EncodeAs::kPng}, {.max_pixels = 400 * 300 - 1}).status.code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Apply(file, {.encode = EncodeAs::kPng}, {.max_scans = 2}).status.code(),
            absl::StatusCode::kResourceExhausted);
  const auto working_bytes = [&](const TransformOptions& options) {
    const auto transform = ImageTransform::Create(options);
    const TransformTarget target = transform->Decide(BytesOf(file), InfoOf(file));
    return ImageTransform::WorkingBytes(InfoOf(file), target);
  };
  // At least the decoded pixels, and the coefficients of a progressive image.
  EXPECT_GE(working_bytes({.encode = EncodeAs::kPng}), 400u * 300 * (3 + 6));
  EXPECT_LE(working_bytes({.encode = EncodeAs::kPng}), 400u * 300 * 32);
  EXPECT_EQ(working_bytes({.encode = EncodeAs::kJpeg}), 0u);
}

// The result does not depend on earlier uses of the scratch.
TEST(Transform, ScratchLeavesNoTrace) {
  TransformOptions options{.resize = ResizeMode::kPad, .width = 50, .height = 40};
  const auto transform = ImageTransform::Create(options);
  TransformScratch used;
  for (const TestImage& image : LoadTestImages()) {
    if (image.name.starts_with("rle8")) continue;
    const Result fresh = Apply(image.bytes, options);
    const auto again = transform->Run(BytesOf(image.bytes), InfoOf(image.bytes), used);
    ASSERT_TRUE(again.ok()) << image.name;
    EXPECT_TRUE(std::ranges::equal(again->bytes, BytesOf(fresh.bytes))) << image.name;
  }
}

TEST(Transform, RefusesContradictions) {
  const TransformOptions bad[] = {
      {.resize = ResizeMode::kExact},
      {.width = 5, .height = 5},
      {.resize = ResizeMode::kShortest, .width = 5, .height = 6},
      {.resize = ResizeMode::kExact, .width = 65536, .height = 5},
      {.only_if_bigger = true},
      {.encode = EncodeAs::kJpeg, .alpha = AlphaChange::kKeep},
      {.encode = EncodeAs::kRaw, .orient = OrientChange::kKeep},
      {.encode = EncodeAs::kRaw, .profile = ProfileChange::kKeep},
      {.encode = EncodeAs::kPng, .color = ColorChange::kGray, .profile = ProfileChange::kKeep},
      {.encode = EncodeAs::kJpeg, .quality = 0},
  };
  for (const TransformOptions& options : bad) {
    EXPECT_EQ(ImageTransform::Create(options).status().code(), absl::StatusCode::kInvalidArgument)
        << &options - bad;
  }
}

// Equal options have equal texts, different options have different texts.
TEST(Transform, OptionsHaveOneText) {
  EXPECT_TRUE(TransformOptions().ToMap().empty());
  TransformOptions options{.resize = ResizeMode::kCrop, .width = 224, .height = 160};
  const auto text = options.ToMap();
  EXPECT_EQ(text.at("resize"), "crop");
  EXPECT_EQ(text.at("size"), "224x160");
  EXPECT_NE(text.at("pixel-libraries").find("libjpeg-turbo "), std::string::npos);
  std::vector<TransformOptions> others(12, options);
  others[0].width = 225;
  others[1].only_if_bigger = true;
  others[2].interpolation = Interpolation::kLanczos;
  others[3].exact = true;
  others[4].encode = EncodeAs::kWebp;
  others[5].quality = 94;
  others[6].color = ColorChange::kGray;
  others[7].depth8 = true;
  others[8].alpha = AlphaChange::kDrop;
  others[9].alpha = AlphaChange::kBlend;
  others[10].orient = OrientChange::kKeep;
  others[11].profile = ProfileChange::kKeep;
  for (const TransformOptions& other : others) EXPECT_NE(other.ToMap(), text);
}

TEST(PlanResize, Modes) {
  const auto plan = [](ResizeMode mode, uint32_t width, uint32_t height,
                       bool only_if_bigger = false) {
    TransformOptions options{.resize = mode, .width = width, .height = height};
    options.only_if_bigger = only_if_bigger;
    const ResizePlan made = PlanResize(options, 500, 375);
    return std::vector<uint32_t>{made.width, made.height, made.out_width, made.out_height};
  };
  using Sizes = std::vector<uint32_t>;
  EXPECT_EQ(plan(ResizeMode::kShortest, 256, 256), (Sizes{341, 256, 341, 256}));
  EXPECT_EQ(plan(ResizeMode::kLongest, 256, 256), (Sizes{256, 192, 256, 192}));
  EXPECT_EQ(plan(ResizeMode::kExact, 10, 700), (Sizes{10, 700, 10, 700}));
  EXPECT_EQ(plan(ResizeMode::kCrop, 224, 224), (Sizes{224, 224, 224, 224}));
  EXPECT_EQ(plan(ResizeMode::kPad, 256, 256), (Sizes{256, 192, 256, 256}));
  EXPECT_EQ(plan(ResizeMode::kPad, 600, 600, true), (Sizes{500, 375, 600, 600}));
  EXPECT_EQ(plan(ResizeMode::kShortest, 400, 400, true), (Sizes{500, 375, 500, 375}));
  EXPECT_EQ(plan(ResizeMode::kExact, 400, 400, true), (Sizes{500, 375, 500, 375}));
  EXPECT_EQ(plan(ResizeMode::kLongest, 1, 1), (Sizes{1, 1, 1, 1}));
}

}  // namespace
}  // namespace shardpack
