// Compared with the real Pillow: all unusual images, all resize modes and filters, colour profiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/testing/scratch_folder.h"
#include "images/codecs/decode_testing.h"
#include "images/transform/profile_testing.h"
#include "images/transform/transform.h"

namespace shardpack {
namespace {

struct Job {
  std::string name;  // for messages
  Image file;
  TransformOptions options;
  std::string mode;        // Pillow's
  std::string background;  // "-": keeps alpha; "drop": drops it
  int max_difference = 1;
};

const char* FilterName(ResizeFilter filter) {
  static constexpr const char* kNames[] = {"box", "bilinear", "bicubic", "lanczos"};
  return kNames[static_cast<size_t>(filter)];
}

ImageInfo InfoOf(const Image& file) {
  const auto info = KnownImageInfo(std::as_bytes(std::span(file)), ImageInfo(), UINT64_MAX);
  EXPECT_TRUE(info.ok()) << info.status();
  return info.value_or(ImageInfo());
}

ResizePlan PlanOf(const Job& job) {
  const ImageInfo info = InfoOf(job.file);
  uint32_t width = info.width, height = info.height;
  if (info.orientation > 4) std::swap(width, height);
  return PlanResize(job.options, width, height);
}

// One per job, without the bars of kPad.
std::vector<TestPixels> ByPillow(const std::vector<Job>& jobs) {
  const testing::ScratchFolder scratch;
  std::ofstream lines(scratch.File("jobs"));
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const std::string path = scratch.File(absl::StrCat("image", i));
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(job.file.data()),
               static_cast<std::streamsize>(job.file.size()));
    const ResizePlan plan = PlanOf(job);
    const bool off = job.options.resize == ResizeMode::kOff;
    lines << absl::StrFormat("%s %s %s %s %d %d %a %a %a %a\n", path, job.mode, job.background,
                             FilterName(plan.filter), off ? 0 : plan.width, off ? 0 : plan.height,
                             plan.box.left, plan.box.top, plan.box.right, plan.box.bottom);
  }
  lines.close();
  const std::string result = scratch.File("result");
  const std::string command =
      absl::StrCat("/usr/bin/python3 -B images/transform/transform_with_pillow.py ",
                   scratch.File("jobs"), " ", result);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream in(result, std::ios::binary);
  std::vector<TestPixels> images;
  std::string line;
  for (size_t i = 0; i < jobs.size() && std::getline(in, line); ++i) {
    TestPixels pixels;
    std::istringstream(line) >> pixels.width >> pixels.height >> pixels.channels;
    const size_t sample_bytes = jobs[i].mode == "I;16" ? 2 : 1;
    pixels.bytes.resize(size_t{pixels.width} * pixels.height * pixels.channels * sample_bytes);
    in.read(reinterpret_cast<char*>(pixels.bytes.data()),
            static_cast<std::streamsize>(pixels.bytes.size()));
    images.push_back(std::move(pixels));
  }
  return images;
}

// Transformed to raw, without bars.
TestPixels ByUs(const Job& job) {
  const auto transform = ImageTransform::Create(job.options);
  EXPECT_TRUE(transform.ok()) << transform.status();
  TransformScratch scratch;
  const auto image = transform->Run(std::as_bytes(std::span(job.file)), InfoOf(job.file), scratch);
  EXPECT_TRUE(image.ok()) << job.name << ": " << image.status();
  if (!image.ok()) return {};
  ImageDecoder decoder;
  const auto decoded =
      decoder.Decode(image->bytes, image->info,
                     {.channels = static_cast<uint8_t>(image->info.channels <= 2 ? 1 : 3),
                      .alpha = image->info.alpha()});
  EXPECT_TRUE(decoded.ok()) << job.name << ": " << decoded.status();
  if (!decoded.ok()) return {};
  const ResizePlan plan = PlanOf(job);
  const TestPixels all = Copy(decoded->view);
  return CropPixels(all.view(), {plan.left, plan.top, plan.width, plan.height});
}

