// DeviceLoader with images that are hard on decoders, and with neighbours on its device: a clear
// error or the right pixels, and never anything else. On the fake device with a fake nvJPEG.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/device/host_device.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/resident_loader.h"
#include "cuda/testing/decode_outcome.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/codecs/decode_testing.h"
#include "images/probe/probe_testing.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The frame header of a JPEG: FF C0 (or another), length, precision, height, width.
size_t FrameOf(const Image& jpeg) {
  for (size_t i = 2; i + 4 <= jpeg.size(); i += 2 + (jpeg[i + 2] << 8 | jpeg[i + 3])) {
    if (jpeg[i] == 0xFF && (jpeg[i + 1] & 0xF0) == 0xC0 && jpeg[i + 1] != 0xC4) return i;
  }
  std::abort();
}

// An image on a fake device, decoded there.
struct Decoded {
  JpegResult result;
  std::vector<uint8_t> pixels;
};
Decoded DecodeThere(const Image& file, uint64_t max_pixels = JpegDecoderOptions().max_pixels) {
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  const Stream stream = *fake.CreateStream();
  Decoded decoded;
  {
    JpegDecoderOptions options;
    options.max_pixels = max_pixels;
    JpegDecoder decoder(&nvjpeg.functions(), fake, options);
    JpegImage image;
    image.file = {reinterpret_cast<const std::byte*>(file.data()), file.size()};
    image.info = Probe(file).info;
    image.pitch_bytes = size_t{image.info.width} * 3;
    const size_t bytes = std::min<size_t>(image.pitch_bytes * image.info.height, 1 << 20);
    image.out = static_cast<uint8_t*>(*fake.Allocate(std::max<size_t>(bytes, 1), "an image"));
    EXPECT_TRUE(decoder.Decode({&image, 1}, stream, {&decoded.result, 1}).ok());
    EXPECT_TRUE(fake.Synchronize(stream).ok());
    if (decoded.result.status.ok()) decoded.pixels.assign(image.out, image.out + bytes);
    EXPECT_TRUE(fake.Free(image.out).ok());
  }
  EXPECT_TRUE(fake.DestroyStream(stream).ok());
  EXPECT_THAT(fake.misuses(), IsEmpty());
  EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
  return decoded;
}

void ExpectAsOnCpu(const Image& file, const Decoded& got) {
  ASSERT_TRUE(got.result.status.ok()) << got.result.status;
  const auto expected = Decode(file, {.channels = 3, .orient = false});
  ASSERT_TRUE(expected.ok()) << expected.status();
  const PixelView view{got.pixels.data(), expected->view().width, expected->view().height, 3,
                       size_t{expected->view().width} * 3};
  EXPECT_EQ(LargestDifference(view, expected->view()), 0);
}

TEST(DeviceBadInput, OnePixelWideAndVeryHigh) {
  for (const auto& [width, height] : {std::pair{1u, 60'000u}, {60'000u, 1u}}) {
    const Image file = EncodeJpeg(MakePattern(width, height, 3), {});
    ExpectAsOnCpu(file, DecodeThere(file));
  }
}

// More pixels than an image may have: nothing is reserved for it, and no decoder sees it.
TEST(DeviceBadInput, MorePixelsThanAllowed) {
  Image file = EncodeJpeg(MakePattern(16, 16, 3), {});
  const size_t frame = FrameOf(file);
  file[frame + 5] = file[frame + 7] = 0x40;  // 16384 x 16384
  file[frame + 6] = file[frame + 8] = 0;
  const Decoded got = DecodeThere(file);
  EXPECT_THAT(got.result.status.ToString(), AllOf(HasSubstr("RESOURCE_EXHAUSTED"),
                                                  HasSubstr("16384x16384 is more than 64000000")));
}

// An image of 16384 x 16384 whose blocks are all gray: one bit for each coefficient.
Image HugeJpeg() {
  constexpr uint32_t kSide = 16384;
  Image jpeg = {0xFF, 0xD8};
  Image table(65, 1);
  table[0] = 0;
  PutSegment(&jpeg, 0xDB, table);
  Image frame = {8};
  PutBig(&frame, kSide, 2);
  PutBig(&frame, kSide, 2);
  frame.insert(frame.end(), {1, 1, 0x11, 0});
  PutSegment(&jpeg, 0xC0, frame);
  // Of each table one code, 0: no difference to the block before; no coefficients.
  for (const uint8_t id : {uint8_t{0x00}, uint8_t{0x10}}) {
    Image huffman(18, 0);
    huffman[0] = id;
    huffman[1] = 1;
    PutSegment(&jpeg, 0xC4, huffman);
  }
  PutSegment(&jpeg, 0xDA, {1, 1, 0x00, 0, 63, 0});
  jpeg.resize(jpeg.size() + size_t{kSide / 8} * (kSide / 8) * 2 / 8, 0);
  jpeg.insert(jpeg.end(), {0xFF, 0xD9});
  return jpeg;
}

