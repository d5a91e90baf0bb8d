// Masks of all kinds, crops, sizes, orientations and flips, as Pillow's NEAREST; and what is not a
// mask.
#include "images/augment/mask_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/testing/scratch_folder.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;

constexpr SampleIdentity kSample = {.seed = 5, .epoch = 2, .id = 77};

std::vector<std::byte> ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

struct Case {
  PixelPipelineOptions options;
  SampleIdentity sample;
  ShownImage image;
};

uint32_t Upto(std::mt19937& random, uint32_t most) { return 1 + random() % most; }

CropOptions RandomCrop(std::mt19937& random, CropKind kind) {
  CropOptions crop = {.kind = kind, .width = Upto(random, 70), .height = Upto(random, 70)};
  crop.flip_probability = 0.5;
  crop.shortest_side = std::max(crop.width, crop.height) + random() % 40;
  return crop;
}

// The box and sizes of Pillow's steps, as a row for masks_with_pillow.py.
std::string StepsOf(const Case& one) {
  const CropOptions& options = one.options.crop;
  const Crop crop = ChooseCrop(options, one.image.width, one.image.height, one.sample);
  if (options.kind != CropKind::kCenter) {
    const auto edge = [](double at) { return static_cast<int>(at); };
    return absl::StrCat("0 ", edge(crop.box.left), " ", edge(crop.box.top), " ",
                        edge(crop.box.right), " ", edge(crop.box.bottom), " ", options.width, " ",
                        options.height, " ", crop.flip ? 1 : 0);
  }
  // torchvision's Resize of the shorter side and CenterCrop.
  const uint64_t side = options.shortest_side, width = one.image.width, height = one.image.height;
  const uint64_t to_width = width * side / std::min(width, height);
  const uint64_t to_height = height * side / std::min(width, height);
  const auto half = [](uint64_t rest) {  // Python's round()
    return rest / 2 + (rest % 4 == 3 ? 1 : 0);
  };
  const uint64_t left = half(to_width - options.width), top = half(to_height - options.height);
  return absl::StrCat("1 ", left, " ", top, " ", left + options.width, " ", top + options.height,
                      " ", to_width, " ", to_height, " ", crop.flip ? 1 : 0);
}

TEST(MaskPipeline, AsPillowsNearest) {
  static constexpr const char* kKinds[] = {
      "png-g1", "png-g2", "png-g4", "png-g8", "png-p1", "png-p2", "png-p4", "png-p8", "gif-P",
      "gif-L",  "bmp-1",  "bmp-P",  "bmp-L",  "tif-1",  "tif-P",  "tif-L",  "jpg-L"};
  static constexpr CropKind kCrops[] = {CropKind::kRandomResized, CropKind::kCenter,
                                        CropKind::kResize};
  const testing::ScratchFolder scratch;
  std::ofstream rows(scratch.File("cases"));
  std::mt19937 random(11);
  std::vector<Case> cases(600);
  for (size_t i = 0; i < cases.size(); ++i) {
    Case& one = cases[i];
    const std::string kind = kKinds[i % std::size(kKinds)];
    const bool turned = !kind.starts_with("gif") && !kind.starts_with("bmp") && random() % 3 == 0;
    const uint32_t orientation = turned ? Upto(random, 8) : 1;
    const uint32_t width = Upto(random, 90), height = Upto(random, 90);
    one.options.crop = RandomCrop(random, kCrops[random() % std::size(kCrops)]);
    one.sample = {.seed = random(), .epoch = random(), .id = i};
    one.image.width = orientation > 4 ? height : width;
    one.image.height = orientation > 4 ? width : height;
    rows << "mask" << i << " " << kind << " " << orientation << " " << width << " " << height << " "
         << StepsOf(one) << "\n";
  }
  rows.close();
  const std::string command =
      absl::StrCat("/usr/bin/python3 -B images/augment/masks_with_pillow.py ", scratch.path());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string name = absl::StrCat("mask", i);
    const std::vector<std::byte> file = ReadAll(scratch.File(name));
    const std::vector<std::byte> expected = ReadAll(scratch.File(name + ".expected"));
    MaskPipeline pipeline(cases[i].options);
    ASSERT_EQ(pipeline.output_bytes(), expected.size());
    std::vector<std::byte> mask(expected.size());
    const absl::Status made = pipeline.Run(file, cases[i].image, cases[i].sample,
                                           reinterpret_cast<uint8_t*>(mask.data()));
    ASSERT_TRUE(made.ok()) << made << " " << kKinds[i % std::size(kKinds)];
    EXPECT_EQ(mask, expected) << kKinds[i % std::size(kKinds)] << " " << StepsOf(cases[i]);
  }
}

