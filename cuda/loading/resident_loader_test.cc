// ResidentLoader: the batches of the order from images that stay on the device, cropped and
// gathered there, without the host waiting; memory that is too small; calls that fail.
#include "cuda/loading/resident_loader.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/loading/resident_order.h"
#include "cuda/testing/loader_fixture.h"
#include "cuda/testing/recording_consumer.h"
#include "cuda/testing/test_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kSide = 16;
constexpr size_t kImageBytes = size_t{kSide} * kSide * 3;

class ResidentLoaderTest : public ::testing::Test {
 protected:
  ResidentLoaderTest()
      : data_(::testing::UnitTest::GetInstance()->current_test_info()->name(), {.samples = 44}) {}
  void SetUp() override { ASSERT_TRUE(device_.ok()) << device_.why(); }
  void TearDown() override {
    if (device_.fake() == nullptr) return;
    EXPECT_THAT(device_.fake()->misuses(), IsEmpty());
    EXPECT_EQ(device_.fake()->live_objects(), 0u) << device_.fake()->LiveObjects();
  }
  static ResidentOptions Options() {
    return {.width = kSide, .height = kSide, .epochs = 2, .log = nullptr};
  }
  absl::StatusOr<ResidentLoader> Open(const ResidentOptions& options,
                                      std::optional<Cursor> cursor = std::nullopt) {
    return ResidentLoader::Open(data_.dataset(), data_.order(), {}, options, device_.get(), cursor);
  }
  // All images as they are kept, by the Loader alone.
  std::vector<std::string> Table() const {
    PageableMemory memory;
    LoaderOptions options{.threads = 1, .epochs = 1};
    options.decode.emplace();
    options.decode->crop = {.kind = CropKind::kResize, .width = kSide, .height = kSide};
    std::vector<std::string> table(data_.dataset().size());
    Loader loader = data_.Open(memory, options);
    for (auto batch = loader.Next(); batch->has_value(); batch = loader.Next()) {
      for (size_t i = 0; i < (*batch)->size(); ++i) {
        if ((*batch)->ids()[i] == kPaddingId) continue;
        table[(*batch)->ids()[i]] =
            AsText((*batch)->pixels()->bytes.subspan(i * kImageBytes, kImageBytes));
      }
    }
    return table;
  }

  LoaderFixture data_;
  TestDevice device_{{.seed = 5, .max_delay_us = 300}};
};

TEST_F(ResidentLoaderTest, GathersTheOrderOverEpochs) {
  const std::vector<std::string> table = Table();
  auto loader = Open(Options());
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_EQ(loader->stats().image_bytes, 44 * kImageBytes);
  RecordingConsumer consumer(device_, 8 * kImageBytes, 16);
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (uint64_t step = 0; step < data_.order().steps(); ++step) {
      auto batch = loader->Next();
      ASSERT_TRUE(batch.ok() && batch->has_value()) << batch.status();
      consumer.Put(**std::move(batch));
    }
    EXPECT_FALSE(loader->Next()->has_value());
  }
  EXPECT_FALSE(loader->Next()->has_value());
  const std::vector<DeviceCopy> got = consumer.Finish();
  ASSERT_EQ(got.size(), 12u);
  size_t padding = 0;
  for (size_t n = 0; n < got.size(); ++n) {
    for (uint32_t i = 0; i < 8; ++i) {
      const uint64_t id = data_.order().IdAt(n / 6, n % 6, i);
      ASSERT_EQ(got[n].info.ids[i], id);
      const std::string pixels = got[n].pixels.substr(i * kImageBytes, kImageBytes);
      if (id == kPaddingId) {
        ++padding;
        EXPECT_EQ(got[n].info.status[i].state, SampleState::kPadding);
        EXPECT_TRUE(pixels == std::string(kImageBytes, '\0'));
        EXPECT_EQ(got[n].labels[i], kNoLabel);
      } else {
        EXPECT_TRUE(pixels == table[id]) << n << " " << i;
        EXPECT_EQ(got[n].labels[i], data_.dataset().Read(id)->label);
      }
    }
  }
  EXPECT_EQ(padding, 8u);
}