// With `max_pixels` raised; by nvJPEG, and by the CPU, which decodes what the crop takes.
TEST(DeviceBadInput, VeryManyPixelsWhereTheyAreAllowed) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "takes too long, and too much memory";
#endif
  const Image file = HugeJpeg();
  const LoaderFixture data(
      TestName(), {.samples = 2, .batch = 2, .first = std::string(file.begin(), file.end())});
  DeviceOptions options = Decoding(data, nullptr);
  options.decode->channels = 1;
  options.decode->crop.max_scale = 0.1;
  const Outcome refused = RunEpochs(HostDevice::Get(), data, options);
  ASSERT_THAT(refused.errors, SizeIs(1));
  EXPECT_THAT(std::string(refused.errors[0].message()),
              HasSubstr("16384x16384 is more than 64000000 pixels"));
  options.decode->max_pixels = uint64_t{1} << 28;
  const Outcome by_cpu = RunEpochs(HostDevice::Get(), data, options);
  EXPECT_THAT(by_cpu.errors, IsEmpty());
  ASSERT_THAT(by_cpu.batches, SizeIs(1));
  const auto& ids = by_cpu.batches[0].info.ids;
  const size_t image_bytes = LoaderFixture::kWidth * LoaderFixture::kHeight;
  const size_t slot = static_cast<size_t>(std::find(ids.begin(), ids.end(), 0u) - ids.begin());
  EXPECT_EQ(by_cpu.batches[0].pixels.substr(slot * image_bytes, image_bytes),
            std::string(image_bytes, '\x80'));
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  options.decode->nvjpeg = &nvjpeg.functions();
  options.decode->use_hardware = false;  // to which the fake compares, and fills, all of it
  const Outcome by_hybrid = RunEpochs(fake, data, options);
  EXPECT_THAT(by_hybrid.errors, IsEmpty());
  EXPECT_EQ(by_hybrid.stats.decode.hybrid, 2u);
  ExpectEqual(by_hybrid.batches, by_cpu.batches);
}

// Which no decoder of NVIDIA takes, and the engines must not be asked for.
TEST(DeviceBadInput, ArithmeticCodesAreForTheCpu) {
  for (const bool progressive : {false, true}) {
    const Image file =
        EncodeJpeg(MakePattern(70, 50, 3), {.progressive = progressive, .arithmetic = true});
    const Decoded got = DecodeThere(file);
    ExpectAsOnCpu(file, got);
    EXPECT_EQ(got.result.way, JpegWay::kCpu);
  }
}

TEST(DeviceBadInput, TwelveBitsAreRefused) {
  Image file = EncodeJpeg(MakePattern(32, 32, 3), {});
  const size_t frame = FrameOf(file);
  file[frame + 1] = 0xC1;  // extended sequential, which may have 12 bits
  file[frame + 4] = 12;
  const Decoded got = DecodeThere(file);
  EXPECT_FALSE(got.result.status.ok());
  EXPECT_EQ(got.result.way, JpegWay::kCpu);
  EXPECT_THAT(std::string(got.result.status.message()), HasSubstr("12"));
}

// A GPU of which others have all but 64 MB: less is taken at a time, or the error has the sizes.
TEST(DeviceBadInput, LittleMemoryIsLeft) {
  const LoaderFixture data(TestName(), {});
  FakeDevice fake({.device_cap_bytes = uint64_t{1} << 26});
  EXPECT_THAT(
      ResidentLoader::Open(data.dataset(), data.order(), {},
                           {.width = 1000, .height = 1000, .log = nullptr}, fake)
          .status()
          .ToString(),
      AllOf(HasSubstr("RESOURCE_EXHAUSTED"),
            HasSubstr("40 images of 3000000 bytes take 120000000 bytes"), HasSubstr("53687091")));
  PinnedMemory memory(fake, {.log = nullptr});
  DeviceOptions options{
      .preprocess = DevicePreprocess{.output = {}},
      .decode = DeviceDecode{.crop = {.width = 1500, .height = 1500}, .threads = 1},
      .log = nullptr};
  LoaderOptions encoded = data.Options();
  encoded.decode.reset();
  encoded.image_infos = true;
  // 8 x 1500 x 1500 x 3 bytes a buffer: 54 MB.
  EXPECT_THAT(DeviceLoader::Open(data.Open(memory, encoded), options, fake).status().ToString(),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("54000")));
  options.decode->crop.width = options.decode->crop.height = 64;
  auto loader = DeviceLoader::Open(data.Open(memory, encoded), options, fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_TRUE((*loader->Next()).has_value());
}

