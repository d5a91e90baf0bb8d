// What a DeviceLoader does when the device, its memory or its consumer fail: every call at every
// position, refused memory, a lost device, a consumer that keeps everything, a device that hangs.
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "cuda/loading/device_loader.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

constexpr size_t kPixelBytes = size_t{8} * LoaderFixture::kWidth * LoaderFixture::kHeight * 3;

std::string TestName() { return ::testing::UnitTest::GetInstance()->current_test_info()->name(); }

struct Log {
  std::mutex mutex;
  std::vector<std::string> lines;

  std::function<void(const std::string&)> function() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex);
      lines.push_back(line);
    };
  }
};

struct Outcome {
  std::vector<absl::Status> errors;
  size_t batches = 0, wrong = 0;
};

// A run of one epoch in which any call may fail.
Outcome RunEpoch(FakeDevice& fake, const LoaderFixture& data, const std::vector<HostCopy>& expected,
                 DeviceOptions options) {
  Outcome outcome;
  Device& device = fake;
  const auto note = [&](const absl::Status& status) {
    if (!status.ok()) outcome.errors.push_back(status);
    return status.ok();
  };
  PinnedMemory memory(device, {.log = nullptr});
  absl::StatusOr<Loader> host = data.TryOpen(memory, data.Options());
  if (!note(host.status())) return outcome;
  options.log = nullptr;
  absl::StatusOr<DeviceLoader> loader = DeviceLoader::Open(*std::move(host), options, device);
  if (!note(loader.status())) return outcome;
  for (;;) {
    auto batch = loader->Next();
    if (!note(batch.status()) || !batch->has_value()) break;
    if (!note((*batch)->WaitOn(nullptr))) continue;
    if (const DeviceTensor* const pixels = (*batch)->pixels()) {
      std::string got(pixels->bytes(), '\0');
      if (note(device.CopyToHost(got.data(), pixels->data, got.size(), nullptr))) {
        outcome.wrong += got != expected[(*batch)->info().step].pixels;
      }
    }
    ++outcome.batches;
    note((*batch)->Release(nullptr));
  }
  return outcome;
}

