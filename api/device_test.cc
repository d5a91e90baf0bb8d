// Loaders on a device through the C interface: how they are opened, and what they give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "api/device_test_fixture.h"
#include "api/shardpack.h"
#include "api/shardpack.hpp"
#include "cuda/loading/dlpack_export.h"

namespace shardpack {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST(DeviceNames, AreOpenedOrRefusedWithAReason) {
  shardpack_device* device = nullptr;
  Said said;
  ASSERT_EQ(shardpack_device_open("cpu", &device, said.into()), SHARDPACK_OK) << said.text();
  shardpack_device_info info = {};
  info.size = sizeof info;
  ASSERT_EQ(shardpack_device_info_of(device, &info, said.into()), SHARDPACK_OK) << said.text();
  EXPECT_EQ(info.kind, static_cast<uint32_t>(SHARDPACK_HOST));
  EXPECT_EQ(info.number, -1);
  EXPECT_EQ(info.why_not.size, 0u);
  shardpack_device_release(shardpack_device_retain(device));
  shardpack_device_release(device);
  EXPECT_EQ(shardpack_device_open("gpu", &device, said.into()), SHARDPACK_INVALID);
  EXPECT_EQ(device, nullptr);
  EXPECT_EQ(shardpack_device_open("\x1b[2J", &device, said.into()), SHARDPACK_INVALID);
  EXPECT_THAT(said.text(), HasSubstr("not \"\\x1b[2J\""));
  EXPECT_EQ(shardpack_device_open(nullptr, &device, said.into()), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_device_info_of(nullptr, &info, said.into()), SHARDPACK_INVALID);

  ASSERT_EQ(shardpack_device_open("auto", &device, said.into()), SHARDPACK_OK) << said.text();
  ASSERT_EQ(shardpack_device_info_of(device, &info, said.into()), SHARDPACK_OK) << said.text();
  EXPECT_EQ(info.kind == SHARDPACK_HOST, info.why_not.size > 0);
  const bool has_gpu = info.kind == SHARDPACK_CUDA;
  shardpack_device_release(device);
  const shardpack_code code = shardpack_device_open("cuda:0", &device, said.into());
  if (has_gpu) {
    EXPECT_EQ(code, SHARDPACK_OK) << said.text();
    shardpack_device_release(device);
  } else {
    EXPECT_THAT(code, AnyOf(SHARDPACK_UNAVAILABLE, SHARDPACK_UNSUPPORTED));
    EXPECT_NE(said.text(), "");
  }
}

TEST_F(DeviceTest, ADevicesLoaderGivesWhatTheHostsGives) {
  shardpack_loader* const host = OpenHost(nullptr);
  shardpack_loader* const loader = OpenOnDevice();
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<Copy> expected;
    shardpack_batch* batch = nullptr;
    while (shardpack_loader_next(host, -1, &batch, said_.into()) == SHARDPACK_OK) {
      shardpack_batch_view view = {};
      view.size = sizeof view;
      shardpack_batch_view_of(batch, &view, nullptr);
      expected.push_back({view.epoch,
                          view.step,
                          {view.ids, view.ids + view.slots},
                          {view.labels, view.labels + view.slots},
                          std::string(static_cast<char*>(view.pixels), view.pixel_bytes),
                          ""});
      shardpack_batch_release(batch);
    }
    ASSERT_EQ(expected.size(), kSteps);
    ExpectSame(Epoch(loader), expected);
  }
  uint64_t epoch = 0, step = 9;
  EXPECT_EQ(shardpack_loader_position(loader, &epoch, &step, said_.into()), SHARDPACK_OK);
  EXPECT_EQ(epoch, 2u);
  EXPECT_EQ(step, 0u);
  char* stats = nullptr;
  ASSERT_EQ(shardpack_loader_stats_json(loader, &stats, said_.into()), SHARDPACK_OK)
      << said_.text();
  EXPECT_THAT(stats, HasSubstr(R"("batches":10)"));
  shardpack_text_free(stats);
  EXPECT_EQ(shardpack_loader_seek(loader, 0, 0, said_.into()), SHARDPACK_UNSUPPORTED);
  shardpack_loader_release(loader);
  shardpack_loader_release(host);
}

