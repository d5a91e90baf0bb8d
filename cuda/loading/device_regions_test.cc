// DeviceLoader whose random crops nvJPEG decodes by region: the pixels are those of whole images,
// with less memory and fewer pixels written; whatever the library does wrong with a part of an
// image, it is seen before a batch is delivered. On the fake device with a fake nvJPEG.
#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/host_device.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/loading/device_loader.h"
#include "cuda/testing/decode_outcome.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/crop.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<Delivered> ByCpu(const LoaderFixture& data, DeviceOptions options, uint64_t epochs) {
  options.decode->nvjpeg = nullptr;
  options.decode->choose = false;
  const Outcome got = RunEpochs(HostDevice::Get(), data, options, epochs);
  EXPECT_THAT(got.errors, IsEmpty());
  return got.batches;
}

// Two epochs, without an error, and of the pixels that the CPU makes.
Outcome RunAsByCpu(FakeDevice& fake, const LoaderFixture& data, const DeviceOptions& options) {
  Outcome got = RunEpochs(fake, data, options, 2);
  EXPECT_THAT(got.errors, IsEmpty());
  ExpectEqual(got.batches, ByCpu(data, options, 2));
  return got;
}

// Of crops that are small, so that most images have a region that is a part of them.
DeviceOptions SmallCrops(const LoaderFixture& data, FakeNvjpeg& nvjpeg, int threads = 1) {
  DeviceOptions options = Decoding(data, &nvjpeg.functions(), threads);
  options.decode->crop.max_scale = 0.3;
  options.decode->share = false;
  options.decode->regions = true;
  return options;
}

void ExpectClean(FakeDevice& fake, const FakeNvjpeg& nvjpeg) {
  EXPECT_EQ(nvjpeg.misuses(), 0);
  EXPECT_EQ(nvjpeg.live(), 0);
  EXPECT_THAT(fake.misuses(), IsEmpty());
  EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
}

TEST(DeviceRegions, AreThoseOfTheWholeImages) {
  const LoaderFixture kinds(TestName(), {.samples = 48, .kinds = true, .min_side = 90});
  const LoaderFixture turned(TestName() + "Turned",
                             {.samples = 48, .turned = true, .min_side = 90});
  for (const LoaderFixture* data : {&kinds, &turned}) {
    for (const uint8_t channels : {uint8_t{1}, uint8_t{3}}) {
      for (const int engines : {2, 0}) {
        for (const int threads : {1, 3}) {
          FakeDevice fake({.seed = 3, .max_delay_us = 200});
          // NVIDIA's library before 13.2: the outermost pixels are not needed.
          FakeNvjpeg nvjpeg({.engines = engines, .region_fault = RegionFault::kEdges}, &fake);
          DeviceOptions options = SmallCrops(*data, nvjpeg, threads);
          options.decode->channels = channels;
          options.decode->share = threads == 3;
          options.decode->crop.max_scale = 1;
          const Outcome got = RunAsByCpu(fake, *data, options);
          const JpegDecoderStats& stats = got.stats.decode;
          EXPECT_EQ(stats.why_whole, "");
          EXPECT_GT(stats.regions, 40u);
          EXPECT_LE(stats.regions, stats.hardware + stats.hybrid);
          EXPECT_EQ(got.stats.fallbacks, 0u) << got.stats.why_fallback;
          ExpectClean(fake, nvjpeg);
        }
      }
    }
  }
}

// How much of the images is needed, with what is around it.
double ShareOf(const LoaderFixture& data, const CropOptions& crop, uint64_t samples) {
  uint64_t all = 0, needed = 0;
  for (uint64_t id = 0; id < samples; ++id) {
    const auto* const file = reinterpret_cast<const std::byte*>(data.image(id).data());
    const auto info = CheckImage({file, data.image(id).size()}, {}, 1'000'000);
    EXPECT_TRUE(info.ok()) << info.status();
    const PixelBox box = ChooseCrop(crop, info->width, info->height, {9, 0, id}).box;
    const PixelRegion region = {static_cast<uint32_t>(box.left), static_cast<uint32_t>(box.top),
                                static_cast<uint32_t>(box.right - box.left),
                                static_cast<uint32_t>(box.bottom - box.top)};
    const PixelRegion room = RoomFor(*info, region);
    const uint64_t whole = uint64_t{info->width} * info->height;
    all += whole;
    needed += room.empty() ? whole : uint64_t{room.width} * room.height;
  }
  return static_cast<double>(needed) / static_cast<double>(all);
}