TEST(DeviceFailures, EveryCallAtEveryPosition) {
  const LoaderFixture data(TestName(), {.samples = 24});
  const LoaderFixture raw(TestName() + "Raw", {.jpegs = false, .samples = 24});
  const std::vector<HostCopy> expected = data.Expected(data.Options());
  for (const int kind : {0, 1, 2}) {  // pixels, preprocessed to the same, encoded
    for (const int code :
         {kDeviceInvalidValue, kDeviceNotSupported, kDeviceOutOfMemory, kDeviceIllegalAddress}) {
      size_t errors = 0, runs = 0;
      for (uint64_t n = 0, without = 0; without < 4; ++n, ++runs) {
        SCOPED_TRACE(::testing::Message() << "kind " << kind << ", error " << code << " at " << n);
        FakeDevice fake({.seed = n, .max_delay_us = 0});
        fake.FailCall(n, code);
        DeviceOptions options{.patience = milliseconds(20'000)};
        if (kind == 1) options.preprocess = DevicePreprocess{.output = {}};
        if (kind == 2) options.raw_bytes = 1000;  // grows
        const Outcome outcome = RunEpoch(fake, kind == 2 ? raw : data, expected, options);
        without = fake.failed() ? 0 : without + 1;
        errors += !outcome.errors.empty();
        EXPECT_EQ(outcome.wrong, 0u);
        EXPECT_THAT(fake.misuses(), IsEmpty());
        // Memory that grows may be freed by one thread while another one learns of the loss.
        EXPECT_LE(fake.frees_after_loss(), kind == 2 ? 1u : 0u);
        if (outcome.errors.empty()) {
          EXPECT_EQ(outcome.batches, 3u);
        } else {
          EXPECT_TRUE(fake.failed()) << outcome.errors[0];
          EXPECT_THAT(std::string(outcome.errors[0].message()), HasSubstr("cudaError"));
        }
        if (!fake.lost()) {
          EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
        }
        if (::testing::Test::HasFailure()) return;
      }
      EXPECT_GT(runs, 60u);
      EXPECT_GT(errors, 10u);
    }
  }
}

TEST(DeviceFailures, RefusedPageLocksAreReportedAndSlow) {
  const LoaderFixture data(TestName(), {});
  const std::vector<HostCopy> expected = data.Expected(data.Options());
  FakeDevice fake;
  fake.FailEntry("RegisterHost", kDeviceNotSupported);
  {  // The driver's own memory.
    Log log;
    PinnedMemory memory(fake, {.log = log.function()});
    auto loader =
        DeviceLoader::Open(data.Open(memory, data.Options()), {.log = log.function()}, fake);
    ASSERT_TRUE(loader.ok()) << loader.status();
    EXPECT_TRUE(loader->stats().pinned);
    EXPECT_GT(memory.stats().driver_bytes, 0u);
    ASSERT_FALSE(log.lines.empty());
    EXPECT_THAT(log.lines[0], AllOf(HasSubstr("cudaErrorNotSupported"), HasSubstr("driver")));
  }
  EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
  fake.FailEntry("AllocateHost", kDeviceOutOfMemory);
  Log log;
  PinnedMemory memory(fake, {.log = log.function()});
  auto loader =
      DeviceLoader::Open(data.Open(memory, data.Options()), {.log = log.function()}, fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const DeviceLoaderStats stats = loader->stats();
  EXPECT_FALSE(stats.pinned);
  EXPECT_EQ(stats.fallbacks, 1u);
  EXPECT_THAT(stats.why_fallback, HasSubstr("not page-locked"));
  EXPECT_GT(memory.stats().pageable_bytes, 0u);
  EXPECT_THAT(memory.stats().why, HasSubstr("cudaErrorNotSupported"));
  // Strict memory is an error instead.
  PinnedMemory strict(fake, {.pageable_fallback = false, .log = nullptr});
  EXPECT_THAT(strict.Allocate(1000).status().ToString(),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("page-locking 1000 bytes")));
  for (size_t n = 0; n < 5; ++n) {
    auto batch = loader->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    (*batch)->WaitOn(nullptr).IgnoreError();
    std::string got(kPixelBytes, '\0');
    EXPECT_TRUE(fake.CopyToHost(got.data(), (*batch)->pixels()->data, kPixelBytes, nullptr).ok());
    EXPECT_TRUE(got == expected[n].pixels) << n;
  }
}

TEST(DeviceFailures, TooLittleDeviceMemoryShrinksOnce) {
  const LoaderFixture data(TestName(), {});
  const std::vector<HostCopy> expected = data.Expected(data.Options());
  {
    FakeDevice fake({.device_cap_bytes = kPixelBytes * 3});
    PinnedMemory memory(fake, {.log = nullptr});
    auto loader = DeviceLoader::Open(data.Open(memory, data.Options()), {}, fake);
    ASSERT_TRUE(loader.ok()) << loader.status();
    EXPECT_EQ(loader->stats().buffers, 2u);
    EXPECT_EQ(loader->stats().shrinks, 1u);
  }
  FakeDevice fake({.device_cap_bytes = kPixelBytes * 3});
  const Outcome outcome = RunEpoch(fake, data, expected, {});
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.batches, 5u);
  EXPECT_EQ(outcome.wrong, 0u);
  FakeDevice small({.device_cap_bytes = kPixelBytes});
  const Outcome refused = RunEpoch(small, data, expected, {});
  ASSERT_EQ(refused.errors.size(), 1u);
  EXPECT_EQ(refused.errors[0].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.errors[0].message()),
              AllOf(HasSubstr("not even 2 batches"), HasSubstr(std::to_string(kPixelBytes))));
  EXPECT_EQ(small.live_objects(), 0u) << small.LiveObjects();
}