class MaskOfTestImage : public ::testing::Test {
 protected:
  absl::Status Run(const char* name, uint32_t width, uint32_t height) {
    const Image file = LoadTestImage(name);
    ShownImage image;
    image.width = width;
    image.height = height;
    options_.crop = {.kind = CropKind::kResize, .width = width, .height = height};
    MaskPipeline pipeline(options_);
    mask_.assign(pipeline.output_bytes(), 0);
    return pipeline.Run(std::as_bytes(std::span(file)), image, kSample, mask_.data());
  }

  PixelPipelineOptions options_;
  std::vector<uint8_t> mask_;
};

ImageInfo InfoOf(const char* name) {
  for (const TestImage& image : LoadTestImages()) {
    if (image.name == name) return image.expected;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST_F(MaskOfTestImage, ColoursAndWideSamplesAreNoMasks) {
  for (const char* const name :
       {"rgb.png", "rgba.png", "gray-alpha.png", "gray16.png", "gray16.tif", "ii.tif", "rgb24.bmp",
        "lossless.webp", "baseline.jpg", "cmyk.jpg"}) {
    const ImageInfo info = InfoOf(name);
    const absl::Status refused = Run(name, info.width, info.height);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << name << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("of at most 8 bits")) << name;
  }
}

TEST_F(MaskOfTestImage, InterlacedAndTransparentOnesAreRead) {
  for (const char* const name : {"interlaced.gif", "transparent.gif", "palette-transparent.png",
                                 "gray1.png", "top-down.bmp", "palette.tif"}) {
    const ImageInfo info = InfoOf(name);
    if (info.color_space != ColorSpace::kGray && info.color_space != ColorSpace::kPalette) continue;
    EXPECT_EQ(Run(name, info.width, info.height), absl::OkStatus()) << name;
  }
}

TEST_F(MaskOfTestImage, AnotherSizeThanTheImageIsRefused) {
  const ImageInfo info = InfoOf("gray.png");
  const absl::Status refused = Run("gray.png", info.width + 1, info.height);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("the mask is ", info.width, " x ", info.height,
                                     " pixels, its image ", info.width + 1)));
}

TEST_F(MaskOfTestImage, ATruncatedOneIsDamage) {
  Image file = LoadTestImage("palette.png");
  const ImageInfo info = InfoOf("palette.png");
  file.resize(file.size() * 3 / 4);
  ShownImage image;
  image.width = info.width;
  image.height = info.height;
  options_.crop = {.kind = CropKind::kResize, .width = 8, .height = 8};
  MaskPipeline pipeline(options_);
  mask_.assign(64, 0);
  EXPECT_TRUE(
      absl::IsDataLoss(pipeline.Run(std::as_bytes(std::span(file)), image, kSample, mask_.data())));
}

// As stored, with its own orientation, if that is to be ignored.
TEST_F(MaskOfTestImage, ItsOrientationIsAppliedUnlessIgnored) {
  const Image upright = EncodeJpeg(MakePattern(30, 20, 1), {});
  Image turned = upright;
  // EXIF: little-endian, one entry, Orientation, SHORT, 6.
  Image exif;
  PutText(&exif, std::string_view("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
                                  "\0\0\0\0",
                                  32));
  Image segment;
  PutSegment(&segment, 0xE1, exif);
  Insert(&turned, 2, segment);
  options_.crop = {.kind = CropKind::kResize, .width = 30, .height = 20};
  ShownImage image;
  image.width = 30;
  image.height = 20;
  std::vector<uint8_t> as_stored(600), expected(600);
  ASSERT_TRUE(MaskPipeline(options_)
                  .Run(std::as_bytes(std::span(upright)), image, kSample, expected.data())
                  .ok());
  EXPECT_TRUE(absl::IsInvalidArgument(MaskPipeline(options_).Run(
      std::as_bytes(std::span(turned)), image, kSample, as_stored.data())));
  options_.orient = false;
  ASSERT_TRUE(MaskPipeline(options_)
                  .Run(std::as_bytes(std::span(turned)), image, kSample, as_stored.data())
                  .ok());
  EXPECT_EQ(as_stored, expected);
}

}  // namespace
}  // namespace shardpack
