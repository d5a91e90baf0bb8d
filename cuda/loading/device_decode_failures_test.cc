// DeviceLoader with images decoded for the device, where something fails, is refused, is missing
// or hangs: right pixels or an error, and what the device did not do is said.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "cuda/device/host_device.h"
#include "cuda/loading/device_loader.h"
#include "cuda/testing/decode_outcome.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A GPU that does not decode everything is reported in one line, and in the counts.
TEST(DeviceDecode, ThatTheCpuDecodesIsSaid) {
  enum { kEngines = 1, kHybrid = 2 };
  const struct {
    int there;
    bool cmyk;
    const char* said;
  } kCases[] = {{kEngines | kHybrid, false, ""},
                {kHybrid, false, "the GPU decodes fewer images than it could: hardware: nvjpegCr"},
                {kEngines, false, "the GPU decodes fewer images than it could: hardware: 2"},
                {0, false, "no image is decoded by the GPU, the Loader's own decoding is faster: "},
                {kEngines | kHybrid, true,
                 "the CPU decoded all images of the first batch, the GPU takes JPEG"}};
  for (const auto& wanted : kCases) {
    SCOPED_TRACE(wanted.said);
    const LoaderFixture data(TestName(), {.samples = 24, .cmyk = wanted.cmyk});
    FakeDevice fake({.max_delay_us = 0, .kind = DeviceKind::kCuda});
    FakeNvjpeg nvjpeg({.engines = (wanted.there & kEngines) != 0 ? 2 : 0}, &fake);
    if ((wanted.there & kHybrid) == 0) nvjpeg.functions().DecodeJpegHost = nullptr;
    std::vector<std::string> lines;
    DeviceOptions options = Decoding(data, &nvjpeg.functions());
    options.log = [&](const std::string& line) { lines.push_back(line); };
    const Outcome got = RunEpochs(fake, data, options, 2);
    EXPECT_THAT(got.errors, IsEmpty());
    const bool by_cpu = wanted.cmyk || wanted.there == 0;
    EXPECT_EQ(got.stats.decode.cpu, by_cpu ? 48u : 0u);
    EXPECT_EQ(got.stats.decode.hardware, !by_cpu && (wanted.there & kEngines) != 0 ? 48u : 0u);
    const size_t count = *wanted.said == '\0' ? 0 : 1;
    EXPECT_EQ(got.stats.decode.without_nvjpeg, wanted.there == 0 ? 48u : 0u);
    EXPECT_THAT(lines, SizeIs(count));
    EXPECT_EQ(got.stats.fallbacks, count);
    EXPECT_THAT(got.stats.why_fallback, ::testing::StartsWith(wanted.said));
  }
}

TEST(DeviceDecode, EveryCallAtEveryPosition) {
  const LoaderFixture data(TestName(), {.samples = 24, .kinds = true});
  const std::vector<Delivered> expected =
      RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr)).batches;
  ASSERT_THAT(expected, SizeIs(3));
  uint64_t first = 0;
  for (const int code :
       {kDeviceInvalidValue, kDeviceNotSupported, kDeviceOutOfMemory, kDeviceIllegalAddress}) {
    size_t errors = 0, runs = 0;
    // Each error at other positions, if not at all of them.
    for (uint64_t n = first++ % kEvery, without = 0; without < 4; n += kEvery, ++runs) {
      SCOPED_TRACE(::testing::Message() << "error " << code << " at " << n);
      FakeDevice fake({.seed = n, .max_delay_us = 0});
      FakeNvjpeg nvjpeg({.engines = 2}, &fake);
      fake.FailCall(n, code);
      const Outcome outcome =
          RunEpochs(fake, data, Decoding(data, &nvjpeg.functions(), n % 2 == 0 ? 1 : 2));
      without = fake.failed() ? 0 : without + 1;
      errors += !outcome.errors.empty();
      for (const Delivered& got : outcome.batches) {
        ASSERT_TRUE(got.pixels == expected[got.info.step].pixels);
        ASSERT_EQ(got.labels, expected[got.info.step].labels);
      }
      EXPECT_THAT(fake.misuses(), IsEmpty());
      EXPECT_LE(fake.frees_after_loss(), 1u);
      if (outcome.errors.empty()) {
        EXPECT_THAT(outcome.batches, SizeIs(3));
      } else {
        EXPECT_TRUE(fake.failed()) << outcome.errors[0];
        EXPECT_THAT(std::string(outcome.errors[0].message()), HasSubstr("cudaError"));
      }
      if (!fake.lost()) {
        EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
        EXPECT_EQ(nvjpeg.live(), 0);
        EXPECT_EQ(nvjpeg.misuses(), 0);
      }
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(runs, 60u / kEvery);
    EXPECT_GT(errors, 20u / kEvery);
  }
}