TEST_F(ResidentLoaderTest, CropsAsTheSeedSays) {
  const std::vector<std::string> table = Table();
  for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter}) {
    ResidentOptions options = Options();
    options.crop = CropOptions{
        .kind = kind, .width = 10, .height = 8, .shortest_side = 12, .flip_probability = 0.5};
    options.augment_seed = 77;
    options.output = {
        .type = PixelType::kF16, .layout = PixelLayout::kNchw, .mean = {.5f, .5f, .5f}};
    const size_t out_bytes = size_t{10} * 8 * 3 * 2;
    auto loader = Open(options);
    ASSERT_TRUE(loader.ok()) << loader.status();
    RecordingConsumer consumer(device_, 8 * out_bytes, 16);
    for (int n = 0; n < 5; ++n) consumer.Put(**loader->Next());
    const std::vector<DeviceCopy> got = consumer.Finish();
    ASSERT_EQ(got.size(), 5u);
    for (const DeviceCopy& copy : got) {
      for (uint32_t i = 0; i < 8; ++i) {
        const uint64_t id = copy.info.ids[i];
        const Crop crop = ChooseCrop(*options.crop, kSide, kSide, {77, 0, id});
        const auto* pixels = reinterpret_cast<const uint8_t*>(table[id].data());
        PreprocessSample sample{pixels, kSide, kSide, kSide * 3, crop.box, crop.flip};
        if (!crop.margin) {
          const auto left = static_cast<uint32_t>(crop.box.left);
          const auto top = static_cast<uint32_t>(crop.box.top);
          sample.width = static_cast<uint32_t>(crop.box.right) - left;
          sample.height = static_cast<uint32_t>(crop.box.bottom) - top;
          sample.pixels += (top * kSide + left) * 3;
          sample.box = {0, 0, static_cast<double>(sample.width),
                        static_cast<double>(sample.height)};
        }
        std::string wanted(out_bytes, '\0');
        ASSERT_TRUE(PreprocessOnHost({.samples = &sample,
                                      .count = 1,
                                      .channels = 3,
                                      .out_width = 10,
                                      .out_height = 8,
                                      .filter = ResizeFilter::kBilinear,
                                      .output = PixelOutput(options.output, 3),
                                      .out = wanted.data()})
                        .ok());
        ExpectCloseHalves(copy.pixels.substr(i * out_bytes, out_bytes), wanted,
                          device_.fake() != nullptr ? 0 : 0.005);
      }
    }
  }
}

// Captured once, after a launch that warms up; each launch of the graph gives the step that was
// named for it, which is what Next gives.
TEST_F(ResidentLoaderTest, AStepInAGraphIsTheNextOneEachTime) {
  for (const bool crops : {false, true}) {
    ResidentOptions options = Options();
    size_t bytes = 8 * kImageBytes;
    if (crops) {
      options.crop = CropOptions{.width = 10, .height = 8, .flip_probability = 0.5};
      options.output = {.type = PixelType::kF16, .layout = PixelLayout::kNchw};
      bytes = size_t{8} * 10 * 8 * 3 * 2;
    }
    auto batches = Open(options);
    ASSERT_TRUE(batches.ok()) << batches.status();
    RecordingConsumer consumer(device_, bytes, 16);
    for (int ends = 0; ends < 2;) {
      auto batch = batches->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      ends += batch->has_value() ? 0 : 1;
      if (batch->has_value()) consumer.Put(**std::move(batch));
    }
    const std::vector<DeviceCopy> expected = consumer.Finish();
    ASSERT_EQ(expected.size(), 12u);

    const Stream stream = device_.MakeStream();
    void* const pixels = device_.Allocate(bytes);
    auto* const labels = static_cast<int64_t*>(device_.Allocate(8 * sizeof(int64_t)));
    {
      auto loader = Open(options);
      ASSERT_TRUE(loader.ok()) << loader.status();
      const auto enqueue = [&] {
        const DeviceTarget target{.pixels = pixels, .pixel_bytes = bytes, .labels = labels};
        EXPECT_TRUE(loader->EnqueueStep(target, stream).ok());
      };
      enqueue();
      EXPECT_TRUE(device_.Read(pixels, bytes, stream) == std::string(bytes, '\0'));
      const std::function<void()> launch = device_.Capture(stream, enqueue);
      for (const DeviceCopy& wanted : expected) {
        auto info = loader->NextStep(stream);
        if (info.ok() && !info->has_value()) info = loader->NextStep(stream);
        ASSERT_TRUE(info.ok() && info->has_value()) << info.status();
        EXPECT_EQ((*info)->ids, wanted.info.ids);
        launch();
        EXPECT_TRUE(device_.Read(pixels, bytes, stream) == wanted.pixels) << (*info)->step;
        const std::string got = device_.Read(labels, 8 * sizeof(int64_t), stream);
        EXPECT_EQ(std::memcmp(got.data(), wanted.labels.data(), got.size()), 0);
      }
    }
    device_.Free(pixels);
    device_.Free(labels);
    EXPECT_TRUE(device_.get().DestroyStream(stream).ok());
  }
}

