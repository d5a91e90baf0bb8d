// DeviceBatch: when the memory of a batch that was given back is written again, if it was given
// back within the capture of a graph, or by another thread than the one that used it.
#include "cuda/loading/device_batch.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/loading/device_loader.h"
#include "cuda/loading/resident_loader.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A loader with three buffers, on the fake device.
class DeviceBatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = std::make_unique<PinnedMemory>(fake_, PinnedMemoryOptions{.log = nullptr});
    auto opened = DeviceLoader::Open(
        data_.Open(*memory_, data_.Options(0)),
        {.prefetch_batches = 1, .patience = milliseconds(20'000), .log = nullptr}, fake_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    loader_ = *std::move(opened);
    stream_ = *fake_.CreateStream();
  }
  void TearDown() override {
    loader_.reset();
    memory_.reset();
    EXPECT_TRUE(fake_.DestroyStream(stream_).ok());
    EXPECT_EQ(fake_.live_objects(), 0u) << fake_.LiveObjects();
    EXPECT_THAT(fake_.misuses(), IsEmpty());
  }
  // Ends of epochs are passed over.
  DeviceBatch Next() {
    for (;;) {
      auto batch = loader_->Next();
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) std::abort();
      if (batch->has_value()) return **std::move(batch);
    }
  }
  // Whether this memory is that of one of the next batches.
  bool ComesAgain(const void* memory, int batches) {
    for (int i = 0; i < batches; ++i) {
      DeviceBatch batch = Next();
      EXPECT_TRUE(batch.WaitOn(nullptr).ok());
      if (batch.pixels()->data == memory) return true;
    }
    return false;
  }

  FakeDevice fake_{{.seed = 5, .max_delay_us = 100}};
  const LoaderFixture data_{"DeviceBatchTest", {}};
  std::unique_ptr<PinnedMemory> memory_;
  std::optional<DeviceLoader> loader_;
  Stream stream_ = nullptr;
};

// For consumers that name no stream, or none that may wait.
TEST_F(DeviceBatchTest, TheHostCanWaitForIt) {
  fake_.Hold();
  std::optional<DeviceBatch> batch = Next();
  while (*batch->SynchronizeWithin(milliseconds(0))) batch = Next();  // copied before Hold
  const uint64_t asked = fake_.calls("IsDone");
  std::atomic<bool> may_run{false};
  std::thread consumer([&] {
    EXPECT_TRUE(batch->Synchronize().ok());
    EXPECT_TRUE(may_run.load());
    EXPECT_EQ(std::memcmp(batch->labels()->data, batch->info().labels.data(),
                          batch->size() * sizeof(int64_t)),
              0);
  });
  while (fake_.calls("IsDone") < asked + 3) std::this_thread::yield();
  may_run.store(true);
  fake_.LetGo();
  consumer.join();
  // Where it was used is said by Release, or it is as if on the legacy stream.
  ASSERT_TRUE(batch->Release(stream_).ok());
  EXPECT_EQ(batch->Synchronize().code(), absl::StatusCode::kFailedPrecondition);
}

// An event cannot be recorded then: it would belong to the graph.
TEST_F(DeviceBatchTest, GivenBackWithinACaptureItIsHeldUntilTheEnd) {
  for (const bool by_name : {true, false}) {
    std::optional<DeviceBatch> batch = Next();
    ASSERT_TRUE(batch->WaitOn(stream_).ok());
    const void* const memory = batch->pixels()->data;
    fake_.BeginCapture(stream_);
    if (by_name) {
      EXPECT_TRUE(batch->Release(stream_).ok());
    }
    batch.reset();
    EXPECT_FALSE(ComesAgain(memory, 8)) << "while the capture lasts";
    EXPECT_TRUE(fake_.EndCapture(stream_)) << "by nothing that the loader did";
    EXPECT_TRUE(ComesAgain(memory, 8));
  }
}

TEST_F(DeviceBatchTest, LoadersEndWithinACapture) {
  std::optional<DeviceBatch> batch = Next();
  ASSERT_TRUE(batch->WaitOn(stream_).ok());
  fake_.BeginCapture(stream_);
  batch.reset();
  std::thread ends([&] {
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_TRUE(fake_.EndCapture(stream_));
  });
  loader_.reset();
  ends.join();
}

TEST_F(DeviceBatchTest, AStreamThatCapturesIsNotMadeToWait) {
  DeviceBatch batch = Next();
  fake_.BeginCapture(stream_);
  const absl::Status status = batch.WaitOn(stream_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("captures a graph"));
  const uint64_t before = loader_->stats().batches;
  EXPECT_TRUE(absl::IsFailedPrecondition(
      loader_->NextInto({batch.pixels()->data, batch.pixels()->bytes(), nullptr}, stream_)
          .status()));
  EXPECT_EQ(loader_->stats().batches, before) << "no batch was lost";
  EXPECT_TRUE(fake_.EndCapture(stream_));
  EXPECT_TRUE(batch.WaitOn(stream_).ok());
}

// As a framework has it whose last reference ends in a thread of the collector: the stream 2 is
// another one there.
TEST_F(DeviceBatchTest, OnAThreadsOwnStreamItIsUsedUntilThatThreadsWorkIsDone) {
  std::atomic<bool> same{false}, done{false};
  std::optional<DeviceBatch> batch = Next();
  std::thread([&] {
    ASSERT_TRUE(batch->WaitOn(ThreadStream()).ok());
    const auto* const pixels = static_cast<const char*>(batch->pixels()->data);
    fake_.Enqueue(ThreadStream(), [&, pixels, size = batch->pixels()->bytes()] {
      const std::string before(pixels, size);
      std::this_thread::sleep_for(milliseconds(100));
      same.store(std::memcmp(before.data(), pixels, size) == 0);
      done.store(true);
    });
  }).join();
  std::thread([&] { batch.reset(); }).join();
  while (!done.load()) (void)ComesAgain(nullptr, 1);
  EXPECT_TRUE(same.load());
}