// nvJPEG may fail at any call: the images are decoded all the same.
TEST(DeviceDecode, EveryCallOfNvjpegFailing) {
  const LoaderFixture data(TestName(), {.samples = 24, .kinds = true});
  const std::vector<Delivered> expected =
      RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr)).batches;
  uint64_t refused = 0;
  int call = 1;
  for (bool over = false; !over; call += static_cast<int>(kEvery)) {
    SCOPED_TRACE(call);
    FakeDevice fake({.max_delay_us = 0});
    FakeNvjpeg nvjpeg({.engines = 2}, &fake);
    nvjpeg.FailAt(call, kNvjpegExecutionFailed);
    const Outcome outcome = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()));
    over = !nvjpeg.failed();
    refused += outcome.stats.decode.refused;
    EXPECT_THAT(outcome.errors, IsEmpty());
    ExpectEqual(outcome.batches, expected);
    EXPECT_EQ(nvjpeg.live(), 0);
    EXPECT_EQ(nvjpeg.misuses(), 0);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(call, 60);
  EXPECT_GT(refused, 4u / kEvery);
}

TEST(DeviceDecode, ALittleMemoryIsEnoughOrSaysSo) {
  const LoaderFixture data(TestName(), {.samples = 24});
  for (const uint64_t cap : {uint64_t{80'000}, uint64_t{75'000}, uint64_t{45'000}}) {
    FakeDevice fake({.device_cap_bytes = cap});
    FakeNvjpeg nvjpeg({}, &fake);
    const Outcome got = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()));
    if (cap > 50'000) {
      EXPECT_THAT(got.errors, IsEmpty()) << cap;
      EXPECT_THAT(got.batches, SizeIs(3));
      EXPECT_GT(got.stats.shrinks, 0u);
    } else {
      ASSERT_THAT(got.errors, SizeIs(1));
      EXPECT_TRUE(absl::IsResourceExhausted(got.errors[0])) << got.errors[0];
    }
    EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
  }
}

// Next says what it waits for, and may be called again.
TEST(DeviceDecode, ADeviceThatHangsIsNoHang) {
  const LoaderFixture data(TestName(), {.samples = 40, .kinds = true});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  options.patience = milliseconds(300);
  OpenDecoding loader(fake, data, options, Encoded(data, 0));
  ASSERT_TRUE(loader.ok()) << loader.status();
  ASSERT_TRUE(loader->Next().ok());
  fake.Hold();
  absl::Status status;
  while (status.ok()) {
    auto batch = loader->Next();
    status = batch.status();
    if (batch.ok() && batch->has_value()) {
      ASSERT_TRUE((*batch)->Release(nullptr).ok());
    }
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("or for the device"));
  fake.LetGo();
  EXPECT_TRUE(loader->Next().ok());
}