// Colours are weighted by their alpha.
int Difference(const TestPixels& a, const TestPixels& b) {
  if (a.width != b.width || a.height != b.height || a.channels != b.channels) return 256;
  if (a.channels % 2 == 1) return LargestDifference(a.view(), b.view());
  int largest = 0;
  for (size_t i = 0; i < a.bytes.size(); i += a.channels) {
    const int alpha_a = a.bytes[i + a.channels - 1], alpha_b = b.bytes[i + a.channels - 1];
    largest = std::max(largest, std::abs(alpha_a - alpha_b));
    for (size_t c = 0; c + 1 < a.channels; ++c) {
      const int difference = a.bytes[i + c] * alpha_a - b.bytes[i + c] * alpha_b;
      largest = std::max(largest, (std::abs(difference) + 127) / 255);
    }
  }
  return largest;
}

void ExpectAsPillow(const std::vector<Job>& jobs) {
  const std::vector<TestPixels> expected = ByPillow(jobs);
  ASSERT_EQ(expected.size(), jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    const TestPixels ours = ByUs(jobs[i]);
    EXPECT_LE(Difference(ours, expected[i]), jobs[i].max_difference)
        << jobs[i].name << ": " << ours.width << "x" << ours.height << "x" << ours.channels
        << ", Pillow has " << expected[i].width << "x" << expected[i].height << "x"
        << expected[i].channels;
  }
}

// Every test image that both can decode, to raw RGB and raw gray.
TEST(TransformAsPillow, OddImages) {
  std::vector<Job> jobs;
  for (const TestImage& image : LoadTestImages()) {
    if (image.name.starts_with("rle8") || image.name == "big-mm.tif") continue;
    // BMP: Pillow has no 32-bit alpha. TIFF: Pillow treats associated alpha as unassociated.
    const bool other_alpha = image.name.ends_with(".bmp") || image.name.ends_with(".tif");
    TransformOptions rgb{.encode = EncodeAs::kRaw, .color = ColorChange::kRgb};
    if (image.expected.alpha() && !other_alpha) {
      rgb.background = 0x2060a0;
      rgb.alpha = AlphaChange::kBlend;
      jobs.push_back({image.name + " blended", image.bytes, rgb, "RGB", "2060a0", 2});
      rgb.alpha = AlphaChange::kKeep;
      jobs.push_back({image.name + " with alpha", image.bytes, rgb, "RGBA", "-", 1});
    }
    rgb.alpha = AlphaChange::kDrop;
    const int most = image.name.ends_with(".webp") ? 2 : 1;
    jobs.push_back({image.name + " rgb", image.bytes, rgb, "RGB", "drop", most});
    TransformOptions gray = rgb;
    gray.color = ColorChange::kGray;
    // The luma of a JPEG is stored; Pillow computes it from rounded RGB.
    jobs.push_back({image.name + " gray", image.bytes, gray, "L", "drop", 2});
  }
  ASSERT_GT(jobs.size(), 100u);
  ExpectAsPillow(jobs);
}

TEST(TransformAsPillow, ResizeModes) {
  std::vector<Job> jobs;
  struct Mode {
    ResizeMode mode;
    uint32_t width, height;
  };
  static constexpr Mode kModes[] = {
      {ResizeMode::kShortest, 64, 64}, {ResizeMode::kLongest, 64, 64},
      {ResizeMode::kExact, 70, 31},    {ResizeMode::kCrop, 48, 60},
      {ResizeMode::kPad, 90, 40},      {ResizeMode::kShortest, 300, 300},
      {ResizeMode::kExact, 1, 1},      {ResizeMode::kCrop, 333, 77},
  };
  static constexpr Interpolation kFilters[] = {Interpolation::kArea, Interpolation::kBilinear,
                                               Interpolation::kBicubic, Interpolation::kLanczos};
  const Image wide = EncodeJpeg(MakePattern(211, 160, 3), {.quality = 95});
  const Image high = EncodeJpeg(MakePattern(97, 250, 3, 2), {.quality = 95});
  for (const Mode& mode : kModes) {
    for (const Interpolation filter : kFilters) {
      for (const Image& file : {wide, high}) {
        TransformOptions options{.resize = mode.mode, .width = mode.width, .height = mode.height};
        options.interpolation = filter;
        options.exact = true;
        options.encode = EncodeAs::kPng;
        jobs.push_back({absl::StrCat("mode ", static_cast<int>(mode.mode), " ", mode.width, "x",
                                     mode.height, " filter ", static_cast<int>(filter)),
                        file, options, "RGB", "drop", 1});
      }
    }
  }
  ExpectAsPillow(jobs);
}

