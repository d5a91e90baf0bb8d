// Images of the sizes and kinds of real datasets, decoded for the device: each is what the CPU
// makes of it, within what decoders differ by. On the fake nvJPEG, and (as :jpeg_sizes_gpu_test) on
// a GPU, where it fails without nvJPEG, and without engines where the GPU has some.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda/dynload/nvjpeg_library.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/testing/test_device.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

struct File {
  std::string name;
  Image bytes;
  ImageInfo info;
};

// A picture as photographs are: what decoders differ by grows with the contrast of neighbours.
TestPixels Smooth(uint32_t width, uint32_t height, uint32_t seed) {
  TestPixels pixels = MakePattern(width, height, 3);
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      uint8_t* const pixel = &pixels.bytes[(size_t{y} * width + x) * 3];
      pixel[0] = static_cast<uint8_t>((x * 255 / width + seed) % 256 / 2 + 40);
      pixel[1] = static_cast<uint8_t>(y * 200 / height + 20);
      pixel[2] = static_cast<uint8_t>(((x + y) * 120 / (width + height)) + 60);
    }
  }
  return pixels;
}

// Large ones take the CPU's threads, which the fake is made of, too long.
std::vector<File> Files(bool large) {
  std::vector<File> files;
  const auto add = [&](const std::string& name, const TestPixels& pixels, const JpegKind& kind) {
    Image bytes = EncodeJpeg(pixels, kind);
    const ImageInfo info = Probe(bytes).info;
    files.push_back({name, std::move(bytes), info});
  };
  add("500x375 4:2:0", Smooth(500, 375, 0), {.sampling = {2, 2}});
  add("500x375 4:4:4", Smooth(500, 375, 1), {.sampling = {1, 1}});
  add("500x375 4:2:2", Smooth(500, 375, 2), {.sampling = {2, 1}});
  add("500x375 4:4:0", Smooth(500, 375, 3), {.sampling = {1, 2}});
  add("progressive", Smooth(500, 375, 4), {.progressive = true});
  if (large) {
    add("1920x1080", Smooth(1920, 1080, 5), {.sampling = {2, 2}});
    add("4000x3000", Smooth(4000, 3000, 6), {.sampling = {2, 2}});
  }
  add("odd sizes", Smooth(333, 251, 7), {.sampling = {2, 2}});
  add("64x64", Smooth(64, 64, 8), {.sampling = {2, 2}});
  add("narrow", Smooth(16, 3000, 9), {.sampling = {2, 2}});
  return files;
}

class JpegSizes : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(device.ok()) << device.why();
    ASSERT_TRUE(device.get().EnterThread().ok());
    functions = device.nvjpeg();
    if (functions == nullptr) {
      library_ = NvjpegLibrary::Open();
      ASSERT_TRUE(library_.ok()) << library_.status();
      functions = &library_->functions();
    }
    files = Files(device.fake() == nullptr);
    stream = device.MakeStream();
  }

  TestDevice device;
  const NvjpegFunctions* functions = nullptr;  // the fake's, or those of the library
  std::vector<File> files;
  Stream stream = nullptr;

 private:
  absl::StatusOr<NvjpegLibrary> library_ = absl::NotFoundError("the fake");
};

