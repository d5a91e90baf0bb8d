// The pipeline against its parts at full scale, for all kinds of images, crops and orientations.
#include "images/augment/pixel_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "images/augment/crop.h"
#include "images/codecs/decode.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"
#include "images/resize/resize.h"

namespace shardpack {
namespace {

std::span<const std::byte> Bytes(const Image& file) { return std::as_bytes(std::span(file)); }

TestPixels RunPipeline(const Image& file, const PixelPipelineOptions& options,
                       const SampleIdentity& sample) {
  auto pipeline = PixelPipeline::Create(options);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  TestPixels made{options.crop.width, options.crop.height, options.channels, {}};
  made.bytes.resize(pipeline->output_bytes());
  const absl::Status status = pipeline->Run(Bytes(file), ImageInfo(), sample, made.bytes.data());
  EXPECT_TRUE(status.ok()) << status;
  return made;
}

// The same on whole images: decode, turn, crop, resize, mirror.
TestPixels Reference(const Image& file, const PixelPipelineOptions& options,
                     const SampleIdentity& sample) {
  DecodeOptions decode;
  decode.channels = options.channels;
  const auto whole = Decode(file, decode);
  EXPECT_TRUE(whole.ok()) << whole.status();
  const Crop crop = ChooseCrop(options.crop, whole->width, whole->height, sample);
  TestPixels part = *whole;
  PixelBox box = crop.box;
  if (!crop.margin) {
    part =
        CropPixels(whole->view(), {static_cast<uint32_t>(box.left), static_cast<uint32_t>(box.top),
                                   static_cast<uint32_t>(box.right - box.left),
                                   static_cast<uint32_t>(box.bottom - box.top)});
    box = {0, 0, double(part.width), double(part.height)};
  }
  TestPixels made{options.crop.width, options.crop.height, options.channels, {}};
  const PixelOutput output(options.output, options.channels);
  made.bytes.resize(output.Bytes(made.width, made.height));
  ResizeOptions resize{.width = made.width, .height = made.height, .filter = options.filter};
  resize.mirror_x = crop.flip;
  const absl::Status status = Resizer().Resize(part.view(), box, resize, output, made.bytes.data());
  EXPECT_TRUE(status.ok()) << status;
  return made;
}

double MeanDifference(const TestPixels& a, const TestPixels& b) {
  double sum = 0;
  for (size_t i = 0; i < a.bytes.size(); ++i) sum += std::abs(a.bytes[i] - b.bytes[i]);
  return sum / static_cast<double>(a.bytes.size());
}

TEST(PixelPipeline, IsItsPartsAtFullScale) {
  for (const TestImage& image : LoadTestImages()) {
    if (image.name.starts_with("rle8")) continue;
    for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter, CropKind::kResize}) {
      for (uint64_t id = 0; id < 6; ++id) {
        PixelPipelineOptions options;
        // Larger than any part of these images, so they are decoded at full scale.
        options.crop = {.kind = kind, .width = 48, .height = 56, .flip_probability = 0.5};
        options.crop.shortest_side = 60;
        // No box filter if edges lie within pixels or images are turned: at equal distance it picks
        // the left neighbour, or decides by the last bit of the positions.
        const bool box = kind != CropKind::kCenter && image.expected.orientation == 1;
        options.filter = static_cast<ResizeFilter>(box ? id % 4 : 1 + id % 3);
        // What the first pass clamps at 0 and 255 depends on the order of the axes.
        const bool transposed = image.expected.orientation > 4;
        if (transposed) options.filter = ResizeFilter::kBilinear;
        options.channels = id == 5 ? 1 : 3;
        const TestPixels ours = RunPipeline(image.bytes, options, {1, 2, id});
        const TestPixels expected = Reference(image.bytes, options, {1, 2, id});
        // For a transposed image, the axes are resized in the other order.
        const int most = transposed ? 2 : 1;
        ASSERT_LE(LargestDifference(ours.view(), expected.view()), most)
            << image.name << " " << static_cast<int>(kind) << " " << id;
      }
    }
  }
}