TEST_F(DeviceTest, PreprocessingIsOnTheDevice) {
  shardpack_device_options how = {};
  how.size = sizeof how;
  how.preprocess = 1;
  how.type = SHARDPACK_F16;
  how.layout = SHARDPACK_NCHW;
  how.width = how.height = 8;
  how.no_labels = 1;
  shardpack_loader* const loader = OpenOnDevice(&how);
  shardpack_batch* batch = nullptr;
  ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  shardpack_batch_view view = {};
  view.size = sizeof view;
  ASSERT_EQ(shardpack_batch_view_of(batch, &view, said_.into()), SHARDPACK_OK);
  EXPECT_EQ(view.width, 8u);
  EXPECT_EQ(view.height, 8u);
  EXPECT_EQ(view.channels, 3u);
  EXPECT_EQ(view.type, static_cast<uint32_t>(SHARDPACK_F16));
  EXPECT_EQ(view.layout, static_cast<uint32_t>(SHARDPACK_NCHW));
  EXPECT_EQ(view.pixel_bytes, kBatch * 3 * 8 * 8 * 2u);
  EXPECT_EQ(view.device_labels, nullptr);
  void* managed = nullptr;
  EXPECT_EQ(shardpack_batch_dlpack(batch, SHARDPACK_LABELS, 1, &managed, said_.into()),
            SHARDPACK_NOT_FOUND);
  EXPECT_EQ(shardpack_batch_dlpack(batch, SHARDPACK_PIXELS, 1, &managed, said_.into()),
            SHARDPACK_OK)
      << said_.text();
  shardpack_batch_release(batch);
  shardpack_loader_release(loader);
  auto* const tensor = static_cast<DlpackManagedTensorVersioned*>(managed);
  EXPECT_EQ(tensor->tensor.shape[1], 3);
  tensor->deleter(tensor);
}

// Steps of a resident set within a graph that was captured once.
class StepsTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    how_.size = sizeof how_;
    how_.width = kWidth;
    how_.height = kHeight;
    how_.epochs = 2;
    how_.type = SHARDPACK_U8;
    target_.size = sizeof target_;
    target_.pixels = *fake_.Allocate(kPixelBytes, "pixels");
    target_.pixel_bytes = kPixelBytes;
    target_.labels = static_cast<int64_t*>(*fake_.Allocate(kLabelBytes, "labels"));
    target_.label_bytes = kLabelBytes;
  }
  void TearDown() override {
    EXPECT_TRUE(fake_.Free(target_.pixels).ok());
    EXPECT_TRUE(fake_.Free(target_.labels).ok());
    DeviceTest::TearDown();
  }
  shardpack_loader* Open() {
    shardpack_loader* const loader = OpenResident(how_);
    EXPECT_EQ(shardpack_loader_opened(loader, -1, said_.into()), SHARDPACK_OK) << said_.text();
    return loader;
  }
  // As often as a wait of nothing is too short.
  shardpack_code NextStep(shardpack_loader* loader, shardpack_batch** batch) {
    shardpack_code code = SHARDPACK_WAIT;
    while (code == SHARDPACK_WAIT)
      code = shardpack_loader_next_step(loader, 0, stream_, batch, said_.into());
    return code;
  }
  // What is in the target now, with the facts of the batch, which is released.
  Copy InTarget(shardpack_batch* batch) {
    EXPECT_TRUE(fake_.Synchronize(stream_).ok());
    shardpack_batch_view view = {};
    view.size = sizeof view;
    EXPECT_EQ(shardpack_batch_view_of(batch, &view, said_.into()), SHARDPACK_OK) << said_.text();
    EXPECT_EQ(view.pixels, nullptr);
    EXPECT_EQ(shardpack_batch_wait_on(batch, stream_, said_.into()), SHARDPACK_STATE);
    Copy copy{view.epoch,
              view.step,
              {view.ids, view.ids + view.slots},
              {view.labels, view.labels + view.slots},
              std::string(static_cast<char*>(target_.pixels), kPixelBytes),
              std::string(reinterpret_cast<char*>(target_.labels), kLabelBytes)};
    shardpack_batch_release(batch);
    return copy;
  }

  static constexpr size_t kLabelBytes = kBatch * sizeof(int64_t);
  shardpack_resident_options how_ = {};
  shardpack_target target_ = {};
};