// Turned and resized in one step, with alpha, 16 bits to 8.
TEST(TransformAsPillow, ResizedOddImages) {
  std::vector<Job> jobs;
  for (const TestImage& image : LoadTestImages()) {
    const bool turned = image.expected.orientation > 1 && !image.name.ends_with(".tif");
    const bool alpha = image.name == "rgba.png" || image.name == "lossy-alpha.webp";
    if (!turned && !alpha) continue;
    TransformOptions options{.resize = ResizeMode::kExact, .width = 13, .height = 9};
    options.encode = EncodeAs::kPng;
    options.exact = true;
    options.color = ColorChange::kRgb;
    // Pillow rounds premultiplied colours to 8 bits.
    for (const Interpolation filter :
         {Interpolation::kBilinear, Interpolation::kBicubic, Interpolation::kLanczos}) {
      options.interpolation = filter;
      jobs.push_back({absl::StrCat(image.name, " filter ", static_cast<int>(filter)), image.bytes,
                      options, alpha ? "RGBA" : "RGB", "-", alpha ? 2 : 1});
    }
  }
  ASSERT_GT(jobs.size(), 8u);
  ExpectAsPillow(jobs);
}

TEST(TransformAsPillow, ColorProfiles) {
  std::vector<Job> jobs;
  const TransformOptions raw{.encode = EncodeAs::kRaw};
  const TransformOptions rgb{.encode = EncodeAs::kRaw, .color = ColorChange::kRgb};
  const Image photo = EncodeJpeg(MakePattern(61, 47, 3), {.quality = 95});
  const Image gray = EncodeJpeg(MakePattern(61, 47, 1), {.quality = 95});
  const Image ink = EncodeJpeg(MakePattern(61, 47, 4), {.quality = 95});
  const Image ycck = EncodeJpeg(MakePattern(61, 47, 4), {.quality = 95, .ycck = true});
  jobs.push_back({"RGB", WithProfile(photo, WideRgbProfile()), rgb, "RGB", "-", 1});
  jobs.push_back({"RGB to sRGB", WithProfile(photo, SrgbProfile()), rgb, "RGB", "-", 1});
  jobs.push_back({"gray", WithProfile(gray, GrayProfile()), raw, "L", "-", 1});
  jobs.push_back({"gray to RGB", WithProfile(gray, GrayProfile()), rgb, "RGB", "-", 1});
  jobs.push_back({"CMYK", WithProfile(ink, InkProfile()), rgb, "RGB", "-", 1});
  jobs.push_back({"YCCK", WithProfile(ycck, InkProfile()), rgb, "RGB", "-", 1});
  jobs.push_back({"CMYK without", ink, rgb, "RGB", "-", 1});
  jobs.push_back({"of another model", WithProfile(photo, InkProfile()), rgb, "RGB", "-", 1});
  ExpectAsPillow(jobs);
  // The profiles have an effect.
  EXPECT_GT(Difference(ByUs(jobs[0]), ByUs(jobs[1])), 8);
  EXPECT_GT(Difference(ByUs(jobs[4]), ByUs(jobs[6])), 8);
}

}  // namespace
}  // namespace shardpack