TEST_F(ResidentLoaderTest, GoesOnFromACursor) {
  Cursor cursor;
  {
    auto loader = Open(Options());
    ASSERT_TRUE(loader.ok()) << loader.status();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(loader->Next().ok());
    cursor = loader->cursor();
  }
  auto loader = Open(Options(), cursor);
  ASSERT_TRUE(loader.ok()) << loader.status();
  auto batch = loader->Next();
  ASSERT_TRUE(batch.ok() && batch->has_value());
  EXPECT_EQ((*batch)->info().step, 4u);
  cursor.order ^= 1;
  EXPECT_EQ(Open(Options(), cursor).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ResidentLoaderTest, ASteadyRunCopiesOnlyParameters) {
  FakeDevice* const fake = device_.fake();
  if (fake == nullptr) GTEST_SKIP() << "counts calls of the fake device";
  ResidentOptions options = Options();
  options.epochs = 0;
  auto loader = Open(options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const Stream stream = device_.MakeStream();
  uint64_t allocations = 0, syncs = 0, copied = 0;
  for (int step = 0; step < 120; ++step) {
    if (step == 20) {
      allocations = fake->allocations();
      syncs = fake->host_syncs();
      copied = fake->copied_bytes();
    }
    auto batch = loader->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    if (!batch->has_value()) continue;
    ASSERT_TRUE((*batch)->WaitOn(stream).ok());
    ASSERT_TRUE((*batch)->Release(stream).ok());
  }
  EXPECT_EQ(fake->allocations(), allocations);
  EXPECT_EQ(fake->host_syncs(), syncs);
  EXPECT_LE(fake->copied_bytes() - copied, 100u * (8 * 16 + sizeof(StepSource)))
      << "a label and a row a slot";

  EXPECT_TRUE(device_.get().DestroyStream(stream).ok());
}

// What a step asks of the device: its kernel, an event, and to wait for the last use of the memory;
// a copy once an epoch. Whether an event has come is asked as often as the device is late.
TEST_F(ResidentLoaderTest, AStepIsOneLaunchAndOneEvent) {
  FakeDevice* const fake = device_.fake();
  if (fake == nullptr) GTEST_SKIP() << "counts calls of the fake device";
  for (const bool crops : {false, true}) {
    ResidentOptions options = Options();
    options.epochs = 0;
    if (crops) options.crop = CropOptions{.width = 10, .height = 8};
    auto loader = Open(options);
    ASSERT_TRUE(loader.ok()) << loader.status();
    const uint64_t kernel = fake->calls(crops ? "Preprocess" : "Gather"), all = fake->launches();
    const uint64_t copies = fake->calls("CopyToDevice");
    uint64_t calls = 0, steps = 0;
    while (steps < 10 * data_.order().steps()) {
      const auto asked = [&] { return fake->calls() - fake->calls("IsDone"); };
      const uint64_t before = asked();
      auto batch = loader->Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      calls += asked() - before;
      if (!batch->has_value()) continue;
      ++steps;
      ASSERT_TRUE((*batch)->Release(nullptr).ok());
    }
    EXPECT_EQ(fake->launches() - all, steps);
    EXPECT_EQ(fake->calls(crops ? "Preprocess" : "Gather") - kernel, steps);
    EXPECT_EQ(fake->calls("CopyToDevice") - copies, 10u);
    // Three a step, two more an epoch (the copy and its event; these are made before: 2).
    EXPECT_LE(calls, 3 * steps + 2 * 10 + 2);
  }
}

// More than a window holds goes up in several.
TEST_F(ResidentLoaderTest, AnOrderOfManyWindows) {
  if (device_.fake() == nullptr) GTEST_SKIP() << "reads the fake device's memory";
  std::vector<int64_t> labels(data_.dataset().size());
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(1000 + i);
  PageableMemory memory;
  const Stream stream = device_.MakeStream();
  for (const size_t steps : {1, 2, 4, 100}) {  // in a window; an epoch has six
    auto order = ResidentOrder::Create(device_.get(), memory,
                                       {.order = data_.order(),
                                        .rank = {},
                                        .labels = labels,
                                        .window_bytes = steps * (8 * 16 + sizeof(StepSource))},
                                       stream);
    ASSERT_TRUE(order.ok()) << order.status();
    for (uint64_t n = 2; n < 20; ++n) {  // begins within an epoch
      const auto at = (*order)->At(n / 6, n % 6, stream);
      ASSERT_TRUE(at.ok()) << at.status();
      ASSERT_TRUE(device_.get().Synchronize(stream).ok());
      for (uint32_t i = 0; i < 8; ++i) {
        const uint64_t id = data_.order().IdAt(n / 6, n % 6, i);
        const int64_t label = id == kPaddingId ? kNoLabel : labels[id];
        EXPECT_EQ(at->ids[i], id);
        EXPECT_EQ(at->rows[i], id);
        EXPECT_EQ(at->labels[i], label);
        EXPECT_EQ(at->host_labels[i], label);
      }
    }
  }
  EXPECT_TRUE(device_.get().DestroyStream(stream).ok());
}

// Of a device that hangs: the thread that makes the next window has ended, as what it reads is
// gone.
TEST_F(ResidentLoaderTest, AnOrderThatIsLeftReadsNothingMore) {
  if (device_.fake() == nullptr) GTEST_SKIP() << "leaks memory of the device";
  FakeDevice fake;
  PageableMemory memory;
  const std::vector<int64_t> labels(data_.dataset().size());
  std::atomic<int> made{0};
  const auto sample = [&](uint64_t, uint64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++made;
    return PreprocessSample();
  };
  auto order = ResidentOrder::Create(
      fake, memory,
      {.order = data_.order(), .rank = {}, .labels = labels, .sample = sample, .window_bytes = 1},
      nullptr);
  ASSERT_TRUE(order.ok()) << order.status();
  made.store(0);                                  // those of padding
  ASSERT_TRUE((*order)->At(0, 0, nullptr).ok());  // and begins the next window
  ResidentOrder::Leave(*std::move(order));
  EXPECT_EQ(made.load(), 2 * 8);
}

// With more buffers than an epoch has steps, Next waits for a copy that the device has not run,
// with patience; and nothing is lost.
TEST_F(ResidentLoaderTest, ADeviceThatDoesNotRunTheOrderIsNoEndlessWait) {
  FakeDevice* const fake = device_.fake();
  if (fake == nullptr) GTEST_SKIP() << "holds the streams of the fake device";
  ResidentOptions options = Options();
  options.epochs = 0;
  options.buffers = 30;
  options.patience = std::chrono::milliseconds(100);
  auto loader = Open(options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  uint64_t steps = 0;
  const auto next = [&] {
    auto batch = loader->Next();
    if (batch.ok() && batch->has_value()) {
      EXPECT_EQ((*batch)->info().epoch * data_.order().steps() + (*batch)->info().step, steps);
      ++steps;
    }
    return batch.status();
  };
  ASSERT_TRUE(next().ok());
  ASSERT_TRUE(device_.get().Synchronize(LegacyStream()).ok());
  fake->Hold();
  absl::Status status;
  while (status.ok() && steps < 30) status = next();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  const auto interrupted = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(loader->Next(interrupted).status()));
  fake->LetGo();
  while (steps < 60) ASSERT_TRUE(next().ok());
}

TEST_F(ResidentLoaderTest, WhatDoesNotFitIsRefusedWithSizes) {
  ResidentOptions options = Options();
  options.width = options.height = 60'000;
  EXPECT_THAT(Open(options).status().ToString(),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("44 images of 10800000000 bytes"),
                    HasSubstr("use DeviceLoader")));
  options = Options();
  options.patience = std::chrono::milliseconds(60);
  auto loader = Open(options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  std::vector<DeviceBatch> kept;
  for (int i = 0; i < 4; ++i) kept.push_back(**loader->Next());
  EXPECT_THAT(loader->Next().status().ToString(),
              AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("epoch 0 step 3")));
  kept.clear();
  EXPECT_EQ((**loader->Next()).info().step, 4u);
}

TEST_F(ResidentLoaderTest, EveryCallAtEveryPosition) {
  if (device_.fake() == nullptr) GTEST_SKIP() << "needs the fake device";
  for (const int code : {kDeviceInvalidValue, kDeviceOutOfMemory, kDeviceIllegalAddress}) {
    size_t runs = 0;
    for (uint64_t n = 0, without = 0; without < 3; ++n, ++runs) {
      FakeDevice fake({.seed = n, .max_delay_us = 0});
      fake.FailCall(n, code);
      absl::Status status;
      size_t batches = 0;
      {
        ResidentOptions options = Options();
        options.epochs = 1;
        auto loader = ResidentLoader::Open(data_.dataset(), data_.order(), {}, options, fake);
        status = loader.status();
        while (status.ok()) {
          auto batch = loader->Next();
          status = batch.status();
          if (!batch.ok() || !batch->has_value()) break;
          ++batches;
          status = (*batch)->WaitOn(nullptr);
        }
      }
      without = fake.failed() ? 0 : without + 1;
      EXPECT_TRUE(!status.ok() || batches == 6u) << n;
      EXPECT_TRUE(status.ok() || fake.failed()) << status;
      EXPECT_THAT(fake.misuses(), IsEmpty());
      EXPECT_EQ(fake.frees_after_loss(), 0u);
      if (!fake.lost()) {
        EXPECT_EQ(fake.live_objects(), 0u) << code << " at " << n << ": " << fake.LiveObjects();
      }
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(runs, 50u);
  }
}

}  // namespace
}  // namespace shardpack