TEST_F(StepsTest, AGraphThatWasCapturedOnceGivesAllSteps) {
  shardpack_loader* const plain = Open();
  const std::vector<Copy> expected[] = {Epoch(plain), Epoch(plain)};
  shardpack_loader_release(plain);

  shardpack_loader* loader = Open();
  shardpack_batch* batch = nullptr;
  FakeDevice::Graph graph;
  fake_.BeginCapture(stream_);
  EXPECT_EQ(shardpack_loader_enqueue_step(loader, &target_, stream_, said_.into()), SHARDPACK_OK)
      << said_.text();
  // What names a step is no part of the graph.
  EXPECT_EQ(NextStep(loader, &batch), SHARDPACK_STATE);
  ASSERT_TRUE(fake_.EndCapture(stream_, &graph)) << "something ended it before";
  EXPECT_EQ(graph.size(), 1u) << "one launch";

  char* cursor = nullptr;
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<Copy> got;
    while (got.size() < kSteps) {
      uint64_t at_epoch = 9, at_step = 9;
      EXPECT_EQ(shardpack_loader_position(loader, &at_epoch, &at_step, said_.into()), SHARDPACK_OK);
      EXPECT_EQ(at_epoch, epoch);
      EXPECT_EQ(at_step, got.size());
      ASSERT_EQ(NextStep(loader, &batch), SHARDPACK_OK) << said_.text();
      fake_.LaunchGraph(graph, stream_);
      got.push_back(InTarget(batch));
      if (cursor == nullptr) {
        EXPECT_EQ(shardpack_loader_cursor(loader, &cursor, said_.into()), SHARDPACK_OK);
      }
    }
    ExpectSame(got, expected[epoch]);
    EXPECT_EQ(NextStep(loader, &batch), SHARDPACK_END);
    EXPECT_EQ(batch, nullptr);
  }
  EXPECT_EQ(NextStep(loader, nullptr), SHARDPACK_END);
  shardpack_loader_release(loader);

  how_.cursor = cursor;
  loader = Open();
  ASSERT_EQ(NextStep(loader, &batch), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(shardpack_loader_enqueue_step(loader, &target_, stream_, said_.into()), SHARDPACK_OK);
  ExpectSame({InTarget(batch)}, {expected[0][1]});
  shardpack_loader_release(loader);
  shardpack_text_free(cursor);
}

