// Label maps as torchvision's nearest and nearest-exact; of all bit depths, with palettes, by
// colours; and what is not a label map.
#include "images/augment/label_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "images/augment/shared_crop.h"
#include "images/codecs/decode_testing.h"
#include "images/codecs/encode.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

struct Map {
  uint32_t width = 0, height = 0;
  std::vector<uint16_t> labels = {};
};

Map RandomMap(std::mt19937& random, uint32_t bits) {
  Map map = {.width = static_cast<uint32_t>(1 + random() % 40),
             .height = static_cast<uint32_t>(1 + random() % 40)};
  for (uint32_t i = 0; i < map.width * map.height; ++i)
    map.labels.push_back(static_cast<uint16_t>(random() & ((1u << bits) - 1)));
  return map;
}

// Rows of one pass, which takes every `step` pixel from `first` on.
void PutPass(const Map& map, uint32_t bits, uint32_t x0, uint32_t y0, uint32_t dx, uint32_t dy,
             Image* rows) {
  if (x0 >= map.width) return;
  for (uint32_t y = y0; y < map.height; y += dy) {
    rows->push_back(0);  // no filter
    uint32_t held = 0, held_bits = 0;
    for (uint32_t x = x0; x < map.width; x += dx) {
      const uint32_t label = map.labels[y * map.width + x];
      if (bits == 16) rows->push_back(static_cast<uint8_t>(label >> 8));
      held = held << bits | label;
      held_bits += std::min(bits, 8u);
      if (held_bits < 8) continue;
      rows->push_back(static_cast<uint8_t>(held));
      held_bits = 0;
    }
    if (held_bits > 0) rows->push_back(static_cast<uint8_t>(held << (8 - held_bits)));
  }
}

struct PngKind {
  uint32_t bits = 8;
  bool palette = false, interlaced = false, transparent = false;
  uint8_t orientation = 1;
};