// One batch an epoch, so that its share is that of all.
TEST(DeviceRegions, TakeTheirShareOfMemoryAndPixels) {
  const LoaderFixture data(TestName(), {.samples = 24, .batch = 24, .min_side = 300});
  for (const int engines : {2, 0}) {
    uint64_t bytes[2], pixels[2];
    double share = 0;
    for (const bool regions : {false, true}) {
      FakeDevice fake({.max_delay_us = 0});
      FakeNvjpeg nvjpeg({.engines = engines}, &fake);
      DeviceOptions options = SmallCrops(data, nvjpeg);
      options.decode->regions = regions;
      share = ShareOf(data, options.decode->crop, 24);
      const Outcome got = RunEpochs(fake, data, options);
      EXPECT_THAT(got.errors, IsEmpty());
      bytes[regions] = got.stats.device_bytes - got.stats.decode.nvjpeg_bytes;
      EXPECT_EQ(got.stats.decode.regions, regions ? 24u : 0u);
      EXPECT_THAT(RunEpochs(fake, data, options, 8).errors, IsEmpty());
      pixels[regions] = nvjpeg.pixels();
    }
    ASSERT_LT(share, 0.4);
    EXPECT_NEAR(static_cast<double>(bytes[1]) / static_cast<double>(bytes[0]), share, 0.03);
    // Eight images of each way are decoded twice more by each loader, in whole and in part.
    EXPECT_LT(pixels[1], pixels[0] / 2 + pixels[0] / 6);
  }
}

struct Fault {
  RegionFault fault;
  const char* said;
};
const Fault kFaults[] = {
    {RegionFault::kNotSupported, "they say that they take an image whole, and not a part of it"},
    {RegionFault::kNoParams, "nvjpegDecodeParamsSetROI: invalid parameter"},
    {RegionFault::kRefused, "nvjpegDecode"},
    {RegionFault::kIgnored, "is not the same as in the whole image"},
    {RegionFault::kElsewhere, "is not the same as in the whole image"},
    {RegionFault::kBeside, "is not the same as in the whole image"},
    {RegionFault::kBelow, "is not the same as in the whole image"},
};

// All images are then decoded whole, by those who would have decoded their regions: what a run
// that goes on somewhere else would decode, too.
TEST(DeviceRegions, WhateverIsWrongWithThemImagesAreDecodedWhole) {
  const LoaderFixture data(TestName(), {.samples = 48, .min_side = 90});
  for (const Fault& wrong : kFaults) {
    for (const int engines : {2, 0}) {
      // What the engines are asked before.
      if (engines == 0 && wrong.fault == RegionFault::kNotSupported) continue;
      SCOPED_TRACE(wrong.said);
      FakeDevice fake({.seed = 8, .max_delay_us = 100});
      FakeNvjpeg nvjpeg({.engines = engines, .region_fault = wrong.fault}, &fake);
      const DeviceOptions options = SmallCrops(data, nvjpeg);
      const Outcome got = RunAsByCpu(fake, data, options);
      const JpegDecoderStats& stats = got.stats.decode;
      EXPECT_EQ(engines == 0 ? stats.hybrid : stats.hardware, 96u);
      EXPECT_EQ(stats.regions, 0u);
      const bool said_by_engines = wrong.fault != RegionFault::kNoParams;
      EXPECT_THAT(stats.why_whole,
                  AllOf(HasSubstr(engines == 0 ? "hybrid: " : "hardware: "),
                        HasSubstr(engines > 0 && !said_by_engines ? kFaults[0].said : wrong.said)));
      EXPECT_THAT(got.stats.why_fallback, HasSubstr("whole images"));
      ExpectClean(fake, nvjpeg);
    }
  }
}

// Engines that cannot, beside a hybrid decoder that could.
TEST(DeviceRegions, TheFaultsOfTheEnginesAreNotTheHybridDecoders) {
  const LoaderFixture data(TestName(), {.samples = 48, .kinds = true, .min_side = 90});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({.region_fault = RegionFault::kBeside, .engine_regions_only = true}, &fake);
  const DeviceOptions options = SmallCrops(data, nvjpeg);
  const Outcome got = RunAsByCpu(fake, data, options);
  EXPECT_THAT(got.stats.decode.why_whole,
              AllOf(StartsWith("hardware: "), Not(HasSubstr("hybrid"))));
  EXPECT_GT(got.stats.decode.hardware, 0u);
  EXPECT_GT(got.stats.decode.hybrid, 0u);
  EXPECT_EQ(got.stats.decode.regions, 0u);
}