TEST_F(StepsTest, StepsAndBatchesAreNotMixed) {
  shardpack_loader* loader = Open();
  shardpack_batch* batch = nullptr;
  ASSERT_EQ(NextStep(loader, nullptr), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_STATE);
  EXPECT_EQ(shardpack_loader_next_into(loader, -1, &target_, stream_, &batch, said_.into()),
            SHARDPACK_STATE);
  // Another stream would have its launches at another time.
  EXPECT_EQ(shardpack_loader_next_step(loader, -1, nullptr, &batch, said_.into()),
            SHARDPACK_INVALID);
  ASSERT_EQ(NextStep(loader, &batch), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(shardpack_loader_enqueue_step(loader, &target_, stream_, said_.into()), SHARDPACK_OK);
  EXPECT_EQ(InTarget(batch).step, 1u);
  shardpack_loader_stop(loader);
  EXPECT_EQ(NextStep(loader, &batch), SHARDPACK_CANCELLED);
  shardpack_loader_release(loader);

  loader = Open();
  ASSERT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  shardpack_batch_release(batch);
  EXPECT_EQ(NextStep(loader, &batch), SHARDPACK_STATE);
  shardpack_loader_release(loader);
}

TEST_F(StepsTest, WhatCannotBe) {
  fake_.Hold();
  shardpack_loader* loader = OpenResident(how_);
  EXPECT_EQ(shardpack_loader_enqueue_step(loader, &target_, stream_, said_.into()),
            SHARDPACK_STATE);
  EXPECT_THAT(said_.text(), HasSubstr("still being opened"));
  EXPECT_EQ(shardpack_loader_next_step(loader, 0, stream_, nullptr, said_.into()), SHARDPACK_WAIT);
  fake_.LetGo();
  ASSERT_EQ(shardpack_loader_opened(loader, -1, said_.into()), SHARDPACK_OK) << said_.text();
  void* const host = reinterpret_cast<void*>(intptr_t{-1});
  EXPECT_EQ(shardpack_loader_enqueue_step(loader, &target_, host, said_.into()), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_loader_next_step(loader, -1, host, nullptr, said_.into()), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_loader_next_step(loader, -2, stream_, nullptr, said_.into()),
            SHARDPACK_INVALID);
  const struct {
    void* pixels;
    uint64_t pixel_bytes;
    int64_t* labels;
    uint64_t label_bytes;
    const char* why;
  } kWrong[] = {{target_.pixels, kPixelBytes - 1, nullptr, 0, "a batch"},
                {nullptr, kPixelBytes, nullptr, 0, "no pixels"},
                {target_.pixels, kPixelBytes, target_.labels, 8, "those of a batch 64"},
                {target_.pixels, kPixelBytes, nullptr, kLabelBytes, "but no labels"}};
  for (const auto& wrong : kWrong) {
    const shardpack_target target = {sizeof target, wrong.pixels, wrong.pixel_bytes, wrong.labels,
                                     wrong.label_bytes};
    EXPECT_EQ(shardpack_loader_enqueue_step(loader, &target, stream_, said_.into()),
              SHARDPACK_INVALID);
    EXPECT_THAT(said_.text(), HasSubstr(wrong.why));
  }
  shardpack_loader_release(loader);

  for (shardpack_loader* const other : {OpenHost(nullptr), OpenOnDevice()}) {
    ASSERT_EQ(shardpack_loader_opened(other, -1, said_.into()), SHARDPACK_OK) << said_.text();
    EXPECT_EQ(shardpack_loader_enqueue_step(other, &target_, stream_, said_.into()),
              SHARDPACK_UNSUPPORTED);
    EXPECT_EQ(shardpack_loader_next_step(other, -1, stream_, nullptr, said_.into()),
              SHARDPACK_UNSUPPORTED);
    EXPECT_THAT(said_.text(), HasSubstr("only a resident loader has steps"));
    shardpack_loader_release(other);
  }
}

TEST_F(DeviceTest, AResidentDatasetIsGathered) {
  shardpack_resident_options how = {};
  how.size = sizeof how;
  how.width = kWidth;
  how.height = kHeight;
  how.epochs = 1;
  how.type = SHARDPACK_U8;
  shardpack_loader* loader = OpenResident(how);
  EXPECT_EQ(shardpack_loader_opened(loader, -1, said_.into()), SHARDPACK_OK) << said_.text();
  const std::vector<Copy> got = Epoch(loader);
  ASSERT_EQ(got.size(), kSteps);
  std::vector<uint64_t> ids(kBatch);
  for (uint64_t step = 0; step < kSteps; ++step) {
    shardpack_order_ids(order_, 0, step, 0, ids.data(), kBatch, nullptr);
    EXPECT_EQ(got[step].ids, ids);
    EXPECT_EQ(got[step].pixels.size(), kPixelBytes);
  }
  shardpack_batch* batch = nullptr;
  EXPECT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_END);
  char* cursor = nullptr;
  ASSERT_EQ(shardpack_loader_cursor(loader, &cursor, said_.into()), SHARDPACK_OK);
  shardpack_loader_release(loader);

  // All buffers are held; then a stop.
  how.epochs = 0;
  how.buffers = 2;
  how.cursor = cursor;
  loader = OpenResident(how);
  shardpack_text_free(cursor);
  shardpack_batch *first = nullptr, *second = nullptr;
  ASSERT_EQ(shardpack_loader_next(loader, -1, &first, said_.into()), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(CopyOf(first).epoch, 1u);
  ASSERT_EQ(shardpack_loader_next(loader, -1, &second, said_.into()), SHARDPACK_OK) << said_.text();
  EXPECT_EQ(shardpack_loader_next(loader, 0, &batch, said_.into()), SHARDPACK_WAIT);
  shardpack_loader_stop(loader);
  EXPECT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_CANCELLED);
  shardpack_batch_release(first);
  shardpack_batch_release(second);
  shardpack_loader_release(loader);
}

