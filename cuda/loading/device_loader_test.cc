// DeviceLoader: what the Loader gives arrives on the device, complete, in order, without the host
// waiting; resume, end, graphs' memory, and the counts of a steady run. On the fake device, and (as
// :device_loader_gpu_test) on a GPU.
#include "cuda/loading/device_loader.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

#include "cuda/device/host_device.h"
#include "cuda/testing/loader_fixture.h"
#include "cuda/testing/recording_consumer.h"
#include "cuda/testing/test_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kPixelBytes = size_t{8} * LoaderFixture::kWidth * LoaderFixture::kHeight * 3;

std::string TestName() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

DeviceOptions Quiet(DeviceOptions options = {}) {
  options.log = nullptr;
  return options;
}

class DeviceLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(device_.ok()) << device_.why(); }
  void TearDown() override {
    if (device_.fake() == nullptr) return;
    EXPECT_THAT(device_.fake()->misuses(), IsEmpty());
  }
  DeviceLoader Open(Loader loader, const DeviceOptions& options) {
    absl::StatusOr<DeviceLoader> opened =
        DeviceLoader::Open(std::move(loader), options, device_.get());
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  TestDevice device_{{.seed = 3, .max_delay_us = 400}};
};

void ExpectSame(const std::vector<DeviceCopy>& got, const std::vector<HostCopy>& expected) {
  size_t n = 0;
  for (const HostCopy& host : expected) {
    if (host.ids.empty()) continue;
    ASSERT_LT(n, got.size());
    const DeviceCopy& device = got[n++];
    EXPECT_EQ(device.info.epoch, host.epoch);
    EXPECT_EQ(device.info.step, host.step);
    EXPECT_EQ(device.info.ids, host.ids);
    EXPECT_EQ(device.labels, host.labels) << host.epoch << "/" << host.step;
    EXPECT_EQ(device.info.labels, host.labels);
    if (host.pixels.empty()) {
      EXPECT_TRUE(device.images == host.images) << host.epoch << "/" << host.step;
    } else {
      EXPECT_TRUE(device.pixels == host.pixels) << host.epoch << "/" << host.step;
    }
  }
  EXPECT_EQ(n, got.size());
}

TEST_F(DeviceLoaderTest, GivesWhatTheLoaderGives) {
  for (const bool jpegs : {true, false}) {
    const LoaderFixture data(TestName(), {.jpegs = jpegs});
    const LoaderOptions options = data.Options(3);
    const std::vector<HostCopy> expected = data.Expected(options);
    PinnedMemory memory(device_.get(), {.log = nullptr});
    {
      DeviceLoader loader = Open(data.Open(memory, options), Quiet());
      RecordingConsumer consumer(device_, jpegs ? kPixelBytes : 0, 16);
      for (const HostCopy& host : expected) {
        auto batch = loader.Next();
        ASSERT_TRUE(batch.ok()) << batch.status();
        ASSERT_EQ(batch->has_value(), !host.ids.empty());
        if (batch->has_value()) consumer.Put(**std::move(batch));
      }
      EXPECT_FALSE(loader.Next()->has_value());
      ExpectSame(consumer.Finish(), expected);
      const DeviceLoaderStats stats = loader.stats();
      EXPECT_EQ(stats.batches, 15u);
      EXPECT_EQ(stats.uploads, 15u);
      EXPECT_TRUE(stats.pinned);
      EXPECT_EQ(stats.fallbacks, 0u);
      EXPECT_EQ(stats.buffers, 4u);
    }
    EXPECT_EQ(memory.stats().registered_bytes, 0u) << "everything came back";
  }
  if (device_.fake() != nullptr) {
    EXPECT_EQ(device_.fake()->live_objects(), 0u) << device_.fake()->LiveObjects();
  }
}

