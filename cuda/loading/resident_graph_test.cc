// Steps of a resident set as part of a CUDA graph: captured once, and replayed with the next step
// each time. On the fake device, whose graphs run with the arguments that they were captured with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuda/loading/resident_loader.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/loader_fixture.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kSide = 16, kBatch = 8;

struct Step {
  uint64_t epoch, step;
  std::vector<uint64_t> ids;
  std::vector<int64_t> host_labels, labels;
  std::string pixels;

  friend bool operator==(const Step&, const Step&) = default;
};

class ResidentGraphTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { stream_ = *fake_.CreateStream(); }
  void TearDown() override {
    EXPECT_TRUE(fake_.DestroyStream(stream_).ok());
    EXPECT_THAT(fake_.misuses(), IsEmpty());
    EXPECT_EQ(fake_.live_objects(), 0u) << fake_.LiveObjects();
  }
  bool crops() const { return GetParam(); }
  size_t pixel_bytes() const {
    return crops() ? kBatch * size_t{10} * 8 * 3 * 2 : kBatch * size_t{kSide} * kSide * 3;
  }
  absl::StatusOr<ResidentLoader> Open(
      std::optional<Cursor> cursor = std::nullopt, FakeDevice* fake = nullptr,
      std::chrono::milliseconds patience = ResidentOptions().patience) {
    ResidentOptions options{
        .width = kSide, .height = kSide, .epochs = 3, .patience = patience, .log = nullptr};
    if (crops()) {
      options.crop = CropOptions{.width = 10, .height = 8, .flip_probability = 0.5};
      options.output = {.type = PixelType::kF16, .layout = PixelLayout::kNchw};
    }
    return ResidentLoader::Open(data_.dataset(), data_.order(), {}, options,
                                fake == nullptr ? fake_ : *fake, cursor);
  }
  Step Read(const BatchInfo& info, const void* pixels, const void* labels) {
    EXPECT_TRUE(fake_.Synchronize(stream_).ok());
    const auto* const numbers = static_cast<const int64_t*>(labels);
    return {info.epoch,
            info.step,
            info.ids,
            info.labels,
            {numbers, numbers + kBatch},
            std::string(static_cast<const char*>(pixels), pixel_bytes())};
  }
  // What Next gives of three epochs.
  std::vector<Step> Expected() {
    std::vector<Step> steps;
    auto loader = Open();
    EXPECT_TRUE(loader.ok()) << loader.status();
    for (int ends = 0; ends < 3;) {
      auto batch = loader->Next();
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch->has_value()) {
        ++ends;
        continue;
      }
      EXPECT_TRUE((*batch)->WaitOn(stream_).ok());
      steps.push_back(Read((*batch)->info(), (*batch)->pixels()->data, (*batch)->labels()->data));
    }
    return steps;
  }

  LoaderFixture data_{"resident-graph", {.samples = 44, .batch = kBatch}};
  FakeDevice fake_{{.seed = 5, .max_delay_us = 300}};
  Stream stream_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(GatheredAndCropped, ResidentGraphTest, ::testing::Bool());