TEST(DeviceRegions, LibrariesWithoutThem) {
  const LoaderFixture data(TestName(), {.samples = 48, .min_side = 90});
  const struct {
    void (*remove)(NvjpegFunctions&);
    const char* name;
    bool hybrid_can;
  } kCases[] = {
      {[](NvjpegFunctions& f) { f.DecodeBatchedEx = nullptr; }, "nvjpegDecodeBatchedEx", true},
      {[](NvjpegFunctions& f) { f.DecodeBatchedSupportedEx = nullptr; },
       "nvjpegDecodeBatchedSupportedEx", true},
      {[](NvjpegFunctions& f) { f.DecodeParamsSetROI = nullptr; }, "nvjpegDecodeParamsSetROI",
       false}};
  for (const auto& without : kCases) {
    for (const int engines : {2, 0}) {
      SCOPED_TRACE(without.name);
      FakeDevice fake;
      FakeNvjpeg nvjpeg({.engines = engines}, &fake);
      without.remove(nvjpeg.functions());
      const DeviceOptions options = SmallCrops(data, nvjpeg);
      const Outcome got = RunAsByCpu(fake, data, options);
      const JpegDecoderStats& stats = got.stats.decode;
      EXPECT_EQ(engines == 0 ? stats.hybrid : stats.hardware, 96u);
      const bool by_region = engines == 0 && without.hybrid_can;
      EXPECT_EQ(stats.regions > 0, by_region);
      if (!by_region) {
        EXPECT_THAT(stats.why_whole, HasSubstr(std::string("lacks ") + without.name));
      }
      ExpectClean(fake, nvjpeg);
    }
  }
}

std::atomic<int> calls_until_refusal;
int (*decode_batched_ex)(NvjpegHandle, NvjpegState, const unsigned char* const*, const size_t*,
                         NvjpegImage*, NvjpegParams*, void*);

// Long after the trial: the engines are kept, with whole images.
TEST(DeviceRegions, ABatchThatIsRefusedEndsThemAndNotTheEngines) {
  const LoaderFixture data(TestName(), {.samples = 80, .min_side = 90});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  decode_batched_ex = nvjpeg.functions().DecodeBatchedEx;
  calls_until_refusal = 8 + 4;  // those of the trial, and some batches
  nvjpeg.functions().DecodeBatchedEx =
      [](NvjpegHandle handle, NvjpegState state, const unsigned char* const* data,
         const size_t* lengths, NvjpegImage* images, NvjpegParams* params, void* stream) -> int {
    if (calls_until_refusal-- <= 0) return kNvjpegExecutionFailed;
    return decode_batched_ex(handle, state, data, lengths, images, params, stream);
  };
  const DeviceOptions options = SmallCrops(data, nvjpeg);
  const Outcome got = RunAsByCpu(fake, data, options);
  EXPECT_THAT(got.stats.decode.why_whole,
              HasSubstr("hardware: a batch was refused: nvjpegDecodeBatchedEx: execution failed"));
  EXPECT_EQ(got.stats.decode.hardware, 160u - 8u) << "the hybrid decoder did that batch";
  EXPECT_EQ(got.stats.decode_backends, "hardware: 2 engines; hybrid: yes");
  EXPECT_THAT(got.stats.why_fallback, HasSubstr("whole images"));
}

// Images that the engines skip are found in the memory of parts too, and decoded there.
TEST(DeviceRegions, SkippedImagesAreFound) {
  const LoaderFixture data(TestName(), {.samples = 96, .min_side = 90});
  FakeDevice fake({.seed = 2, .max_delay_us = 100});
  FakeNvjpegOptions faults;
  std::atomic<int> files{0};
  faults.skips = [&](std::span<const std::byte> file) {
    return files++ > 40 && file.size() % 5 == 0;
  };
  FakeNvjpeg nvjpeg(faults, &fake);
  const DeviceOptions options = SmallCrops(data, nvjpeg);
  const Outcome got = RunAsByCpu(fake, data, options);
  EXPECT_GT(got.stats.decode.skipped, 0u);
  EXPECT_GT(got.stats.decode.regions, 80u);
  ExpectClean(fake, nvjpeg);
}