// The same program without a GPU.
TEST_F(DeviceLoaderTest, TheHostTableGivesTheSame) {
  const LoaderFixture data(TestName(), {});
  const LoaderOptions options = data.Options(2);
  PinnedMemory memory(HostDevice::Get(), {.log = nullptr});
  absl::StatusOr<DeviceLoader> loader =
      DeviceLoader::Open(data.Open(memory, options),
                         Quiet({.preprocess = DevicePreprocess{.output = {}}}), HostDevice::Get());
  ASSERT_TRUE(loader.ok()) << loader.status();
  for (const HostCopy& host : data.Expected(options)) {
    auto batch = loader->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_EQ(batch->has_value(), !host.ids.empty());
    if (!batch->has_value()) continue;
    const DeviceTensor& pixels = *(*batch)->pixels();
    EXPECT_EQ(pixels.kind, DeviceKind::kHost);
    EXPECT_EQ(std::string(static_cast<char*>(pixels.data), pixels.bytes()), host.pixels);
    EXPECT_TRUE((*batch)->WaitOn(nullptr).ok());
    EXPECT_TRUE((*batch)->Release(nullptr).ok());
    EXPECT_EQ((*batch)->WaitOn(nullptr).code(), absl::StatusCode::kFailedPrecondition);
  }
}

// Every way that this device has must decode some images: a GPU whose images the CPU decoded has
// not been tested. nvJPEG rounds differently from the CPU, by a few levels.
TEST_F(DeviceLoaderTest, DecodesForTheDevice) {
  const LoaderFixture data(TestName(), {.kinds = true, .min_side = 96});
  LoaderOptions encoded = data.Options();
  encoded.decode.reset();
  encoded.image_infos = true;
  const auto options = [&](bool by_gpu) {
    const LoaderOptions host = data.Options();
    return Quiet({.preprocess = DevicePreprocess{.output = {}},
                  .decode = DeviceDecode{.crop = host.decode->crop,
                                         .augment_seed = host.augment_seed,
                                         .use_hardware = by_gpu,
                                         .use_hybrid = by_gpu,
                                         .share = false,
                                         .nvjpeg = by_gpu ? device_.nvjpeg() : nullptr}});
  };
  std::vector<DeviceCopy> copies[2];
  for (const bool by_gpu : {false, true}) {
    PinnedMemory memory(device_.get(), {.log = nullptr});
    DeviceLoader loader = Open(data.Open(memory, encoded), options(by_gpu));
    RecordingConsumer consumer(device_, kPixelBytes, 16);
    while (auto batch = *loader.Next()) consumer.Put(*std::move(batch));
    copies[by_gpu] = consumer.Finish();
    const DeviceLoaderStats stats = loader.stats();
    const JpegDecoderStats& by = stats.decode;
    EXPECT_EQ(by.hardware + by.hybrid + by.cpu, 40u);
    // Of six kinds four are for the engines, one for nvJPEG, one for the CPU.
    EXPECT_EQ(by.cpu, by_gpu ? 7u : 40u)
        << stats.decode_backends << "; SHARDPACK_NVJPEG names the library where it is not found";
    EXPECT_EQ(by.hardware, by_gpu && device_.should_have_engines() ? 26u : 0u)
        << stats.decode_backends;
  }
  const std::vector<DeviceCopy>&expected = copies[false], &got = copies[true];
  ASSERT_EQ(got.size(), 5u);
  ASSERT_EQ(expected.size(), 5u);
  for (size_t n = 0; n < got.size(); ++n) {
    EXPECT_EQ(got[n].info.ids, expected[n].info.ids);
    EXPECT_EQ(got[n].labels, expected[n].labels);
    ASSERT_EQ(got[n].pixels.size(), expected[n].pixels.size());
    EXPECT_LE(LargestDifference(got[n].pixels, expected[n].pixels),
              device_.fake() != nullptr ? 0 : 16)
        << "batch " << n;
  }
}