// What a batch on a device has no place for is refused, and neither dropped nor written beyond the
// end of a buffer.
TEST(DeviceBadInput, WhatBatchesOnADeviceDoNotHave) {
  const LoaderFixture data(TestName(), {.objects = true});
  for (const bool preprocess : {false, true}) {
    const auto refusal = [&](const std::function<void(LoaderOptions&)>& change) {
      FakeDevice fake;
      PinnedMemory memory(fake, {.log = nullptr});
      LoaderOptions options = data.Options();
      change(options);
      DeviceOptions device{.log = nullptr};
      if (preprocess) device.preprocess.emplace();
      return DeviceLoader::Open(data.Open(memory, options), device, fake).status().ToString();
    };
    EXPECT_THAT(refusal([](LoaderOptions& o) { o.views = 2; }),
                AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("2 views")));
    EXPECT_THAT(
        refusal([](LoaderOptions& o) { o.mix = MixOptions{.mixup_alpha = 1, .classes = 1000}; }),
        AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("mixed samples")));
    for (const FieldAs as : {FieldAs::kCoco, FieldAs::kCocoLabels}) {
      EXPECT_THAT(
          refusal([&](LoaderOptions& o) { o.decode_fields = {{.field = "json", .as = as}}; }),
          AllOf(HasSubstr("UNIMPLEMENTED"), HasSubstr("the field json")));
    }
  }
}

// Two loaders of one process, as for training and validation: each gives its own batches.
TEST(DeviceBadInput, TwoLoadersOnOneDevice) {
  const LoaderFixture data(TestName(), {});
  FakeDevice fake({.seed = 3, .max_delay_us = 200});
  const std::vector<HostCopy> expected = data.Expected(data.Options());
  {
    PinnedMemory memory(fake, {.log = nullptr});
    std::vector<DeviceLoader> loaders;
    for (int i = 0; i < 2; ++i) {
      auto opened = DeviceLoader::Open(data.Open(memory, data.Options()), {.log = nullptr}, fake);
      ASSERT_TRUE(opened.ok()) << opened.status();
      loaders.push_back(*std::move(opened));
    }
    for (const HostCopy& host : expected) {
      for (DeviceLoader& loader : loaders) {
        std::optional<DeviceBatch> batch = *loader.Next();
        ASSERT_EQ(batch.has_value(), !host.ids.empty());
        if (!batch) continue;
        EXPECT_EQ(batch->info().ids, host.ids);
        ASSERT_TRUE(batch->Synchronize().ok());
        EXPECT_EQ(std::memcmp(batch->pixels()->data, host.pixels.data(), host.pixels.size()), 0);
        EXPECT_TRUE(batch->Release(nullptr).ok());
      }
    }
  }
  EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

// The same where images are decoded for the device, by one nvJPEG and by threads that share.
TEST(DeviceBadInput, TwoDecodingLoadersOnOneDevice) {
  const LoaderFixture data(TestName(), {.kinds = true});
  const LoaderFixture other(TestName() + "Other", {.samples = 24, .kinds = true, .spread = 60});
  const auto options_of = [](const LoaderFixture& of, const NvjpegFunctions* nvjpeg) {
    DeviceOptions options = Decoding(of, nvjpeg, /*threads=*/2);
    options.decode->share = true;
    return options;
  };
  FakeDevice fake({.seed = 3, .max_delay_us = 200});
  FakeNvjpeg nvjpeg({}, &fake);
  // At the same time, each with a consumer of its own.
  std::vector<Outcome> got(2);
  const auto consume = [&](const LoaderFixture& of, Outcome* outcome) {
    *outcome = RunEpochs(fake, of, options_of(of, &nvjpeg.functions()), 3);
  };
  std::thread second(consume, std::cref(other), &got[1]);
  consume(data, &got[0]);
  second.join();
  for (size_t i = 0; i < 2; ++i) {
    const LoaderFixture& of = i == 0 ? data : other;
    EXPECT_THAT(got[i].errors, IsEmpty());
    ExpectEqual(got[i].batches,
                RunEpochs(HostDevice::Get(), of, options_of(of, nullptr), 3).batches);
    EXPECT_GT(got[i].stats.decode.hardware, 0u);
  }
  EXPECT_EQ(nvjpeg.misuses(), 0);
  EXPECT_EQ(nvjpeg.live(), 0);
  EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

// It gets an error that names what it holds, and may go on after it.
TEST(DeviceBadInput, AConsumerThatNeverReleases) {
  const LoaderFixture data(TestName(), {});
  FakeDevice fake;
  PinnedMemory memory(fake, {.log = nullptr});
  auto loader = DeviceLoader::Open(
      data.Open(memory, data.Options(0)),
      {.prefetch_batches = 1, .patience = std::chrono::milliseconds(80), .log = nullptr}, fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  std::vector<DeviceBatch> kept;
  absl::Status status;
  while (status.ok()) {
    auto batch = loader->Next();
    status = batch.status();
    if (batch.ok() && batch->has_value()) kept.push_back(**std::move(batch));
    ASSERT_LE(kept.size(), 3u);
  }
  EXPECT_THAT(status.ToString(),
              AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("epoch 0 step 0, epoch 0 step 1")));
  kept.clear();
  EXPECT_TRUE(loader->Next().ok());
}

}  // namespace
}  // namespace shardpack