TEST_P(ResidentGraphTest, ACapturedStepIsReplayed) {
  const std::vector<Step> expected = Expected();
  auto loader = Open();
  ASSERT_TRUE(loader.ok()) << loader.status();
  void* const pixels = *fake_.Allocate(pixel_bytes(), "pixels");
  auto* const labels = static_cast<int64_t*>(*fake_.Allocate(kBatch * sizeof(int64_t), "labels"));

  FakeDevice::Graph graph;
  const uint64_t launches = fake_.launches();
  fake_.BeginCapture(stream_);
  EXPECT_TRUE(
      loader
          ->EnqueueStep({.pixels = pixels, .pixel_bytes = pixel_bytes(), .labels = labels}, stream_)
          .ok());
  // What puts the next step there is no part of the graph.
  EXPECT_TRUE(absl::IsFailedPrecondition(loader->NextStep(stream_).status()));
  ASSERT_TRUE(fake_.EndCapture(stream_, &graph)) << "something ended it before";
  EXPECT_EQ(graph.size(), 1u) << "one launch";
  EXPECT_EQ(fake_.launches(), launches);

  std::vector<Step> got;
  uint64_t copies = 0;
  for (int ends = 0; ends < 3;) {
    auto info = loader->NextStep(stream_);
    ASSERT_TRUE(info.ok()) << info.status();
    if (!info->has_value()) {
      ++ends;
      copies = ends == 1 ? fake_.calls("CopyToDevice") : copies;
      continue;
    }
    fake_.LaunchGraph(graph, stream_);
    got.push_back(Read(**info, pixels, labels));
  }
  EXPECT_FALSE(loader->NextStep(stream_)->has_value());
  ASSERT_EQ(got.size(), expected.size());
  for (size_t n = 0; n < got.size(); ++n) EXPECT_TRUE(got[n] == expected[n]) << n;
  EXPECT_EQ(fake_.calls("CopyToDevice"), copies + 2) << "an order an epoch";
  EXPECT_EQ(loader->stats().batches, expected.size());
  EXPECT_TRUE(fake_.Free(pixels).ok());
  EXPECT_TRUE(fake_.Free(labels).ok());
}

// Many are enqueued before the first has run; each has the step that was named for it.
TEST_P(ResidentGraphTest, ReplaysAreInTheOrderOfTheStream) {
  const std::vector<Step> expected = Expected();
  auto loader = Open();
  ASSERT_TRUE(loader.ok()) << loader.status();
  void* const pixels = *fake_.Allocate(pixel_bytes(), "pixels");
  void* const all = *fake_.Allocate(6 * pixel_bytes(), "all pixels");
  fake_.BeginCapture(stream_);
  ASSERT_TRUE(loader->EnqueueStep({.pixels = pixels, .pixel_bytes = pixel_bytes()}, stream_).ok());
  FakeDevice::Graph graph;
  ASSERT_TRUE(fake_.EndCapture(stream_, &graph));
  fake_.Hold();
  for (size_t n = 0; n < 6; ++n) {
    ASSERT_TRUE(loader->NextStep(stream_)->has_value());
    fake_.LaunchGraph(graph, stream_);
    ASSERT_TRUE(
        fake_
            .CopyWithin(static_cast<char*>(all) + n * pixel_bytes(), pixels, pixel_bytes(), stream_)
            .ok());
  }
  fake_.LetGo();
  ASSERT_TRUE(fake_.Synchronize(stream_).ok());
  for (size_t n = 0; n < 6; ++n) {
    EXPECT_TRUE(std::string(static_cast<const char*>(all) + n * pixel_bytes(), pixel_bytes()) ==
                expected[n].pixels)
        << n;
  }
  EXPECT_TRUE(fake_.Free(pixels).ok());
  EXPECT_TRUE(fake_.Free(all).ok());
}

// As programs warm up before they capture.
TEST_P(ResidentGraphTest, BeforeTheFirstStepThereIsPadding) {
  auto loader = Open();
  ASSERT_TRUE(loader.ok()) << loader.status();
  void* const pixels = *fake_.Allocate(pixel_bytes(), "pixels");
  auto* const labels = static_cast<int64_t*>(*fake_.Allocate(kBatch * sizeof(int64_t), "labels"));
  const DeviceTarget target{.pixels = pixels, .pixel_bytes = pixel_bytes(), .labels = labels};
  ASSERT_TRUE(loader->EnqueueStep(target, stream_).ok());
  const Step padding = Read({}, pixels, labels);
  EXPECT_TRUE(padding.pixels == std::string(pixel_bytes(), '\0'));
  EXPECT_EQ(padding.labels, std::vector<int64_t>(kBatch, kNoLabel));
  const auto info = loader->NextStep(stream_);
  ASSERT_TRUE(info.ok() && info->has_value()) << info.status();
  ASSERT_TRUE(loader->EnqueueStep(target, stream_).ok());
  EXPECT_TRUE(Read(**info, pixels, labels) == Expected()[0]);
  EXPECT_TRUE(fake_.Free(pixels).ok());
  EXPECT_TRUE(fake_.Free(labels).ok());
}