TEST(DeviceRegions, EveryCallOfNvjpegFailing) {
  const LoaderFixture data(TestName(), {.samples = 16, .kinds = true, .min_side = 64});
  std::vector<Delivered> expected;
  int call = 1;
  for (bool over = false; !over; call += static_cast<int>(kEvery)) {
    SCOPED_TRACE(call);
    FakeDevice fake({.max_delay_us = 0});
    FakeNvjpeg nvjpeg({}, &fake);
    const DeviceOptions options = SmallCrops(data, nvjpeg);
    if (expected.empty()) expected = ByCpu(data, options, 1);
    nvjpeg.FailAt(call, kNvjpegExecutionFailed);
    const Outcome outcome = RunEpochs(fake, data, options);
    over = !nvjpeg.failed();
    EXPECT_THAT(outcome.errors, IsEmpty());
    ExpectEqual(outcome.batches, expected);
    ExpectClean(fake, nvjpeg);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(call, 200);
}

// Those of the device: an error, or the right pixels.
TEST(DeviceRegions, EveryCallOfTheDeviceFailing) {
  const LoaderFixture data(TestName(), {.samples = 16, .min_side = 64});
  std::vector<Delivered> expected;
  for (const int code : {kDeviceOutOfMemory, kDeviceIllegalAddress}) {
    for (uint64_t n = 0, without = 0; without < 4; n += kEvery) {
      SCOPED_TRACE(::testing::Message() << "error " << code << " at " << n);
      FakeDevice fake({.seed = n, .max_delay_us = 0});
      FakeNvjpeg nvjpeg({}, &fake);
      const DeviceOptions options = SmallCrops(data, nvjpeg);
      if (expected.empty()) expected = ByCpu(data, options, 1);
      fake.FailCall(n, code);
      const Outcome outcome = RunEpochs(fake, data, options);
      without = fake.failed() ? 0 : without + 1;
      for (const Delivered& got : outcome.batches)
        ASSERT_TRUE(got.pixels == expected[got.info.step].pixels);
      if (outcome.errors.empty()) {
        EXPECT_THAT(outcome.batches, SizeIs(expected.size()));
      }
      EXPECT_THAT(fake.misuses(), IsEmpty());
      if (!fake.lost()) {
        EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Time by the pixels that are written: parts win, and the engines whole if parts are refused.
TEST(DeviceRegions, AreAWayOfTheirOwnToChoose) {
  const LoaderFixture data(TestName(), {.samples = 80, .min_side = 200});
  for (const bool refused : {false, true}) {
    FakeDevice fake({.max_delay_us = 0});
    FakeNvjpeg nvjpeg({.engines = 1,
                       .engine_ns_a_pixel = 2,
                       .region_fault = refused ? RegionFault::kRefused : RegionFault::kNone},
                      &fake);
    DeviceOptions options = SmallCrops(data, nvjpeg);
    options.decode->choose = true;
    options.decode->crop.max_scale = 0.1;
    const Outcome got = RunEpochs(fake, data, options, 2);
    EXPECT_THAT(got.errors, IsEmpty());
    EXPECT_THAT(got.batches, SizeIs(20));
    const std::string& choice = got.stats.decode.choice;
    if (refused) {
      EXPECT_THAT(choice,
                  AllOf(HasSubstr("hardware by region refused"),
                        HasSubstr("hybrid by region refused"), HasSubstr("after 9 batches")));
    } else {
      const auto us = [&](const std::string& name) {
        const size_t at = choice.find(name);
        return at == std::string::npos
                   ? 0
                   : std::stod(choice.substr(choice.find_first_of("0123456789", at)));
      };
      EXPECT_THAT(choice, HasSubstr("after 15 batches"));
      const size_t whole = choice.find("hardware ", choice.find("hardware by region") + 9);
      ASSERT_NE(whole, std::string::npos) << choice;
      EXPECT_LT(us("hardware by region"), std::stod(choice.substr(whole + 9))) << choice;
    }
    ExpectClean(fake, nvjpeg);
  }
}

// Where the CPU decodes all by choice it does what the Loader does: the crop, at a smaller scale.
TEST(DeviceRegions, TheChosenCpuDecodesAsTheLoader) {
  const LoaderFixture straight(TestName(), {.samples = 48, .min_side = 150, .spread = 90});
  const LoaderFixture turned(TestName() + "Turned",
                             {.samples = 48, .turned = true, .min_side = 150, .spread = 90});
  for (const LoaderFixture* data : {&straight, &turned}) {
    for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter, CropKind::kResize}) {
      LoaderOptions host = data->Options();
      host.decode->crop.kind = kind;
      host.decode->crop.shortest_side = 22;
      DeviceOptions options = Decoding(*data, nullptr, 2);
      options.decode->crop = host.decode->crop;
      const std::vector<Delivered> full = RunEpochs(HostDevice::Get(), *data, options).batches;
      options.decode->choose = true;
      FakeDevice fake({.max_delay_us = 100});
      const Outcome got = RunEpochs(fake, *data, options);
      EXPECT_THAT(got.errors, IsEmpty());
      ExpectClose(got.batches, data->Expected(host));
      ASSERT_EQ(got.batches.size(), full.size());
      EXPECT_FALSE(got.batches[0].pixels == full[0].pixels) << "it was not at a smaller scale";
      EXPECT_EQ(got.stats.decode.choice, "cpu: there is no other way here");
      EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
    }
  }
}

}  // namespace
}  // namespace shardpack