Image MakePng(const Map& map, const PngKind& kind) {
  Image png, header, rows;
  PutText(&png, "\x89PNG\r\n\x1a\n");
  PutBig(&header, map.width, 4);
  PutBig(&header, map.height, 4);
  for (const uint32_t byte : {kind.bits, kind.palette ? 3u : 0u, 0u, 0u, kind.interlaced ? 1u : 0u})
    header.push_back(static_cast<uint8_t>(byte));
  PutChunk(&png, "IHDR", header);
  if (kind.palette) {
    Image colors;  // all the same, so that labels from colours would be wrong
    for (uint32_t i = 0; i < 3u << kind.bits; ++i) colors.push_back(77);
    PutChunk(&png, "PLTE", colors);
  }
  if (kind.transparent) PutChunk(&png, "tRNS", kind.palette ? Image{0, 128} : Image{0, 1});
  if (kind.orientation != 1) {
    Image exif;
    PutText(&exif, std::string_view("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18));
    PutLittle(&exif, kind.orientation, 4);
    PutLittle(&exif, 0, 4);
    PutChunk(&png, "eXIf", exif);
  }
  if (kind.interlaced) {  // PNG, 8.2: the seven passes of Adam7
    static constexpr uint32_t kPasses[][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8},
                                              {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2},
                                              {0, 1, 1, 2}};
    for (const auto& [x0, y0, dx, dy] : kPasses) PutPass(map, kind.bits, x0, y0, dx, dy, &rows);
  } else {
    PutPass(map, kind.bits, 0, 0, 1, 1, &rows);
  }
  uLongf size = ::compressBound(rows.size());
  Image packed(size);
  EXPECT_EQ(::compress(packed.data(), &size, rows.data(), rows.size()), Z_OK);
  packed.resize(size);
  PutChunk(&png, "IDAT", packed);
  PutChunk(&png, "IEND", {});
  return png;
}

std::span<const std::byte> BytesOf(const Image& file) { return std::as_bytes(std::span(file)); }

ShownImage Shown(uint32_t width, uint32_t height) {
  ShownImage image;
  image.width = width;
  image.height = height;
  return image;
}

// The whole of a map, pixel by pixel.
class WholeMap {
 public:
  explicit WholeMap(uint32_t width, uint32_t height) {
    pixels_.crop = {.kind = CropKind::kResize, .width = width, .height = height};
    image_ = Shown(width, height);
  }
  absl::Status Run(const Image& file, const LabelMapOptions& options = {}) {
    auto pipeline = LabelPipeline::Create(pixels_, options);
    if (!pipeline.ok()) return pipeline.status();
    const size_t count = size_t{pixels_.crop.width} * pixels_.crop.height;
    wide_.assign(count, 0);
    narrow_.assign(count, 0);
    EXPECT_EQ(pipeline->output_bytes(), count * (options.wide ? 2 : 1));
    const Crop crop = {.box = {0, 0, double(image_.width), double(image_.height)}};
    const absl::Status run =
        pipeline->Run(BytesOf(file), image_, crop,
                      options.wide ? static_cast<void*>(wide_.data()) : narrow_.data());
    if (!options.wide) wide_.assign(narrow_.begin(), narrow_.end());
    return run;
  }
  std::string Why(const Image& file, const LabelMapOptions& options = {}) {
    const absl::Status refused = Run(file, options);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    return std::string(refused.message());
  }
  const std::vector<uint16_t>& labels() const { return wide_; }

  PixelPipelineOptions pixels_;
  ShownImage image_;

 private:
  std::vector<uint16_t> wide_;
  std::vector<uint8_t> narrow_;
};

TEST(LabelPipeline, AsTorchvision) {
  std::ifstream file("images/augment/testdata/label_maps.txt");
  uint32_t width, height, flip, legacy, crc, rows = 0;
  double left, top, crop_width, crop_height;
  std::string kind;
  PixelPipelineOptions pixels;
  ImageEncoder encoder;
  while (file >> width >> height >> kind >> left >> top >> crop_width >> crop_height >>
         pixels.crop.width >> pixels.crop.height >> flip >> legacy >> crc) {
    TestPixels map = {.width = width, .height = height, .channels = 1, .bytes = {}};
    for (uint32_t y = 0; y < height; ++y) {
      for (uint32_t x = 0; x < width; ++x)
        map.bytes.push_back(static_cast<uint8_t>(3 * x + 5 * y + x * y / 7));
    }
    Crop crop = {.box = {left, top, left + crop_width, top + crop_height}};
    pixels.crop.kind = CropKind::kRandomResized;
    if (kind == "center") {
      pixels.crop.kind = CropKind::kCenter;
      pixels.crop.shortest_side = static_cast<uint32_t>(left);
      crop = ChooseCrop(pixels.crop, width, height, {});
    }
    crop.flip = flip != 0;
    const auto png = encoder.Encode(map.view(), {.format = ImageFormat::kPng});
    ASSERT_TRUE(png.ok());
    auto pipeline = LabelPipeline::Create(pixels, {.legacy = legacy != 0});
    ASSERT_TRUE(pipeline.ok());
    std::vector<uint8_t> out(pipeline->output_bytes());
    ASSERT_EQ(pipeline->Run(*png, Shown(width, height), crop, out.data()), absl::OkStatus());
    EXPECT_EQ(::crc32(0, out.data(), static_cast<uInt>(out.size())), crc) << "case " << rows;
    ++rows;
  }
  EXPECT_EQ(rows, 400u);
}

TEST(LabelPipeline, NumbersAreThoseThatAreStored) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    PngKind kind = {.bits = 1u << i % 5,
                    .palette = i % 3 == 0,
                    .interlaced = i % 2 == 0,
                    .transparent = i % 7 < 3};
    if (kind.bits == 16) kind.palette = false;
    const Map map = RandomMap(random, kind.bits);
    WholeMap whole(map.width, map.height);
    EXPECT_EQ(whole.Run(MakePng(map, kind), {.wide = true, .ignore = 65'535}), absl::OkStatus());
    EXPECT_EQ(whole.labels(), map.labels) << kind.bits;
    if (kind.bits == 16) continue;
    EXPECT_EQ(whole.Run(MakePng(map, kind)), absl::OkStatus());
    EXPECT_EQ(whole.labels(), map.labels) << kind.bits;
  }
}

TEST(LabelPipeline, LabelsBeyondTheClassesOrTheBytes) {
  const Map map = {.width = 3, .height = 1, .labels = {2, 20, 255}};
  WholeMap whole(3, 1);
  EXPECT_EQ(whole.Run(MakePng(map, {}), {.classes = 21}), absl::OkStatus());
  EXPECT_THAT(whole.labels(), ElementsAre(2, 20, 255));
  EXPECT_THAT(whole.Why(MakePng(map, {}), {.classes = 20}),
              HasSubstr("the pixel 1, 0 has the label 20 of 20 classes"));
  EXPECT_THAT(whole.Why(MakePng(map, {}), {.ignore = 0, .classes = 21}),
              HasSubstr("the pixel 2, 0 has the label 255 of 21 classes"));
  const Map wide = {.width = 3, .height = 1, .labels = {2, 256, 65'535}};
  EXPECT_THAT(whole.Why(MakePng(wide, {.bits = 16})),
              HasSubstr("the pixel 1, 0 has the label 256, which needs 16 bits"));
  // 16 bits that hold small numbers are fine.
  EXPECT_EQ(whole.Run(MakePng(map, {.bits = 16})), absl::OkStatus());
  EXPECT_THAT(whole.labels(), ElementsAre(2, 20, 255));
}

TEST(LabelPipeline, ColoursOfATable) {
  TestPixels pixels = {.width = 3, .height = 1, .bytes = {0, 0, 0, 128, 0, 0, 0, 128, 0}};
  ImageEncoder encoder;
  const auto encoded = encoder.Encode(pixels.view(), {.format = ImageFormat::kPng});
  ASSERT_TRUE(encoded.ok());
  const auto* const data = reinterpret_cast<const uint8_t*>(encoded->data());
  const Image png(data, data + encoded->size());
  LabelMapOptions options = {.colors = {{0, 128, 0, 2}, {0, 0, 0, 0}, {128, 0, 0, 1}}};
  WholeMap whole(3, 1);
  EXPECT_EQ(whole.Run(png, options), absl::OkStatus());
  EXPECT_THAT(whole.labels(), ElementsAre(0, 1, 2));
  EXPECT_THAT(whole.Why(png), HasSubstr("no table says which labels"));
  options.colors.pop_back();
  EXPECT_THAT(whole.Why(png, options), HasSubstr("the pixel 1, 0 has the colour #800000"));
  // Also of a palette.
  const Map map = {.width = 3, .height = 1, .labels = {1, 2, 3}};
  EXPECT_EQ(whole.Run(MakePng(map, {.palette = true}), {.colors = {{77, 77, 77, 9}}}),
            absl::OkStatus());
  EXPECT_THAT(whole.labels(), Each(9));
}

TEST(LabelPipeline, OptionsThatCannotBe) {
  const auto why = [](const LabelMapOptions& options) {
    const auto made = LabelPipeline::Create({}, options);
    EXPECT_TRUE(absl::IsInvalidArgument(made.status()));
    return std::string(made.status().message());
  };
  EXPECT_THAT(why({.ignore = 256}), HasSubstr("ignore is 256"));
  EXPECT_THAT(why({.classes = 257}), HasSubstr("257 classes"));
  EXPECT_THAT(why({.colors = {{1, 2, 3, 4}, {1, 2, 3, 5}}}), HasSubstr("#010203 twice"));
  EXPECT_THAT(why({.classes = 4, .colors = {{1, 2, 3, 4}}}), HasSubstr("the label 4"));
  EXPECT_THAT(why({.colors = {{1, 2, 3, 400}}}), HasSubstr("the label 400"));
  EXPECT_THAT(why({.wide = true, .classes = 256}),
              HasSubstr("of 256 classes one has the label 255, which is what to ignore; let ignore "
                        "be 256 or more, or 0 for the background"));
  EXPECT_THAT(why({.classes = 256}),
              HasSubstr("let ignore be 0 for the background, or take wide labels"));
  EXPECT_THAT(why({.wide = true, .ignore = 65'535, .classes = 65'536}),
              EndsWith("let ignore be 0 for the background"));
  EXPECT_THAT(why({.ignore = 20, .classes = 21}), HasSubstr("has the label 20"));
  EXPECT_TRUE(LabelPipeline::Create({}, {.wide = true, .ignore = 65'535, .classes = 65'535}).ok());
  EXPECT_TRUE(LabelPipeline::Create({}, {.classes = 255}).ok());
  EXPECT_TRUE(LabelPipeline::Create({}, {.ignore = 0, .classes = 21}).ok());
}

TEST(LabelPipeline, WhatIsNoLabelMap) {
  EXPECT_THAT(WholeMap(30, 20).Why(EncodeJpeg(MakePattern(30, 20, 1), {})),
              HasSubstr("a JPEG is not a label map"));
  EXPECT_THAT(WholeMap(30, 20).Why(LoadTestImage("gray16.tif"), {.wide = true}),
              HasSubstr("has to be a PNG"));
  const Image rgb = LoadTestImage("rgb.png");
  EXPECT_THAT(WholeMap(30, 20).Why(rgb), HasSubstr("colours"));
  std::mt19937 random(1);
  const Map map = RandomMap(random, 8);
  Image png = MakePng(map, {});
  EXPECT_THAT(WholeMap(map.width + 7, map.height).Why(png),
              HasSubstr(absl::StrCat("it is ", map.width, " x ", map.height, " pixels")));
  png.resize(png.size() / 2);
  EXPECT_TRUE(absl::IsDataLoss(WholeMap(map.width, map.height).Run(png)));
  EXPECT_THAT(WholeMap(3, 3).Why({1, 2, 3}), HasSubstr("image"));
}

// Half the size, with an odd side: the crop is halved.
TEST(LabelPipeline, AMapOfAnotherScale) {
  Map map = {.width = 21, .height = 10};
  for (uint16_t i = 0; i < 210; ++i) map.labels.push_back(i);
  PixelPipelineOptions pixels;
  pixels.crop = {.width = 10, .height = 4};
  auto pipeline = LabelPipeline::Create(pixels, {});
  ASSERT_TRUE(pipeline.ok());
  std::vector<uint8_t> out(40);
  const Crop crop = {.box = {20, 4, 41, 12}};
  ASSERT_EQ(pipeline->Run(BytesOf(MakePng(map, {})), Shown(41, 20), crop, out.data()),
            absl::OkStatus());
  for (uint32_t y = 0; y < 4; ++y) {
    for (uint32_t x = 0; x < 10; ++x) {
      const double at_x = (20 + (x + 0.5) * 21 / 10) * 21 / 41, at_y = (4 + (y + 0.5) * 2) / 2;
      EXPECT_EQ(out[y * 10 + x], uint32_t(at_y) * 21 + uint32_t(at_x)) << x << " " << y;
    }
  }
}

TEST(LabelPipeline, OnlyItsOwnOrientationCounts) {
  const Map map = {.width = 3, .height = 2, .labels = {1, 2, 3, 4, 5, 6}};
  const Image turned = MakePng(map, {.orientation = 6});  // shown as 4 1, 5 2, 6 3
  WholeMap upright(2, 3);
  upright.image_.info.orientation = 8;  // the image's own is in its size already
  EXPECT_EQ(upright.Run(turned), absl::OkStatus());
  EXPECT_THAT(upright.labels(), ElementsAre(4, 1, 5, 2, 6, 3));
  WholeMap stored(3, 2);
  stored.pixels_.orient = false;
  EXPECT_EQ(stored.Run(turned), absl::OkStatus());
  EXPECT_EQ(stored.labels(), map.labels);
}

TEST(LabelPipeline, WithoutAMapAllIsIgnored) {
  std::vector<uint8_t> narrow(15, 1);
  FillWithIgnore({}, std::as_writable_bytes(std::span(narrow)));
  EXPECT_THAT(narrow, Each(255));
  std::vector<uint16_t> wide(15, 1);
  FillWithIgnore({.wide = true, .ignore = 1000}, std::as_writable_bytes(std::span(wide)));
  EXPECT_THAT(wide, Each(1000));
}

// What pack --resize makes of an image has its shape, whichever of the two is the smaller.
TEST(SharedCrop, SidesAreRounded) {
  const Crop crop = {.box = {0, 0, 341, 256}};
  for (const auto& [width, height] : {std::pair(1600u, 1200u), std::pair(2048u, 1536u),
                                      std::pair(4000u, 3000u), std::pair(4032u, 3024u)}) {
    const auto large = SharedCrop(crop, 341, 256, width, height);
    ASSERT_TRUE(large.ok()) << large.status();
    EXPECT_NEAR(large->box.right, width, 1e-9);
    EXPECT_NEAR(large->box.bottom, height, 1e-9);
    EXPECT_TRUE(
        SharedCrop({.box = {0, 0, double(width), double(height)}}, width, height, 341, 256).ok());
  }
  EXPECT_FALSE(SharedCrop(crop, 341, 256, 1600, 1206).ok());
  EXPECT_FALSE(SharedCrop(crop, 341, 256, 1200, 1600).ok());
}

}  // namespace
}  // namespace shardpack