// The preprocessing is short, and everybody waits for it.
TEST(DevicePriority, KernelsRunOnUrgentStreams) {
  const LoaderFixture data("DevicePriority", {});
  FakeDevice fake;
  {
    PinnedMemory memory(fake, {.log = nullptr});
    for (const bool decode : {false, true}) {
      LoaderOptions host = data.Options();
      DeviceOptions options{.preprocess = DevicePreprocess{.output = {}}, .log = nullptr};
      if (decode) {
        options.decode = DeviceDecode{.crop = host.decode->crop, .threads = 1};
        host.decode.reset();
        host.image_infos = true;
      }
      auto loader = DeviceLoader::Open(data.Open(memory, host), options, fake);
      ASSERT_TRUE(loader.ok()) << loader.status();
      while ((*loader->Next()).has_value()) {
      }
    }
    auto resident = ResidentLoader::Open(data.dataset(), data.order(), {},
                                         {.width = 8, .height = 8, .log = nullptr}, fake);
    ASSERT_TRUE(resident.ok()) << resident.status();
    ASSERT_TRUE(resident->Next().ok());
  }
  EXPECT_GT(fake.launches(), 10u);
  EXPECT_EQ(fake.urgent_launches(), fake.launches());
}

// A kernel that fails is told by whatever call comes next: to all, with the cause.
TEST(DeviceAsynchronousFailure, LosesTheDeviceForEverybody) {
  const LoaderFixture data("DeviceAsynchronousFailure", {});
  for (uint64_t n = 0; n < 30; n += 3) {
    FakeDevice fake({.seed = n, .max_delay_us = 50});
    PinnedMemory memory(fake, {.log = nullptr});
    DeviceOptions options{.preprocess = DevicePreprocess{.output = {}}, .log = nullptr};
    auto loader = DeviceLoader::Open(data.Open(memory, data.Options(0)), options, fake);
    ASSERT_TRUE(loader.ok()) << loader.status();
    fake.FailOperation(n);
    absl::Status status;
    while (status.ok()) {
      auto batch = loader->Next();
      status = batch.status();
      if (status.ok() && batch->has_value()) status = (*batch)->WaitOn(nullptr);
    }
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cudaErrorIllegalAddress"));
    EXPECT_EQ(loader->Next().status().code(), absl::StatusCode::kUnavailable);
  }
}

// That freeing waits for what uses the memory is true of cudaFree and not promised.
TEST(DeviceBatchMemory, IsNotFreedWhileItIsUsed) {
  const LoaderFixture data("DeviceBatchMemory", {.jpegs = false, .samples = 160, .batch = 2});
  const std::vector<HostCopy> expected = data.Expected(data.Options());
  FakeDevice fake({.max_delay_us = 50, .free_waits = false});
  uint64_t growths = 0;
  {
    PinnedMemory memory(fake, {.log = nullptr});
    auto loader = DeviceLoader::Open(data.Open(memory, data.Options()),
                                     {.raw_bytes = 300, .log = nullptr}, fake);
    ASSERT_TRUE(loader.ok()) << loader.status();
    const Stream stream = *fake.CreateStream();
    std::vector<std::vector<std::string>> got;
    got.reserve(expected.size());  // they are written to by the stream
    for (;;) {
      auto batch = loader->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      if (!batch->has_value()) break;
      ASSERT_TRUE((*batch)->WaitOn(stream).ok());
      got.emplace_back((*batch)->size());
      for (size_t slot = 0; slot < (*batch)->size(); ++slot) {
        fake.Enqueue(stream,
                     [bytes = (*batch)->bytes(0, slot), to = &got, at = got.size() - 1, slot] {
                       std::this_thread::sleep_for(milliseconds(1));
                       (*to)[at][slot].assign(static_cast<const char*>(bytes.data), bytes.size);
                     });
      }
      ASSERT_TRUE((*batch)->Release(stream).ok());
    }
    ASSERT_TRUE(fake.Synchronize(stream).ok());
    size_t n = 0;
    for (const HostCopy& host : expected) {
      if (host.ids.empty()) continue;
      EXPECT_TRUE(got[n] == host.images) << "batch " << n;
      ++n;
    }
    growths = loader->stats().growths;
    EXPECT_TRUE(fake.DestroyStream(stream).ok());
  }
  EXPECT_GT(growths, 0u);
  EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
}

TEST(DeviceBatchMemory, WhatIsFreedIsNotCounted) {
  FakeDevice fake;
  const auto buffers = DeviceBuffers::Create(
      fake,
      {.buffers = 5, .slots = 4, .pixel_bytes = 1000, .output_bytes = 3000, .raw_bytes = 700});
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  EXPECT_EQ((*buffers)->device_bytes(), fake.device_bytes());
  const uint64_t all = fake.device_bytes();
  ASSERT_TRUE((*buffers)->FreeUnused().ok());
  EXPECT_EQ((*buffers)->buffers(), DeviceBuffers::kMinBuffers);
  EXPECT_LT(fake.device_bytes(), all);
  EXPECT_EQ((*buffers)->device_bytes(), fake.device_bytes());
}

}  // namespace
}  // namespace shardpack