// In rounds after the launch that preprocesses: what the CPU augments, of the same pixels.
TEST_F(DeviceLoaderTest, AugmentsOnTheDevice) {
  const LoaderFixture data(TestName(), {.samples = 44});
  LoaderOptions encoded = data.Options(2);
  encoded.decode.reset();
  encoded.image_infos = true;
  const LoaderOptions host = data.Options();
  const absl::StatusOr<AugmentPlan> plan = AugmentPlan::Parse(
      "color_jitter(.4, .4, .4, .1) rand_augment(n=2, m=9) perspective(p=.3) erase(value=random)");
  ASSERT_TRUE(plan.ok()) << plan.status();
  DeviceOptions options = Quiet({.preprocess = DevicePreprocess{.output = {}},
                                 .decode = DeviceDecode{.crop = host.decode->crop,
                                                        .augment_seed = host.augment_seed,
                                                        .augment = *plan,
                                                        .augment_on_device_only = true,
                                                        .use_hardware = false,
                                                        .use_hybrid = false}});
  const auto run = [&](Device& device, const auto& take) {
    PinnedMemory memory(device, {.log = nullptr});
    auto loader = DeviceLoader::Open(data.Open(memory, encoded), options, device);
    ASSERT_TRUE(loader.ok()) << loader.status();
    for (int ends = 0; ends < 2;) {
      auto batch = loader->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      ends += batch->has_value() ? 0 : 1;
      if (batch->has_value()) take(**std::move(batch));
    }
    EXPECT_EQ(loader->stats().fallbacks, 0u) << loader->stats().why_fallback;
  };
  std::vector<std::string> expected;
  run(HostDevice::Get(), [&](DeviceBatch batch) {
    expected.emplace_back(static_cast<const char*>(batch.pixels()->data), kPixelBytes);
  });
  RecordingConsumer consumer(device_, kPixelBytes, 16);
  run(device_.get(), [&](DeviceBatch batch) { consumer.Put(std::move(batch)); });
  const std::vector<DeviceCopy> got = consumer.Finish();
  ASSERT_EQ(got.size(), 12u);
  ASSERT_EQ(expected.size(), 12u);
  for (size_t n = 0; n < got.size(); ++n) {
    EXPECT_LE(LargestDifference(got[n].pixels, expected[n]), device_.fake() != nullptr ? 0 : 1)
        << "batch " << n;
  }
}

// Each way that there is has its turns, then the fastest one decodes.
TEST_F(DeviceLoaderTest, ChoosesHowToDecode) {
  const LoaderFixture data(TestName(), {.samples = 80, .min_side = 96});
  LoaderOptions encoded = data.Options(2);
  encoded.decode.reset();
  encoded.image_infos = true;
  const LoaderOptions host = data.Options();
  std::vector<DeviceCopy> copies[2];
  for (const bool choose : {false, true}) {
    PinnedMemory memory(device_.get(), {.log = nullptr});
    DeviceLoader loader =
        Open(data.Open(memory, encoded),
             Quiet({.preprocess = DevicePreprocess{.output = {}},
                    .decode = DeviceDecode{.crop = host.decode->crop,
                                           .augment_seed = host.augment_seed,
                                           .use_hardware = choose,
                                           .use_hybrid = choose,
                                           .share = false,
                                           .choose = choose,
                                           .nvjpeg = choose ? device_.nvjpeg() : nullptr}}));
    RecordingConsumer consumer(device_, kPixelBytes, 20);
    for (int ends = 0; ends < 2;) {
      auto batch = loader.Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      ends += batch->has_value() ? 0 : 1;
      if (batch->has_value()) consumer.Put(**std::move(batch));
    }
    copies[choose] = consumer.Finish();
    if (!choose) continue;
    const JpegDecoderStats by = loader.stats().decode;
    const uint64_t turns = 3 * 8;
    EXPECT_NE(by.choice, "") << loader.stats().decode_backends;
    EXPECT_EQ(by.hardware + by.hybrid + by.cpu, 160u);
    EXPECT_GE(by.hybrid, turns) << loader.stats().decode_backends;
    EXPECT_GE(by.cpu, turns);
    EXPECT_GE(by.hardware, device_.should_have_engines() ? turns : 0u);
  }
  ASSERT_EQ(copies[0].size(), 20u);
  ASSERT_EQ(copies[1].size(), 20u);
  std::vector<HostCopy> scaled = data.Expected(data.Options(2));
  scaled.erase(std::remove_if(scaled.begin(), scaled.end(),
                              [](const HostCopy& copy) { return copy.ids.empty(); }),
               scaled.end());
  ASSERT_EQ(scaled.size(), 20u);
  for (size_t n = 0; n < 20; ++n) {
    // Where the CPU is given all, it decodes as the Loader does.
    const int to_whole = LargestDifference(copies[true][n].pixels, copies[false][n].pixels);
    const int to_scaled = LargestDifference(copies[true][n].pixels, scaled[n].pixels);
    EXPECT_LE(std::min(to_whole, to_scaled), device_.fake() != nullptr ? 1 : 16) << "batch " << n;
  }
}