TEST(DeviceDecode, EnginesThatFailAreSaid) {
  const LoaderFixture data(TestName(), {.samples = 40});
  const std::vector<Delivered> expected =
      RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr)).batches;
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  nvjpeg.functions().DecodeBatched = [](NvjpegHandle, NvjpegState, const unsigned char* const*,
                                        const size_t*, NvjpegImage*,
                                        void*) -> int { return kNvjpegInternalError; };
  const Outcome got = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()));
  ExpectEqual(got.batches, expected);
  EXPECT_EQ(got.stats.decode.failed_batches, 3u);
  EXPECT_EQ(got.stats.fallbacks, 2u) << "and that they are not asked again";
  EXPECT_THAT(got.stats.why_fallback, HasSubstr("refused a batch: nvjpegDecodeBatched"));
  EXPECT_THAT(got.stats.decode_backends, HasSubstr("hardware: given up: nvjpegDecodeBatched"));
}

TEST(DeviceDecode, WhatNvjpegRefusesIsSaid) {
  const LoaderFixture data(TestName(), {.samples = 40});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({.engines = 0}, &fake);
  nvjpeg.functions().DecodeJpegHost = [](NvjpegHandle, NvjpegDecoder, NvjpegState, NvjpegParams,
                                         NvjpegStream) -> int { return kNvjpegJpegNotSupported; };
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  const Outcome got = RunEpochs(fake, data, options);
  EXPECT_THAT(got.errors, IsEmpty());
  EXPECT_EQ(got.stats.decode.cpu, 40u);
  EXPECT_EQ(got.stats.decode.refused, 40u);
  EXPECT_EQ(got.stats.fallbacks, 2u) << "all of the first batch, and one";
  EXPECT_THAT(got.stats.why_fallback, HasSubstr("nvjpegDecodeJpegHost: "));
}

TEST(DeviceDecode, CopiesWithoutPageLocksAreSaid) {
  const LoaderFixture data(TestName(), {.samples = 40, .cmyk = true});
  FakeDevice fake;
  std::vector<std::string> lines;
  DeviceOptions options = Decoding(data, nullptr);
  options.log = [&](const std::string& line) { lines.push_back(line); };
  fake.FailEntry("AllocateHost", kDeviceOutOfMemory);
  const Outcome got = RunEpochs(fake, data, options);
  EXPECT_THAT(got.errors, IsEmpty());
  EXPECT_EQ(got.stats.decode.cpu, 40u);
  EXPECT_EQ(got.stats.decode.pageable, 40u);
  EXPECT_THAT(lines, ::testing::ElementsAre(HasSubstr("are copied slowly")));
}

TEST(DeviceDecode, StopsOnADeviceThatHangs) {
  const LoaderFixture data(TestName(), {.samples = 40, .kinds = true});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  options.stop_patience = milliseconds(50);
  {
    OpenDecoding loader(fake, data, options, Encoded(data, 0));
    ASSERT_TRUE(loader.ok()) << loader.status();
    ASSERT_TRUE(loader->Next().ok());
    fake.Hold();
    std::this_thread::sleep_for(milliseconds(50));  // its threads come to wait for the device
    const auto start = std::chrono::steady_clock::now();
    loader->Stop();
    loader.Close();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
  fake.LetGo();
}

TEST(DeviceDecode, WhatCannotBe) {
  const LoaderFixture data(TestName(), {.samples = 8});
  FakeDevice fake;
  const auto message = [&](const LoaderOptions& host, const DeviceOptions& options) {
    const absl::Status status = OpenDecoding(fake, data, options, host).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const DeviceOptions good = Decoding(data, nullptr);
  EXPECT_THAT(message(data.Options(), good), HasSubstr("the Loader decodes"));
  LoaderOptions host = Encoded(data);
  host.image_infos = false;
  EXPECT_THAT(message(host, good), HasSubstr("image_infos"));
  DeviceOptions options = good;
  options.preprocess.reset();
  EXPECT_THAT(message(Encoded(data), options), HasSubstr("needs its preprocessing"));
  options = good;
  options.preprocess->width = LoaderFixture::kWidth + 1;
  EXPECT_THAT(message(Encoded(data), options), HasSubstr("size of the crop"));
  options = good;
  options.decode->crop.min_scale = -1;
  EXPECT_THAT(message(Encoded(data), options), AnyOf(HasSubstr("scale"), HasSubstr("crop")));
}

}  // namespace
}  // namespace shardpack