TEST(DeviceFailures, AKernelThatIsNotThereIsDoneByTheCpu) {
  const LoaderFixture data(TestName(), {});
  const std::vector<HostCopy> expected = data.Expected(data.Options());
  FakeDevice fake;
  fake.FailEntry("Preprocess", kDeviceNoKernelImage);
  const Outcome outcome =
      RunEpoch(fake, data, expected, {.preprocess = DevicePreprocess{.output = {}}});
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_EQ(outcome.batches, 5u);
  EXPECT_EQ(outcome.wrong, 0u);
  EXPECT_EQ(fake.calls("Preprocess"), 1u);
  Log log;
  PinnedMemory memory(fake, {.log = nullptr});
  auto loader = DeviceLoader::Open(
      data.Open(memory, data.Options()),
      {.preprocess = DevicePreprocess{.output = {}}, .log = log.function()}, fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_THAT(loader->stats().why_fallback, HasSubstr("preprocessing by the CPU"));
  EXPECT_EQ(log.lines.size(), 1u);
}

TEST(DeviceFailures, ALostDeviceWakesEveryoneWithTheFirstCause) {
  const LoaderFixture data(TestName(), {});
  for (const bool waiting : {true, false}) {
    FakeDevice fake;
    PinnedMemory memory(fake, {.log = nullptr});
    auto loader = DeviceLoader::Open(data.Open(memory, data.Options(0)),
                                     {.patience = milliseconds(60'000), .log = nullptr}, fake);
    ASSERT_TRUE(loader.ok()) << loader.status();
    std::vector<DeviceBatch> kept;
    for (int i = 0; i < 4; ++i) kept.push_back(**loader->Next());
    const Clock::time_point start = Clock::now();
    std::future<absl::Status> woken;
    if (waiting) {  // all buffers are held: Next waits
      woken = std::async(std::launch::async, [&] { return loader->Next().status(); });
      std::this_thread::sleep_for(milliseconds(30));
    }
    fake.LoseDevice(kDeviceEccUncorrectable);
    EXPECT_EQ(kept[0].WaitOn(nullptr).code(), absl::StatusCode::kUnavailable);
    const absl::Status status = waiting ? woken.get() : loader->Next().status();
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("214"));
    EXPECT_EQ(loader->Next().status(), status) << "the first cause, for good";
    kept.clear();
    loader = absl::CancelledError();
    EXPECT_EQ(fake.frees_after_loss(), 0u);
  }
}

TEST(DeviceFailures, AConsumerThatKeepsAllIsToldWhatItKeeps) {
  const LoaderFixture data(TestName(), {});
  FakeDevice fake;
  PinnedMemory memory(fake, {.log = nullptr});
  auto loader = DeviceLoader::Open(data.Open(memory, data.Options(0)),
                                   {.patience = milliseconds(150), .log = nullptr}, fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  std::vector<DeviceBatch> kept;
  for (int i = 0; i < 4; ++i) kept.push_back(**loader->Next());
  for (int again = 0; again < 2; ++again) {
    const Clock::time_point start = Clock::now();
    const absl::Status status = loader->Next().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("all 4 buffers are held"), HasSubstr("epoch 0 step 0"),
                      HasSubstr("epoch 0 step 3"), HasSubstr("150 ms")));
    EXPECT_GE(Clock::now() - start, milliseconds(150));
  }
  EXPECT_TRUE(kept[2].Release(nullptr).ok());
  auto batch = loader->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ((*batch)->info().step, 4u) << "nothing was lost by waiting";
}

TEST(DeviceFailures, ADeviceThatHangsIsNoHang) {
  const LoaderFixture data(TestName(), {});
  FakeDevice fake;
  {
    PinnedMemory memory(fake, {.log = nullptr});
    Log log;
    auto loader = DeviceLoader::Open(
        data.Open(memory, data.Options(0)),
        {.patience = milliseconds(150), .stop_patience = milliseconds(50), .log = log.function()},
        fake);
    ASSERT_TRUE(loader.ok()) << loader.status();
    fake.Hold();
    absl::Status status;
    while (status.ok()) {
      auto batch = loader->Next();
      status = batch.status();
      if (status.ok() && batch->has_value()) status = (*batch)->Release(nullptr);
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a copy to the device does not end"));
    const Clock::time_point start = Clock::now();
    loader->Stop();
    loader = absl::CancelledError();
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
    EXPECT_GT(fake.live_objects(), 0u) << "what the device still uses is not freed";
  }
  fake.LetGo();
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

TEST(DeviceFailures, ErrorsOfTheLoaderComeBehindWhatWasRead) {
  const LoaderFixture data(TestName(), {});
  FakeDevice fake;
  PinnedMemory memory(fake, {.budget_bytes = 1000, .log = nullptr});
  const absl::Status status = data.TryOpen(memory, data.Options()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("budget of 1000"));
  PinnedMemory enough(fake, {.log = nullptr});
  LoaderOptions options = data.Options(0);
  options.decode->max_pixels = 24 * 29;  // a few images are larger than that
  options.bad_samples = BadSamples::kSubstitute;
  options.max_bad_samples = 20;
  auto loader = DeviceLoader::Open(data.Open(enough, options), {.log = nullptr}, fake);
  ASSERT_TRUE(loader.ok()) << loader.status();
  size_t substituted = 0, given = 0;
  absl::StatusOr<std::optional<DeviceBatch>> batch = loader->Next();
  for (; batch.ok(); batch = loader->Next()) {
    if (!batch->has_value()) continue;
    for (const SampleStatus& each : (*batch)->info().status)
      substituted += each.state == SampleState::kSubstituted;
    given += loader->TakeBadSamples().size();
    EXPECT_EQ(given, substituted) << "those of delivered batches alone";
  }
  EXPECT_GT(given, 0u);
  EXPECT_EQ(batch.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(loader->Next().status(), batch.status());
}

}  // namespace
}  // namespace shardpack