TEST_F(JpegSizes, AreWhatTheCpuMakesOfThem) {
  for (const bool engines : {true, false}) {
    JpegDecoderOptions options;
    options.use_hardware = engines;
    JpegDecoder decoder(functions, device.get(), options);
    EXPECT_TRUE(decoder.has_hybrid()) << decoder.backends();
    if (engines && device.should_have_engines()) {
      EXPECT_TRUE(decoder.has_hardware()) << decoder.backends();
    }
    // Several times over, so that memory is used again.
    for (int round = 0; round < 3; ++round) {
      std::vector<JpegImage> images;
      std::vector<void*> outs;
      for (const File& file : files) {
        const size_t pitch = size_t{file.info.width} * 3;
        outs.push_back(device.Allocate(pitch * file.info.height));
        images.push_back(
            {.file = {reinterpret_cast<const std::byte*>(file.bytes.data()), file.bytes.size()},
             .info = file.info,
             .out = static_cast<uint8_t*>(outs.back()),
             .pitch_bytes = pitch});
      }
      std::vector<JpegResult> results(images.size());
      ASSERT_TRUE(decoder.Decode(images, stream, results).ok());
      for (size_t i = 0; i < files.size(); ++i) {
        SCOPED_TRACE(files[i].name);
        ASSERT_TRUE(results[i].status.ok()) << results[i].status;
        EXPECT_NE(results[i].way, JpegWay::kCpu) << decoder.stats().first_refusal;
        const auto expected = Decode(files[i].bytes, {.channels = 3, .orient = false});
        ASSERT_TRUE(expected.ok()) << expected.status();
        const std::string got =
            device.Read(outs[i], images[i].pitch_bytes * files[i].info.height, stream);
        const PixelView view{reinterpret_cast<const uint8_t*>(got.data()), files[i].info.width,
                             files[i].info.height, 3, images[i].pitch_bytes};
        const PixelView right = expected->view();
        double sum = 0;
        for (uint32_t y = 0; y < view.height; ++y) {
          for (uint32_t x = 0; x < view.width * 3; ++x)
            sum += std::abs(int{view.Row(y)[x]} - int{right.Row(y)[x]});
        }
        EXPECT_LE(LargestDifference(view, right), device.fake() != nullptr ? 0 : 16);
        EXPECT_LE(sum / (double{3} * view.width * view.height), 2);
        device.Free(outs[i]);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_TRUE(device.get().DestroyStream(stream).ok());
}

// What is decoded of a part of an image is what the CPU makes of that part, too.
TEST_F(JpegSizes, PartsAreThoseOfTheWhole) {
  for (const bool engines : {true, false}) {
    JpegDecoderOptions options;
    options.use_hardware = engines;
    options.regions = true;
    JpegDecoder decoder(functions, device.get(), options);
    // Parts anywhere; from the second round on whole images if the library cannot.
    for (uint32_t round = 0; round < 4; ++round) {
      std::vector<JpegImage> images;
      for (const File& file : files) {
        const uint32_t width = file.info.width, height = file.info.height;
        JpegImage image = {
            .file = {reinterpret_cast<const std::byte*>(file.bytes.data()), file.bytes.size()},
            .info = file.info,
            .region = {width * round / 5, height * (4 - round) / 5, (width + 3) / 4,
                       (height + 4) / 5}};
        image.region.width = std::min(image.region.width, width - image.region.left);
        image.region.height = std::min(image.region.height, height - image.region.top);
        if (decoder.takes_rooms()) image.room = RoomFor(file.info, image.region);
        image.pitch_bytes = size_t{PartOf(image).width} * 3;
        image.out = static_cast<uint8_t*>(device.Allocate(OutBytesOf(image)));
        images.push_back(image);
      }
      std::vector<JpegResult> results(images.size());
      ASSERT_TRUE(decoder.Decode(images, stream, results).ok());
      for (size_t i = 0; i < files.size(); ++i) {
        SCOPED_TRACE(files[i].name);
        ASSERT_TRUE(results[i].status.ok()) << results[i].status;
        const JpegImage& image = images[i];
        const auto expected =
            Decode(files[i].bytes, {.region = image.region, .channels = 3, .orient = false});
        ASSERT_TRUE(expected.ok()) << expected.status();
        const std::string got = device.Read(image.out, OutBytesOf(image), stream);
        const auto* const pixels = reinterpret_cast<const uint8_t*>(got.data());
        const PixelRegion part = results[i].packed ? image.region : PartOf(image);
        const size_t pitch = size_t{part.width} * 3;
        const size_t at =
            (image.region.top - part.top) * pitch + size_t{image.region.left - part.left} * 3;
        const PixelView view{pixels + at, image.region.width, image.region.height, 3, pitch};
        EXPECT_LE(LargestDifference(view, expected->view()), device.fake() != nullptr ? 0 : 16);
        device.Free(image.out);
      }
      if (HasFailure()) return;
    }
    const JpegDecoderStats stats = decoder.stats();
    std::printf("%s: %d images by region%s%s\n", engines ? "engines" : "hybrid",
                static_cast<int>(stats.regions), stats.why_whole.empty() ? "" : "; ",
                stats.why_whole.c_str());
    EXPECT_TRUE(stats.regions > 0 || !stats.why_whole.empty());
    if (device.fake() != nullptr) {
      EXPECT_EQ(stats.why_whole, "");
    }
  }
  EXPECT_TRUE(device.get().DestroyStream(stream).ok());
}

}  // namespace
}  // namespace shardpack