// They would be ignored.
TEST_F(DeviceTest, OptionsWithoutEffectAreRefused) {
  const auto on_device = [&](auto set) {
    shardpack_device_options how = {};
    how.size = sizeof how;
    set(how);
    shardpack_loader* const host = OpenHost(device_);
    shardpack_loader* loader = nullptr;
    EXPECT_EQ(shardpack_loader_to_device(host, device_, &how, &loader, said_.into()),
              SHARDPACK_INVALID);
    shardpack_loader_release(loader);
    shardpack_loader_release(host);
    return said_.text();
  };
  using DeviceOptions = shardpack_device_options;
  const auto needs_preprocess = HasSubstr("filter, mean and std need preprocess");
  EXPECT_THAT(on_device([](DeviceOptions& how) { how.type = SHARDPACK_F32; }), needs_preprocess);
  EXPECT_THAT(on_device([](DeviceOptions& how) { how.layout = SHARDPACK_NCHW; }), needs_preprocess);
  EXPECT_THAT(on_device([](DeviceOptions& how) { how.width = 8; }), needs_preprocess);
  EXPECT_THAT(on_device([](DeviceOptions& how) { how.height = 8; }), needs_preprocess);
  EXPECT_THAT(on_device([](DeviceOptions& how) { how.filter = SHARDPACK_BOX; }), needs_preprocess);
  EXPECT_THAT(on_device([](DeviceOptions& how) { how.mean[2] = 0.5; }), needs_preprocess);
  EXPECT_THAT(on_device([](DeviceOptions& how) { how.std[0] = 0.5; }), needs_preprocess);
  EXPECT_THAT(on_device([](DeviceOptions& how) { how.augment_on_device_only = 1; }),
              HasSubstr("need decode"));
  shardpack_decode decode = decode_;
  const auto decoding = [&](auto set) {
    decode = decode_;
    return on_device([&](DeviceOptions& how) {
      how.decode = &decode;
      set(how);
    });
  };
  options_.decode = nullptr;
  EXPECT_THAT(decoding([](DeviceOptions& how) { how.filter = SHARDPACK_BOX; }),
              HasSubstr("give filter in the decode"));
  EXPECT_THAT(decoding([&](DeviceOptions&) { decode.mean[0] = 0.5; }), HasSubstr("give type"));
  EXPECT_THAT(decoding([&](DeviceOptions&) { decode.fast = 1; }), HasSubstr("fast applies only"));

  const auto resident = [&](auto set) {
    decode = decode_;
    shardpack_resident_options how = {};
    how.size = sizeof how;
    how.width = kWidth;
    how.height = kHeight;
    how.crop = &decode;
    set(how);
    shardpack_loader* loader = nullptr;
    const shardpack_code code =
        shardpack_resident_open(dataset_, order_, device_, &how, &loader, said_.into());
    shardpack_loader_release(loader);
    return code == SHARDPACK_INVALID ? said_.text() : shardpack_code_name(code);
  };
  using ResidentOptions = shardpack_resident_options;
  const auto alone = [&](auto set) { return resident([&](ResidentOptions&) { set(); }); };
  EXPECT_THAT(alone([&] { decode.type = SHARDPACK_F32; }), HasSubstr("give type"));
  EXPECT_THAT(alone([&] { decode.layout = SHARDPACK_NCHW; }), HasSubstr("give type"));
  EXPECT_THAT(alone([&] { decode.std[1] = 2; }), HasSubstr("give type"));
  EXPECT_THAT(alone([&] { decode.fast = 1; }), HasSubstr("fast applies only"));
  EXPECT_THAT(alone([&] { decode.channels = 1; }), HasSubstr("other channels"));
  EXPECT_THAT(alone([&] { decode.filter = SHARDPACK_BOX; }), HasSubstr("another filter"));
  EXPECT_THAT(alone([&] { decode.ignore_orientation = 1; }), HasSubstr("ignore_orientation"));
  EXPECT_THAT(alone([&] { decode.max_pixels = 1000; }), HasSubstr("max_pixels"));
  EXPECT_THAT(alone([&] { decode.max_scans = 3; }), HasSubstr("max_scans"));
  EXPECT_THAT(resident([](ResidentOptions& how) { how.threads = -5; }),
              HasSubstr("threads must be 0 or more"));
  EXPECT_THAT(resident([](ResidentOptions& how) { how.threads = 4097; }),
              HasSubstr("threads must be 4096 or less"));
  EXPECT_EQ(resident([&](ResidentOptions& how) {
              how.channels = decode.channels = 1;
              how.filter = decode.filter = SHARDPACK_BOX;
            }),
            "OK");
}

TEST_F(DeviceTest, WhatCannotBeOpenedIsSaidByTheFirstWait) {
  shardpack_resident_options how = {};
  how.size = sizeof how;
  shardpack_loader* loader = OpenResident(how);
  EXPECT_EQ(shardpack_loader_opened(loader, -1, said_.into()), SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), HasSubstr("need a width and a height"));
  shardpack_batch* batch = nullptr;
  EXPECT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_INVALID);
  shardpack_loader_release(loader);

  fake_.FailEntry("Allocate", kDeviceOutOfMemory);
  loader = OpenOnDevice();
  EXPECT_EQ(shardpack_loader_next(loader, -1, &batch, said_.into()), SHARDPACK_NO_MEMORY);
  EXPECT_EQ(shardpack_loader_opened(loader, 0, said_.into()), SHARDPACK_NO_MEMORY);
  shardpack_loader_release(loader);
}

TEST_F(DeviceTest, AHandOverIsOnceAndToItsOwnDevice) {
  shardpack_loader* host = OpenHost(nullptr);
  shardpack_loader *loader = nullptr, *again = nullptr;
  EXPECT_EQ(shardpack_loader_to_device(host, device_, nullptr, &loader, said_.into()),
            SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), HasSubstr("not page-locked"));
  shardpack_batch* batch = nullptr;
  EXPECT_EQ(shardpack_loader_next(host, -1, &batch, said_.into()), SHARDPACK_OK);  // still its own
  shardpack_batch_release(batch);
  shardpack_loader_release(host);

  host = OpenHost(device_);
  ASSERT_EQ(shardpack_loader_to_device(host, device_, nullptr, &loader, said_.into()),
            SHARDPACK_OK);
  EXPECT_EQ(shardpack_loader_next(host, -1, &batch, said_.into()), SHARDPACK_STATE);
  EXPECT_EQ(shardpack_loader_to_device(host, device_, nullptr, &again, said_.into()),
            SHARDPACK_STATE);
  EXPECT_EQ(shardpack_loader_to_device(loader, device_, nullptr, &again, said_.into()),
            SHARDPACK_UNSUPPORTED);
  EXPECT_EQ(shardpack_loader_to_device(nullptr, device_, nullptr, &again, said_.into()),
            SHARDPACK_INVALID);
  EXPECT_EQ(Epoch(loader).size(), kSteps);
  shardpack_loader_release(host);
  shardpack_loader_release(loader);
}

// Any thread may ask a loader about itself; one of several hand-overs succeeds.
TEST_F(DeviceTest, AHandOverUnderOtherThreads) {
  for (int round = 0; round < 20; ++round) {
    shardpack_loader* const host = OpenHost(device_);
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        while (!done.load()) {
          char* text = nullptr;
          uint64_t epoch = 0, step = 0;
          EXPECT_THAT(shardpack_loader_stats_json(host, &text, nullptr),
                      AnyOf(SHARDPACK_OK, SHARDPACK_STATE));
          shardpack_text_free(text);
          EXPECT_THAT(shardpack_loader_position(host, &epoch, &step, nullptr),
                      AnyOf(SHARDPACK_OK, SHARDPACK_STATE));
          EXPECT_THAT(shardpack_loader_take_bad_samples_json(host, &text, nullptr),
                      AnyOf(SHARDPACK_OK, SHARDPACK_STATE));
          shardpack_text_free(text);
        }
      });
    }
    shardpack_loader* made[2] = {nullptr, nullptr};
    shardpack_code codes[2];
    std::thread other(
        [&] { codes[0] = shardpack_loader_to_device(host, device_, nullptr, &made[0], nullptr); });
    codes[1] = shardpack_loader_to_device(host, device_, nullptr, &made[1], nullptr);
    other.join();
    done.store(true);
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT((std::vector<shardpack_code>{codes[0], codes[1]}),
                UnorderedElementsAre(SHARDPACK_OK, SHARDPACK_STATE));
    shardpack_loader_release(host);
    shardpack_loader_release(made[0]);
    shardpack_loader_release(made[1]);
  }
}