// A JPEG that can be decoded at 1/2 to 1/8 is decoded so, and looks the same.
TEST(PixelPipeline, ScaledDecodeIsNear) {
  // Smooth, like photographs at this size.
  TestPixels waves = MakePattern(1200, 900, 3);
  for (uint32_t i = 0; i < waves.bytes.size(); ++i) {
    const uint32_t x = i / 3 % 1200, y = i / 3600;
    waves.bytes[i] = static_cast<uint8_t>(128 + 60 * std::sin(x / 31.0 + i % 3) +
                                          60 * std::cos(y / 23.0 - x / 57.0));
  }
  for (const bool progressive : {false, true}) {
    const Image file =
        EncodeJpeg(waves, {.sampling = {2, 2}, .progressive = progressive, .quality = 95});
    for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter, CropKind::kResize}) {
      for (uint64_t id = 0; id < 8; ++id) {
        PixelPipelineOptions options;
        options.crop = {.kind = kind, .width = 64, .height = 64, .flip_probability = 0.5};
        options.crop.shortest_side = 70;
        const TestPixels ours = RunPipeline(file, options, {1, 2, id});
        const TestPixels expected = Reference(file, options, {1, 2, id});
        // 1/8 is the quantised mean of each block.
        EXPECT_LT(MeanDifference(ours, expected), 1.2);
        EXPECT_LE(LargestDifference(ours.view(), expected.view()), 8);
      }
    }
  }
}

// A region of exactly eight times the size: one IDCT value per pixel, no resize.
TEST(PixelPipeline, ExactScaleIsTheDecodersOwn) {
  const Image file = EncodeJpeg(MakePattern(512, 512, 3), {});
  PixelPipelineOptions options;
  options.crop = {.kind = CropKind::kResize, .width = 64, .height = 64};
  const TestPixels ours = RunPipeline(file, options, {});
  const auto eighth = Decode(file, {.min_width = 64, .min_height = 64});
  ASSERT_TRUE(eighth.ok());
  EXPECT_EQ(ours.bytes, eighth->bytes);
}

TEST(PixelPipeline, SameSampleSamePixels) {
  const Image file = EncodeJpeg(MakePattern(300, 200, 3), {.sampling = {2, 2}});
  const PixelPipelineOptions options{.crop = {.width = 32, .height = 32, .flip_probability = 0.5}};
  auto pipeline = PixelPipeline::Create(options);
  ASSERT_TRUE(pipeline.ok());
  std::vector<uint8_t> first(pipeline->output_bytes()), again(first.size());
  ASSERT_TRUE(pipeline->Run(Bytes(file), ImageInfo(), {1, 2, 3}, first.data()).ok());
  // Other images and failures in between have no effect.
  Image broken = file;
  broken.resize(700);
  EXPECT_FALSE(pipeline->Run(Bytes(broken), ImageInfo(), {1, 2, 4}, again.data()).ok());
  const Image png = LoadTestImage("rgb16.png");
  EXPECT_TRUE(pipeline->Run(Bytes(png), ImageInfo(), {1, 2, 5}, again.data()).ok());
  ASSERT_TRUE(pipeline->Run(Bytes(file), ImageInfo(), {1, 2, 3}, again.data()).ok());
  EXPECT_EQ(first, again);
  ASSERT_TRUE(pipeline->Run(Bytes(file), ImageInfo(), {1, 3, 3}, again.data()).ok());
  EXPECT_NE(first, again);
}

TEST(PixelPipeline, RefusesOptionsThatCannotBe) {
  EXPECT_TRUE(PixelPipeline::Create({}).ok());
  EXPECT_FALSE(PixelPipeline::Create({.channels = 2}).ok());
  EXPECT_FALSE(PixelPipeline::Create({.crop = {.width = 0}}).ok());
  const auto why = [](const OutputFormat& output) {
    return std::string(PixelPipeline::Create({.output = output}).status().message());
  };
  EXPECT_EQ(why({.std = {1, 1, 0}}), "std is a finite number above 0, and not 0");
  EXPECT_EQ(why({.std = {-1, 1, 1}}), "std is a finite number above 0, and not -1");
  EXPECT_EQ(why({.std = {1, INFINITY, 1}}), "std is a finite number above 0, and not inf");
  EXPECT_EQ(why({.mean = {0, 0, std::nanf("")}}), "mean is a finite number, and not nan");
}

TEST(PixelPipeline, NoImageIsAnError) {
  auto pipeline = PixelPipeline::Create({});
  std::vector<std::byte> out(pipeline->output_bytes());
  EXPECT_EQ(pipeline->Run({}, ImageInfo(), {}, out.data()).code(),
            absl::StatusCode::kInvalidArgument);
  ImageInfo empty;
  empty.format = ImageFormat::kJpeg;
  EXPECT_EQ(pipeline->Run({}, empty, {}, out.data()).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardpack
