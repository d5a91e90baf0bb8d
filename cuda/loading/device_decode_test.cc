// DeviceLoader with images decoded for the device: the pixels are those of the Loader's own
// decoding, whatever decodes each image and whatever fails. On the fake device with a fake nvJPEG.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "cuda/device/host_device.h"
#include "cuda/loading/device_loader.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/fake_nvjpeg.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string TestName() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

// What the fixture's Loader would decode, decoded for the device.
DeviceOptions Decoding(const LoaderFixture& data, const NvjpegFunctions* nvjpeg, int threads = 1) {
  const LoaderOptions host = data.Options();
  DeviceOptions options{.preprocess = DevicePreprocess{.output = {}},
                        .decode = DeviceDecode{.crop = host.decode->crop,
                                               .augment_seed = host.augment_seed,
                                               .threads = threads,
                                               .nvjpeg = nvjpeg},
                        .patience = milliseconds(20'000),
                        .log = nullptr};
  return options;
}

// The Loader of encoded images for it.
LoaderOptions Encoded(const LoaderFixture& data, uint64_t epochs = 1) {
  LoaderOptions options = data.Options(epochs);
  options.decode.reset();
  options.image_infos = true;
  return options;
}

struct Delivered {
  BatchInfo info;
  std::vector<int64_t> labels;
  std::string pixels;
};

struct Outcome {
  std::vector<absl::Status> errors;
  std::vector<Delivered> batches;
  std::vector<BadSample> bad;
  DeviceLoaderStats stats;
};

Outcome RunEpochs(Device& device, const LoaderFixture& data, const DeviceOptions& options,
                  uint64_t epochs = 1, BadSamples unread = BadSamples::kFail) {
  Outcome outcome;
  const auto note = [&](const absl::Status& status) {
    if (!status.ok()) outcome.errors.push_back(status);
    return status.ok();
  };
  PinnedMemory memory(device, {.log = nullptr});
  LoaderOptions encoded = Encoded(data, epochs);
  encoded.bad_samples = unread;
  absl::StatusOr<Loader> host = data.TryOpen(memory, encoded);
  if (!note(host.status())) return outcome;
  absl::StatusOr<DeviceLoader> loader = DeviceLoader::Open(*std::move(host), options, device);
  if (!note(loader.status())) return outcome;
  for (uint64_t ends = 0; ends < epochs;) {
    auto batch = loader->Next();
    if (!note(batch.status())) break;
    if (!batch->has_value()) {
      ++ends;
      continue;
    }
    if (!note((*batch)->WaitOn(nullptr))) continue;
    Delivered got{.info = (*batch)->info(), .labels = {}, .pixels = {}};
    const DeviceTensor& pixels = *(*batch)->pixels();
    got.pixels.resize(pixels.bytes());
    got.labels.resize((*batch)->size());
    // Memory that is not page-locked: the copies wait.
    bool read = note(device.CopyToHost(got.pixels.data(), pixels.data, pixels.bytes(), nullptr));
    read = note(device.CopyToHost(got.labels.data(), (*batch)->labels()->data,
                                  got.labels.size() * sizeof(int64_t), nullptr)) &&
           read;
    if (read) outcome.batches.push_back(std::move(got));
    note((*batch)->Release(nullptr));
  }
  outcome.stats = loader->stats();
  outcome.bad = loader->TakeBadSamples();
  return outcome;
}

int LargestDifference(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return 256;
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<uint8_t>(a[i]) - static_cast<uint8_t>(b[i])));
  }
  return largest;
}

// Compares with the Loader's own decoding, whose resize rounds its weights differently.
void ExpectClose(const std::vector<Delivered>& got, const std::vector<HostCopy>& expected) {
  size_t n = 0;
  for (const HostCopy& host : expected) {
    if (host.ids.empty()) continue;
    ASSERT_LT(n, got.size());
    EXPECT_EQ(got[n].info.ids, host.ids);
    EXPECT_EQ(got[n].info.labels, host.labels);
    EXPECT_EQ(got[n].labels, host.labels);
    EXPECT_LE(LargestDifference(got[n].pixels, host.pixels), 1) << "batch " << n;
    ++n;
  }
  EXPECT_EQ(n, got.size());
}

void ExpectEqual(const std::vector<Delivered>& got, const std::vector<Delivered>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].info.ids, expected[i].info.ids);
    EXPECT_EQ(got[i].labels, expected[i].labels);
    EXPECT_TRUE(got[i].pixels == expected[i].pixels) << "batch " << i;
  }
}

TEST(DeviceDecode, IsWhatTheLoaderDecodes) {
  const LoaderFixture data(TestName(), {.samples = 84, .batch = 12, .kinds = true});
  LoaderOptions host = data.Options(2);
  const std::vector<HostCopy> expected = data.Expected(host);
  for (const int engines : {2, 0}) {
    for (const int threads : {1, 3}) {
      FakeDevice fake({.seed = 4, .max_delay_us = 300});
      FakeNvjpeg nvjpeg({.engines = engines}, &fake);
      const Outcome got = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions(), threads), 2);
      EXPECT_THAT(got.errors, IsEmpty());
      ExpectClose(got.batches, expected);
      const JpegDecoderStats& stats = got.stats.decode;
      EXPECT_EQ(stats.hardware + stats.hybrid + stats.cpu, 168u);
      // CMYK images are the CPU's, progressive ones never the engines'; turned ones are like
      // others.
      EXPECT_EQ(stats.cpu, 28u);
      const uint64_t hybrid = engines == 0 ? 140 : 28;
      EXPECT_GE(stats.hybrid, hybrid);
      if (threads == 1) {  // else they share
        EXPECT_EQ(stats.hybrid, hybrid);
      }
      EXPECT_EQ(stats.failed + stats.refused, 0u);
      EXPECT_EQ(got.stats.decode_backends, engines == 0
                                               ? "hardware: nvjpegCreateExV2: not on this GPU; "
                                                 "hybrid: yes"
                                               : "hardware: 2 engines; hybrid: yes");
      EXPECT_EQ(nvjpeg.misuses(), 0);
      EXPECT_EQ(nvjpeg.live(), 0);
      EXPECT_THAT(fake.misuses(), IsEmpty());
      EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
    }
  }
}

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

// The engines decode them as they lie in the file, and the preprocessing turns them.
TEST(DeviceDecode, ImagesThatExifTurnsAreForTheGpuToo) {
  const LoaderFixture data(TestName(), {.samples = 24, .turned = true});
  for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter, CropKind::kResize}) {
    LoaderOptions host = data.Options();
    host.decode->crop.kind = kind;
    host.decode->crop.shortest_side = 22;
    FakeDevice fake;
    FakeNvjpeg nvjpeg({}, &fake);
    DeviceOptions options = Decoding(data, &nvjpeg.functions());
    options.decode->crop = host.decode->crop;
    const Outcome got = RunEpochs(fake, data, options);
    ExpectClose(got.batches, data.Expected(host));
    EXPECT_EQ(got.stats.decode.hardware, 24u);
  }
}

TEST(DeviceDecode, EveryCropAndFormatOnEveryTable) {
  const LoaderFixture data(TestName(), {.samples = 24, .kinds = true});
  for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter, CropKind::kResize}) {
    LoaderOptions host = data.Options();
    host.decode->crop.kind = kind;
    host.decode->crop.shortest_side = 22;
    FakeDevice fake;
    FakeNvjpeg nvjpeg({}, &fake);
    DeviceOptions options = Decoding(data, &nvjpeg.functions());
    options.decode->crop = host.decode->crop;
    ExpectClose(RunEpochs(fake, data, options).batches, data.Expected(host));
    options.preprocess->output = {.type = PixelType::kF32,
                                  .layout = PixelLayout::kNchw,
                                  .mean = {0.4f, 0.5f, 0.6f},
                                  .std = {0.2f, 0.25f, 0.3f}};
    const std::vector<Delivered> on_device = RunEpochs(fake, data, options).batches;
    ASSERT_THAT(on_device, SizeIs(3));
    options.decode->nvjpeg = nullptr;
    ExpectEqual(RunEpochs(HostDevice::Get(), data, options).batches, on_device);
    // A device that has no kernel.
    fake.FailEntry("Preprocess", kDeviceNoKernelImage);
    const Outcome without = RunEpochs(fake, data, options);
    EXPECT_THAT(without.stats.why_fallback, HasSubstr("preprocessing by the CPU"));
    ExpectEqual(without.batches, on_device);
  }
}

TEST(DeviceDecode, EveryCallAtEveryPosition) {
  const LoaderFixture data(TestName(), {.samples = 24, .kinds = true});
  const std::vector<Delivered> expected =
      RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr)).batches;
  ASSERT_THAT(expected, SizeIs(3));
  for (const int code :
       {kDeviceInvalidValue, kDeviceNotSupported, kDeviceOutOfMemory, kDeviceIllegalAddress}) {
    size_t errors = 0, runs = 0;
    for (uint64_t n = 0, without = 0; without < 4; ++n, ++runs) {
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
    EXPECT_GT(runs, 60u);
    EXPECT_GT(errors, 20u);
  }
}

// nvJPEG may fail at any call: the images are decoded all the same.
TEST(DeviceDecode, EveryCallOfNvjpegFailing) {
  const LoaderFixture data(TestName(), {.samples = 24, .kinds = true});
  const std::vector<Delivered> expected =
      RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr)).batches;
  uint64_t refused = 0;
  int call = 1;
  for (bool over = false; !over; ++call) {
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
  EXPECT_GT(refused, 4u);
}

TEST(DeviceDecode, BadImages) {
  const LoaderFixture data(TestName(),
                           {.samples = 24, .kinds = true, .cut = {2, 3, 7, 11, 14, 20}});
  const LoaderFixture whole(TestName() + "Whole", {.samples = 24, .kinds = true});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  DeviceOptions options = Decoding(data, &nvjpeg.functions());
  const Outcome failed = RunEpochs(fake, data, options);
  ASSERT_THAT(failed.errors, SizeIs(1));
  EXPECT_EQ(failed.errors[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(failed.errors[0].message()),
              AllOf(HasSubstr(" record "), HasSubstr(" key ")));

  options.bad_images = {.policy = BadSamples::kSubstitute, .most = 6};
  const Outcome got = RunEpochs(fake, data, options);
  EXPECT_THAT(got.errors, IsEmpty());
  EXPECT_THAT(got.bad, SizeIs(6));
  EXPECT_EQ(got.stats.decode.failed, 6u);
  const std::vector<Delivered> expected = RunEpochs(fake, whole, options).batches;
  ASSERT_EQ(got.batches.size(), expected.size());
  const size_t image = got.batches[0].pixels.size() / 8;
  std::set<uint64_t> wanted;
  for (size_t b = 0; b < got.batches.size(); ++b) {
    const BatchInfo& info = got.batches[b].info;
    for (size_t slot = 0; slot < 8; ++slot) {
      size_t from = slot;
      if (info.status[slot].state == SampleState::kSubstituted) {
        EXPECT_EQ(info.status[slot].wanted_id, expected[b].info.ids[slot]);
        EXPECT_THAT(info.status[slot].why, HasSubstr(" record "));
        wanted.insert(info.status[slot].wanted_id);
        do {
          from = (from + 1) % 8;
        } while (info.status[from].state == SampleState::kSubstituted);
      }
      EXPECT_EQ(info.ids[slot], expected[b].info.ids[from]);
      EXPECT_EQ(got.batches[b].labels[slot], expected[b].labels[from]);
      EXPECT_EQ(got.batches[b].pixels.substr(slot * image, image),
                expected[b].pixels.substr(from * image, image));
    }
  }
  EXPECT_EQ(wanted, (std::set<uint64_t>{2, 3, 7, 11, 14, 20}));

  options.bad_images.most = 5;
  const Outcome too_many = RunEpochs(fake, data, options);
  ASSERT_THAT(too_many.errors, SizeIs(1));
  EXPECT_THAT(std::string(too_many.errors[0].message()), HasSubstr("more than 5 bad images"));

  const LoaderFixture none(TestName() + "None", {.samples = 2, .batch = 2, .cut = {0, 1}});
  options = Decoding(none, &nvjpeg.functions());
  options.bad_images.policy = BadSamples::kSubstitute;
  const Outcome no_good = RunEpochs(fake, none, options);
  ASSERT_THAT(no_good.errors, SizeIs(1));
  EXPECT_THAT(std::string(no_good.errors[0].message()),
              HasSubstr("no image of a batch can be decoded"));
}

// A substitute that cannot be decoded is substituted again, for the one that was wanted first.
TEST(DeviceDecode, SubstitutesOfSubstitutes) {
  std::vector<size_t> flipped, cut;
  for (size_t i = 0; i < 24; ++i) {
    if (i % 4 == 0) flipped.push_back(i);
    if (i % 4 == 1) cut.push_back(i);
  }
  const LoaderFixture data(TestName(), {.samples = 24, .cut = cut, .flipped = flipped});
  DeviceOptions options = Decoding(data, nullptr);
  options.bad_images.policy = BadSamples::kSubstitute;
  const Outcome got = RunEpochs(HostDevice::Get(), data, options, 1, BadSamples::kSubstitute);
  EXPECT_THAT(got.errors, IsEmpty());
  std::multiset<uint64_t> wanted;
  for (const Delivered& batch : got.batches) {
    for (size_t slot = 0; slot < batch.info.ids.size(); ++slot) {
      EXPECT_GE(batch.info.ids[slot] % 4, 2u);
      const SampleStatus& status = batch.info.status[slot];
      wanted.insert(status.state == SampleState::kSubstituted ? status.wanted_id
                                                              : batch.info.ids[slot]);
    }
  }
  EXPECT_THAT(wanted, SizeIs(24));
  for (uint64_t id = 0; id < 24; ++id) EXPECT_EQ(wanted.count(id), 1u) << id;
}

// Each with what is known of the image that stands in.
TEST(DeviceDecode, SubstitutesOfTheLoader) {
  const LoaderFixture data(TestName(), {.samples = 24, .kinds = true, .flipped = {1, 8, 9, 17}});
  FakeDevice fake;
  FakeNvjpeg nvjpeg({}, &fake);
  LoaderOptions host = data.Options();
  host.bad_samples = BadSamples::kSubstitute;
  const std::vector<HostCopy> expected = data.Expected(host);
  const Outcome got =
      RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()), 1, BadSamples::kSubstitute);
  EXPECT_THAT(got.errors, IsEmpty());
  EXPECT_THAT(got.bad, SizeIs(4));
  ExpectClose(got.batches, expected);
}

// Memory for decoded images grows while the device still reads what it held.
TEST(DeviceDecode, ImagesOfVerySizes) {
  const LoaderFixture data(TestName(), {.samples = 120, .batch = 1, .spread = 400});
  const std::vector<Delivered> expected =
      RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr)).batches;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    FakeDevice fake({.seed = seed, .max_delay_us = 2000});
    FakeNvjpeg nvjpeg({.engines = seed % 2 == 0 ? 2 : 0}, &fake);
    const Outcome got = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()));
    EXPECT_THAT(got.errors, IsEmpty());
    ExpectEqual(got.batches, expected);
    EXPECT_GT(fake.calls("Allocate"), 4u + 2u) << "it grew, and again";
  }
}

TEST(DeviceDecode, ASteadyRunAllocatesNothing) {
  const LoaderFixture data(TestName(), {.samples = 40});
  FakeDevice fake({.max_delay_us = 100});
  FakeNvjpeg nvjpeg({}, &fake);
  PinnedMemory memory(fake, {.log = nullptr});
  auto loader = DeviceLoader::Open(data.Open(memory, Encoded(data, 0)),
                                   Decoding(data, &nvjpeg.functions()), fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  uint64_t allocations = 0, syncs = 0;
  for (int i = 0; i < 240; ++i) {
    if (i == 40) allocations = fake.allocations(), syncs = fake.host_syncs();
    auto batch = loader->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    if (!batch->has_value()) continue;
    ASSERT_TRUE((*batch)->WaitOn(nullptr).ok());
    ASSERT_TRUE((*batch)->Release(nullptr).ok());
  }
  EXPECT_EQ(fake.allocations(), allocations);
  EXPECT_EQ(fake.host_syncs(), syncs);
  EXPECT_GE(loader->stats().decode.hardware, 1500u);
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
  PinnedMemory memory(fake, {.log = nullptr});
  auto loader = DeviceLoader::Open(data.Open(memory, Encoded(data, 0)), options, fake);
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
  const Outcome got = RunEpochs(fake, data, Decoding(data, &nvjpeg.functions()));
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
  PinnedMemory memory(fake, {.log = nullptr});
  {
    auto loader = DeviceLoader::Open(data.Open(memory, Encoded(data, 0)), options, fake);
    ASSERT_TRUE(loader.ok()) << loader.status();
    ASSERT_TRUE(loader->Next().ok());
    fake.Hold();
    std::this_thread::sleep_for(milliseconds(50));  // its threads come to wait for the device
    const auto start = std::chrono::steady_clock::now();
    loader->Stop();
    loader = absl::CancelledError();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
  fake.LetGo();
}

TEST(DeviceDecode, WhatCannotBe) {
  const LoaderFixture data(TestName(), {.samples = 8});
  FakeDevice fake;
  const auto message = [&](LoaderOptions host, const DeviceOptions& options) {
    PinnedMemory memory(fake, {.log = nullptr});
    const absl::Status status = DeviceLoader::Open(data.Open(memory, host), options, fake).status();
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

// Eight ranks of a node do not each start as many threads as it has cores.
TEST(DeviceDecodeTest, RanksShareTheCores) {
  const LoaderFixture data(TestName(), {.jpegs = true});
  FakeDevice fake;
  PinnedMemory memory(fake, {.log = nullptr});
  ::setenv("LOCAL_WORLD_SIZE", "1000", 1);
  auto loader = DeviceLoader::Open(data.Open(memory, Encoded(data)),
                                   Decoding(data, nullptr, /*threads=*/0), fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  while ((*loader->Next()).has_value()) {
  }
  const DeviceLoaderStats stats = loader->stats();
  ::unsetenv("LOCAL_WORLD_SIZE");
  EXPECT_EQ(stats.ranks, 1000);
  EXPECT_EQ(stats.decode_threads, 1);
  // What the environment becomes later changes nothing.
  EXPECT_EQ(loader->stats().decode_threads, 1);
  EXPECT_EQ(loader->stats().ranks, 1000);
}

}  // namespace
}  // namespace shardpack