// Refused before the hand-over, so the loader is still the caller's.
TEST_F(DeviceTest, OptionsThatNoDeviceCanDoAreRefusedAtOnce) {
  shardpack_loader* const host = OpenHost(device_);
  shardpack_loader* loader = nullptr;
  const auto code_with = [&](const shardpack_device_options& how) {
    return shardpack_loader_to_device(host, device_, &how, &loader, said_.into());
  };
  shardpack_device_options how = {};
  how.size = sizeof how;
  how.preprocess = 1;
  how.width = 1u << 31;
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  how.width = 0;
  how.mean[1] = NAN;
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  how.mean[1] = 0;
  how.decode_by = SHARDPACK_DECODE_BY_AUTO;
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), HasSubstr("need decode"));
  how.decode_by = 0;
  how.augment = "invert";
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), HasSubstr("need decode"));
  shardpack_decode decode = decode_;
  how.decode = &decode;
  how.decode_by = 4;
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), HasSubstr("decode_by is 4"));
  how.decode_by = 0;
  how.share_decoding = 2;
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  how.share_decoding = 0;
  for (const char* const wrong : {"inverted", "own(mine)"}) {
    how.augment = wrong;
    EXPECT_EQ(code_with(how), SHARDPACK_INVALID) << wrong;
  }
  how.augment = nullptr;
  how.decode_regions = 2;
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  how.decode_regions = 0;
  decode.channels = 2;
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  EXPECT_THAT(said_.text(), HasSubstr("channels"));
  decode.channels = 0;
  decode.width = 1u << 31;
  EXPECT_EQ(code_with(how), SHARDPACK_INVALID);
  shardpack_batch* batch = nullptr;
  EXPECT_EQ(shardpack_loader_next(host, -1, &batch, said_.into()), SHARDPACK_OK) << said_.text();
  shardpack_batch_release(batch);
  shardpack_loader_release(host);
}

// The same on the CPU, through the wrapper.
TEST(DeviceWrapper, MakesBatchesInHostMemory) {
  const LoaderFixture data(TestName(), {.samples = kBatch * kSteps, .batch = kBatch});
  const shardpack_api::Device cpu("cpu");
  EXPECT_EQ(cpu.info().number, -1);
  shardpack_api::Dataset dataset(data.folder());
  const shardpack_api::OrderOptions order{.global_batch = kBatch, .seed = 1};
  shardpack_api::Loader host(
      dataset, order, {.decode = {.width = kWidth, .height = kHeight}, .epochs = 1, .device = cpu});
  shardpack_api::Loader loader =
      host.to_device(cpu, {.preprocess = true, .type = shardpack_api::Type::kF32});
  size_t batches = 0;
  for (const shardpack_api::Batch& batch : loader.epoch()) {
    EXPECT_EQ(batch.pixels<float>().size(), kPixelBytes);
    EXPECT_EQ(batch.view().device_kind, static_cast<uint32_t>(SHARDPACK_HOST));
    ++batches;
  }
  EXPECT_EQ(batches, kSteps);
  shardpack_api::Loader resident =
      shardpack_api::Loader::Resident(dataset, shardpack_api::Order(dataset, order), cpu,
                                      {.width = kWidth, .height = kHeight, .epochs = 1});
  while (!resident.opened(std::chrono::milliseconds(10))) {
  }
  std::vector<std::uint8_t> pixels(kPixelBytes);
  shardpack_target target = {sizeof target, pixels.data(), pixels.size(), nullptr, 0};
  EXPECT_EQ(resident.next_step(nullptr)->slots(), kBatch);
  resident.enqueue_step(target, nullptr);
  EXPECT_NE(pixels, std::vector<std::uint8_t>(kPixelBytes));
  try {
    host.next();
    FAIL() << "it was handed over";
  } catch (const shardpack_api::Error& error) {
    EXPECT_EQ(error.code(), shardpack_api::Code::kState);
  }
}

}  // namespace
}  // namespace shardpack