// What NextStep has enqueued runs before its memory is given back, whether or not that itself
// waits.
TEST_P(ResidentGraphTest, TheEndWaitsForTheLastStep) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    FakeDevice fake({.seed = seed, .max_delay_us = 2000, .free_waits = false});
    const Stream stream = *fake.CreateStream();
    {
      auto loader = Open(std::nullopt, &fake);
      ASSERT_TRUE(loader.ok()) << loader.status();
      ASSERT_TRUE(loader->NextStep(stream)->has_value());
    }
    ASSERT_TRUE(fake.Synchronize(stream).ok());
    EXPECT_TRUE(fake.DestroyStream(stream).ok());
    EXPECT_THAT(fake.misuses(), IsEmpty());
    EXPECT_EQ(fake.live_objects(), 0u) << fake.LiveObjects();
  }
}

TEST_P(ResidentGraphTest, AStreamThatDoesNotGoOnIsNoEndlessEnd) {
  FakeDevice fake({.free_waits = false});
  const Stream stream = *fake.CreateStream();
  {
    auto loader = Open(std::nullopt, &fake, std::chrono::milliseconds(50));
    ASSERT_TRUE(loader.ok()) << loader.status();
    fake.Hold();
    ASSERT_TRUE(loader->NextStep(stream)->has_value());
  }
  EXPECT_GT(fake.live_objects(), 1u) << "what the device may still use is left";
  fake.LetGo();
  ASSERT_TRUE(fake.Synchronize(stream).ok());
  EXPECT_TRUE(fake.DestroyStream(stream).ok());
  EXPECT_THAT(fake.misuses(), IsEmpty());
}

TEST_P(ResidentGraphTest, GoesOnFromItsCursor) {
  Cursor cursor;
  {
    auto loader = Open();
    ASSERT_TRUE(loader.ok()) << loader.status();
    for (int n = 0; n < 9; ++n) ASSERT_TRUE(loader->NextStep(stream_).ok());  // one is an end
    cursor = loader->cursor();
    ASSERT_TRUE(fake_.Synchronize(stream_).ok());
  }
  auto loader = Open(cursor);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const auto info = loader->NextStep(stream_);
  ASSERT_TRUE(info.ok() && info->has_value()) << info.status();
  EXPECT_EQ((*info)->epoch, 1u);
  EXPECT_EQ((*info)->step, 2u);
  ASSERT_TRUE(fake_.Synchronize(stream_).ok());
}

TEST_P(ResidentGraphTest, WhatCannotBe) {
  auto loader = Open();
  ASSERT_TRUE(loader.ok()) << loader.status();
  char pixels = 0;
  const absl::Status small = loader->EnqueueStep({.pixels = &pixels, .pixel_bytes = 1}, stream_);
  EXPECT_TRUE(absl::IsInvalidArgument(small)) << small;
  EXPECT_THAT(std::string(small.message()), HasSubstr("the target has 1 bytes"));
  ASSERT_TRUE(loader->NextStep(stream_)->has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(loader->Next().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(loader->NextStep(nullptr).status()));
  EXPECT_EQ((*loader->NextStep(stream_))->step, 1u);
  ASSERT_TRUE(fake_.Synchronize(stream_).ok());

  auto batches = Open();
  ASSERT_TRUE(batches.ok()) << batches.status();
  ASSERT_TRUE(batches->Next().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(batches->NextStep(stream_).status()));
}

}  // namespace
}  // namespace shardpack