// What a device copies after a fork is what the parent wrote after it.
TEST_F(DeviceLoaderTest, AForkLeavesPageLockedMemoryToTheParent) {
  constexpr size_t kBytes = size_t{3} << 20;
  PinnedMemory memory(device_.get(), {.log = nullptr});
  const absl::StatusOr<std::span<std::byte>> locked = memory.Allocate(kBytes);
  ASSERT_TRUE(locked.ok()) << locked.status();
  ASSERT_EQ(memory.stats().registered_bytes, kBytes);
  std::fill(locked->begin(), locked->end(), std::byte{1});
  int until[2];
  ASSERT_EQ(::pipe(until), 0);
  const pid_t child = ::fork();
  if (child == 0) {  // lives while the parent writes, as a worker does
    char end = 0;
    ::close(until[1]);
    (void)!::read(until[0], &end, 1);
    unsigned char in_core = 0;
    ::_exit(::mincore(locked->data(), kBytes, &in_core) == 0 ? 1 : 0);
  }
  std::fill(locked->begin(), locked->end(), std::byte{2});
  const Stream stream = device_.MakeStream();
  void* const there = device_.Allocate(kBytes);
  EXPECT_TRUE(device_.get().CopyToDevice(there, locked->data(), kBytes, stream).ok());
  EXPECT_TRUE(device_.Read(there, kBytes, stream) == std::string(kBytes, '\2'));
  ::close(until[0]);
  ::close(until[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child has it: " << status;
  device_.Free(there);
  EXPECT_TRUE(device_.get().DestroyStream(stream).ok());
  memory.Free(*locked);
}

TEST_F(DeviceLoaderTest, PreprocessesOnTheDevice) {
  const LoaderFixture data(TestName(), {});
  const LoaderOptions options = data.Options();
  const OutputFormat output{.type = PixelType::kF16,
                            .layout = PixelLayout::kNchw,
                            .mean = {0.4f, 0.5f, 0.6f},
                            .std = {0.2f, 0.25f, 0.3f}};
  constexpr uint32_t kTo = 12;
  PinnedMemory memory(device_.get(), {.log = nullptr});
  DeviceLoader loader =
      Open(data.Open(memory, options),
           Quiet({.preprocess = DevicePreprocess{.output = output, .width = kTo, .height = kTo}}));
  const size_t bytes = size_t{8} * kTo * kTo * 3 * 2;
  RecordingConsumer consumer(device_, bytes, 8);
  for (auto batch = loader.Next(); batch.ok() && batch->has_value(); batch = loader.Next()) {
    const DeviceTensor pixels = *(*batch)->pixels();
    EXPECT_EQ(pixels.type, TensorType::kF16);
    EXPECT_EQ(pixels.shape, (std::array<int64_t, 5>{8, 3, kTo, kTo}));
    EXPECT_EQ(pixels.bytes(), bytes);
    consumer.Put(**std::move(batch));
  }
  const std::vector<DeviceCopy> got = consumer.Finish();
  const std::vector<HostCopy> expected = data.Expected(options);
  ASSERT_EQ(got.size(), 5u);
  for (size_t n = 0; n < got.size(); ++n) {
    std::vector<PreprocessSample> samples;
    for (uint32_t i = 0; i < 8; ++i) {
      samples.push_back(
          {reinterpret_cast<const uint8_t*>(expected[n].pixels.data()) + i * kPixelBytes / 8,
           LoaderFixture::kWidth,
           LoaderFixture::kHeight,
           LoaderFixture::kWidth * 3,
           {0, 0, LoaderFixture::kWidth, LoaderFixture::kHeight},
           false});
    }
    std::string wanted(bytes, '\0');
    ASSERT_TRUE(PreprocessOnHost({.samples = samples.data(),
                                  .count = 8,
                                  .channels = 3,
                                  .out_width = kTo,
                                  .out_height = kTo,
                                  .filter = ResizeFilter::kBilinear,
                                  .output = PixelOutput(output, 3),
                                  .out = wanted.data()})
                    .ok());
    if (device_.fake() != nullptr) {
      EXPECT_TRUE(got[n].pixels == wanted) << n;
    } else {  // a kernel may round otherwise: within a level
      ExpectCloseHalves(got[n].pixels, wanted, 1.0 / 255 / 0.2 + 0.01);
    }
  }
}

// Over three epochs each buffer holds padding once and other batches after it.
TEST_F(DeviceLoaderTest, PaddingIsZerosWhateverTheMean) {
  const LoaderFixture data(TestName(), {.samples = 44});
  const OutputFormat output{.type = PixelType::kF32, .mean = {0.5f, 0.5f, 0.5f}};
  constexpr size_t kImageBytes = LoaderFixture::kWidth * LoaderFixture::kHeight * 3 * sizeof(float);
  for (const bool kernel : {true, false}) {
    if (!kernel && device_.fake() == nullptr) continue;
    if (!kernel) device_.fake()->FailEntry("Preprocess", kDeviceNoKernelImage);
    PinnedMemory memory(device_.get(), {.log = nullptr});
    DeviceLoader loader =
        Open(data.Open(memory, data.Options(3)),
             Quiet({.prefetch_batches = 0, .preprocess = DevicePreprocess{.output = output}}));
    RecordingConsumer consumer(device_, 8 * kImageBytes, 20);
    size_t batches = 0, padding = 0;
    for (int ends = 0; ends < 3;) {
      auto batch = loader.Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      ends += batch->has_value() ? 0 : 1;
      if (batch->has_value()) consumer.Put(**std::move(batch));
    }
    for (const DeviceCopy& copy : consumer.Finish()) {
      ++batches;
      for (size_t i = 0; i < 8; ++i) {
        const bool zeros =
            copy.pixels.substr(i * kImageBytes, kImageBytes) == std::string(kImageBytes, '\0');
        EXPECT_EQ(zeros, copy.info.ids[i] == kPaddingId) << batches << " " << i;
        padding += zeros;
      }
    }
    EXPECT_EQ(batches, 18u);
    EXPECT_EQ(padding, 12u);
  }
}

TEST_F(DeviceLoaderTest, TheCursorCountsWhatWasGiven) {
  const LoaderFixture data(TestName(), {});
  const LoaderOptions options = data.Options(2);
  const std::vector<HostCopy> expected = data.Expected(options);
  for (size_t given = 0; given < expected.size(); ++given) {
    PinnedMemory memory(device_.get(), {.log = nullptr});
    Cursor cursor;
    {
      DeviceLoader loader = Open(data.Open(memory, options), Quiet());
      for (size_t i = 0; i < given; ++i) ASSERT_TRUE(loader.Next().ok());
      if (given == 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // reads ahead
      cursor = loader.cursor();
    }
    DeviceLoader loader = Open(data.Open(memory, options, cursor), Quiet());
    EXPECT_EQ(loader.cursor(), cursor);
    RecordingConsumer consumer(device_, kPixelBytes, 16);
    std::vector<HostCopy> rest(expected.begin() + static_cast<ptrdiff_t>(given), expected.end());
    for (size_t i = 0; i < rest.size(); ++i) {
      // An end of an epoch is not kept by a cursor: what follows comes at once.
      if (rest[i].ids.empty() && (i == 0 || i + 1 == rest.size())) continue;
      auto batch = loader.Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (batch->has_value()) consumer.Put(**std::move(batch));
    }
    ExpectSame(consumer.Finish(), rest);
  }
}

TEST_F(DeviceLoaderTest, FillsMemoryOfTheConsumer) {
  const LoaderFixture data(TestName(), {});
  const LoaderOptions options = data.Options();
  PinnedMemory memory(device_.get(), {.log = nullptr});
  DeviceLoader loader = Open(data.Open(memory, options), Quiet());
  const Stream stream = device_.MakeStream();
  void* const pixels = device_.Allocate(kPixelBytes);
  auto* const labels = static_cast<int64_t*>(device_.Allocate(8 * sizeof(int64_t)));
  EXPECT_THAT(std::string(loader.NextInto({pixels, 7, labels}, stream).status().message()),
              AllOf(HasSubstr("7 bytes"), HasSubstr(std::to_string(kPixelBytes))));
  for (const HostCopy& host : data.Expected(options)) {
    auto info = loader.NextInto({pixels, kPixelBytes, labels}, stream);
    ASSERT_TRUE(info.ok()) << info.status();
    ASSERT_EQ(info->has_value(), !host.ids.empty());
    if (!info->has_value()) continue;
    EXPECT_EQ((*info)->ids, host.ids);
    EXPECT_EQ(device_.Read(pixels, kPixelBytes, stream), host.pixels);
    EXPECT_EQ(device_.Read(labels, 64, stream),
              std::string(reinterpret_cast<const char*>(host.labels.data()), 64));
  }
  device_.Free(pixels);
  device_.Free(labels);
  EXPECT_TRUE(device_.get().DestroyStream(stream).ok());
}

TEST_F(DeviceLoaderTest, AWaitThatIsInterruptedLosesNoBatch) {
  const LoaderFixture data(TestName(), {});
  const LoaderOptions options = data.Options();
  const std::vector<HostCopy> expected = data.Expected(options);
  PinnedMemory memory(device_.get(), {.log = nullptr});
  DeviceLoader loader = Open(data.Open(memory, options), Quiet({.prefetch_batches = 0}));
  std::vector<DeviceBatch> held;  // all that there is memory for
  while (held.size() < loader.stats().buffers) held.push_back(**loader.Next());
  ASSERT_LT(held.size(), 5u);
  int asked = 0;
  EXPECT_EQ(loader.Next([&] { return ++asked == 2; }).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
  const size_t given = held.size();
  held.clear();
  for (size_t n = given; n < 5; ++n) {
    auto batch = loader.Next([] { return false; });
    ASSERT_TRUE(batch.ok() && batch->has_value()) << batch.status();
    EXPECT_EQ((*batch)->info().ids, expected[n].ids);
  }
  EXPECT_FALSE(loader.Next()->has_value());
}

TEST_F(DeviceLoaderTest, BatchesOutliveTheLoader) {
  const LoaderFixture data(TestName(), {});
  const LoaderOptions options = data.Options();
  PinnedMemory memory(device_.get(), {.log = nullptr});
  std::optional<DeviceBatch> kept;
  {
    DeviceLoader loader = Open(data.Open(memory, options), Quiet());
    kept = *loader.Next();
  }
  const Stream stream = device_.MakeStream();
  EXPECT_TRUE(kept->WaitOn(stream).ok());
  EXPECT_EQ(device_.Read(kept->pixels()->data, kPixelBytes, stream),
            data.Expected(options)[0].pixels);
  kept.reset();
  EXPECT_TRUE(device_.get().DestroyStream(stream).ok());
  if (device_.fake() != nullptr) {
    EXPECT_EQ(device_.fake()->live_objects(), 0u) << device_.fake()->LiveObjects();
  }
}

// After warm-up: nothing is allocated, and no call waits for the device.
TEST_F(DeviceLoaderTest, ASteadyRunAllocatesNothingAndNeverWaitsForTheDevice) {
  FakeDevice* const fake = device_.fake();
  if (fake == nullptr) GTEST_SKIP() << "counts calls of the fake device";
  const LoaderFixture data(TestName(), {});
  for (const bool preprocess : {false, true}) {
    PinnedMemory memory(device_.get(), {.log = nullptr});
    DeviceOptions options = Quiet();
    if (preprocess) options.preprocess.emplace();
    DeviceLoader loader = Open(data.Open(memory, data.Options(0)), options);
    const Stream stream = device_.MakeStream();
    uint64_t allocations = 0, syncs = 0, live = 0, calls = 0, registered = 0;
    for (int step = 0; step < 400; ++step) {
      if (step == 50) {
        allocations = fake->allocations();
        syncs = fake->host_syncs();
        live = fake->live_objects();
        registered = memory.stats().registered_bytes;
        calls = fake->calls();
      }
      auto batch = loader.Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (!batch->has_value()) continue;
      ASSERT_TRUE((*batch)->WaitOn(stream).ok());
      ASSERT_TRUE((*batch)->Release(stream).ok());
    }
    EXPECT_EQ(fake->allocations(), allocations);
    EXPECT_EQ(fake->host_syncs(), syncs);
    EXPECT_EQ(fake->live_objects(), live);
    EXPECT_EQ(memory.stats().registered_bytes, registered);
    EXPECT_EQ(loader.stats().host.overflow_bytes, 0u);
    EXPECT_EQ(loader.stats().growths, 0u);
    // Two copies (pixels, labels), two events, waits, and queries whether copies are done.
    EXPECT_LT(static_cast<double>(fake->calls() - calls) / 300, preprocess ? 40 : 35);
    loader.Stop();
    EXPECT_TRUE(device_.get().DestroyStream(stream).ok());
  }
}

// While no copy ends, batches go on being read and decoded, and copies queue up.
TEST_F(DeviceLoaderTest, CopiesOverlapWithFilling) {
  FakeDevice* const fake = device_.fake();
  if (fake == nullptr) GTEST_SKIP() << "holds the fake device";
  const LoaderFixture data(TestName(), {});
  PinnedMemory memory(device_.get(), {.log = nullptr});
  fake->Hold();
  DeviceLoader loader = Open(data.Open(memory, data.Options(0)), Quiet());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((loader.stats().uploads < 2 || loader.stats().host.decode.items < 6 * 8) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(loader.stats().uploads, 2u) << "enqueued while none is done";
  EXPECT_GE(loader.stats().host.decode.items, 6u * 8) << "filled while none is done";
  // A batch is given to the consumer before it is there.
  EXPECT_TRUE(loader.Next().ok());
  fake->LetGo();
  while (loader.stats().uploads < 4 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(loader.stats().uploads, 4u);
}

TEST_F(DeviceLoaderTest, StopsAtAnyMomentFromAnyThread) {
  const LoaderFixture data(TestName(), {});
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    PinnedMemory memory(device_.get(), {.log = nullptr});
    DeviceLoader loader = Open(data.Open(memory, data.Options(0)), Quiet());
    const Stream stream = device_.MakeStream();
    const auto after = std::chrono::microseconds(random() % 4000);
    std::thread stopper([&] {
      std::this_thread::sleep_for(after);
      loader.Stop();
    });
    absl::Status status;
    while (status.ok()) {
      auto batch = loader.Next();
      status = batch.status();
      if (status.ok() && batch->has_value()) status = (*batch)->WaitOn(stream);
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    stopper.join();
    EXPECT_TRUE(device_.get().Synchronize(stream).ok());
    EXPECT_TRUE(device_.get().DestroyStream(stream).ok());
  }
  if (device_.fake() != nullptr) {
    EXPECT_EQ(device_.fake()->live_objects(), 0u) << device_.fake()->LiveObjects();
  }
}

TEST_F(DeviceLoaderTest, RefusesWhatDoesNotFitTogether) {
  const LoaderFixture images(TestName(), {});
  const LoaderFixture bytes(TestName() + "Raw", {.jpegs = false});
  PinnedMemory memory(device_.get(), {.log = nullptr});
  const auto open = [&](const LoaderFixture& data, LoaderOptions options, DeviceOptions device) {
    return std::string(DeviceLoader::Open(data.Open(memory, options), Quiet(device), device_.get())
                           .status()
                           .message());
  };
  EXPECT_THAT(open(bytes, bytes.Options(), {.preprocess = DevicePreprocess()}),
              HasSubstr("needs a Loader that decodes"));
  LoaderOptions floats = images.Options();
  floats.decode->output.type = PixelType::kF32;
  EXPECT_THAT(open(images, floats, {.preprocess = DevicePreprocess()}),
              HasSubstr("takes 8-bit pixels"));
  auto loader = DeviceLoader::Open(images.Open(memory, floats), Quiet({}), device_.get());
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_EQ((**loader->Next()).pixels()->type, TensorType::kF32);
}

TEST_F(DeviceLoaderTest, AForkedChildIsToldSo) {
  const LoaderFixture data(TestName(), {});
  PinnedMemory memory(device_.get(), {.log = nullptr});
  std::optional<DeviceLoader> loader = Open(data.Open(memory, data.Options(0)), Quiet());
  std::optional<DeviceBatch> batch = *loader->Next();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool right =
        loader->Next().status().code() == absl::StatusCode::kFailedPrecondition &&
        batch->WaitOn(nullptr).code() == absl::StatusCode::kFailedPrecondition &&
        memory.Allocate(1 << 20).status().code() == absl::StatusCode::kFailedPrecondition;
    batch.reset();
    loader->Stop();
    loader.reset();
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(loader->Next().ok());
}

}  // namespace
}  // namespace shardpack
