// DeviceTest: loaders on a device through the C interface, on the fake device, whose streams are
// threads.
#ifndef SHARDPACK_API_DEVICE_TEST_FIXTURE_H_
#define SHARDPACK_API_DEVICE_TEST_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "api/handles.h"
#include "api/shardpack.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/loader_fixture.h"

namespace shardpack {

inline constexpr uint32_t kBatch = 8, kSteps = 5, kWidth = 20, kHeight = 16;
inline constexpr size_t kPixelBytes = size_t{kBatch} * kWidth * kHeight * 3;

inline std::string TestName() {
  return ::testing::UnitTest::GetInstance()->current_test_info()->name();
}

// The message of the last call, whose error this takes.
struct Said {
  shardpack_error* error = nullptr;
  ~Said() { shardpack_error_free(error); }
  shardpack_error** into() {
    shardpack_error_free(error);
    error = nullptr;
    return &error;
  }
  std::string text() const { return shardpack_error_message(error); }
};

struct Copy {
  uint64_t epoch, step;
  std::vector<uint64_t> ids;
  std::vector<int64_t> labels;
  std::string pixels, device_labels;
};

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    stream_ = *fake_.CreateStream();
    decode_.size = sizeof decode_;
    decode_.width = kWidth;
    decode_.height = kHeight;
    decode_.flip_probability = 0.5;
    options_.size = sizeof options_;
    options_.decode = &decode_;
    options_.epochs = 2;
    options_.augment_seed = 3;
  }
  void TearDown() override {
    EXPECT_TRUE(fake_.lost() || fake_.DestroyStream(stream_).ok());
    EXPECT_THAT(fake_.misuses(), ::testing::IsEmpty());
    shardpack_dataset_release(dataset_);
    shardpack_order_release(order_);
    shardpack_device_release(device_);
  }

  shardpack_loader* OpenHost(shardpack_device* device) {
    options_.device = device;
    shardpack_loader* loader = nullptr;
    EXPECT_EQ(shardpack_loader_open(dataset_, order_, &options_, &loader, said_.into()),
              SHARDPACK_OK)
        << said_.text();
    return loader;
  }
  shardpack_loader* OpenOnDevice(const shardpack_device_options* how = nullptr) {
    shardpack_loader* const host = OpenHost(device_);
    shardpack_loader* loader = nullptr;
    EXPECT_EQ(shardpack_loader_to_device(host, device_, how, &loader, said_.into()), SHARDPACK_OK)
        << said_.text();
    shardpack_loader_release(host);
    return loader;
  }
  shardpack_loader* OpenResident(const shardpack_resident_options& how) {
    shardpack_loader* loader = nullptr;
    EXPECT_EQ(shardpack_resident_open(dataset_, order_, device_, &how, &loader, said_.into()),
              SHARDPACK_OK)
        << said_.text();
    return loader;
  }

  // Waits for the device as its consumer does.
  Copy CopyOf(shardpack_batch* batch) {
    shardpack_batch_view view = {};
    view.size = sizeof view;
    EXPECT_EQ(shardpack_batch_wait_on(batch, stream_, said_.into()), SHARDPACK_OK) << said_.text();
    EXPECT_TRUE(fake_.Synchronize(stream_).ok());
    EXPECT_EQ(shardpack_batch_view_of(batch, &view, nullptr), SHARDPACK_OK);
    Copy copy{view.epoch,
              view.step,
              {view.ids, view.ids + view.slots},
              {view.labels, view.labels + view.slots},
              "",
              ""};
    if (view.pixels != nullptr)
      copy.pixels.assign(static_cast<char*>(view.pixels), view.pixel_bytes);
    if (view.device_labels != nullptr) {
      copy.device_labels.assign(reinterpret_cast<char*>(view.device_labels),
                                view.slots * sizeof(int64_t));
    }
    return copy;
  }
  // All batches of an epoch, then its end.
  std::vector<Copy> Epoch(shardpack_loader* loader) {
    std::vector<Copy> copies;
    shardpack_batch* batch = nullptr;
    shardpack_code code;
    while ((code = shardpack_loader_next(loader, -1, &batch, said_.into())) == SHARDPACK_OK) {
      copies.push_back(CopyOf(batch));
      shardpack_batch_release(batch);
    }
    EXPECT_EQ(code, SHARDPACK_END) << said_.text();
    return copies;
  }
  void ExpectSame(const std::vector<Copy>& got, const std::vector<Copy>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t n = 0; n < got.size(); ++n) {
      EXPECT_EQ(got[n].epoch, expected[n].epoch);
      EXPECT_EQ(got[n].step, expected[n].step);
      EXPECT_EQ(got[n].ids, expected[n].ids);
      EXPECT_EQ(got[n].labels, expected[n].labels);
      EXPECT_TRUE(got[n].pixels == expected[n].pixels) << n;
      EXPECT_EQ(got[n].device_labels,
                std::string(reinterpret_cast<const char*>(expected[n].labels.data()),
                            expected[n].labels.size() * sizeof(int64_t)));
    }
  }

  FakeDevice fake_{{.seed = 3, .max_delay_us = 400}};
  LoaderFixture data_{TestName(), {.samples = kBatch * kSteps, .batch = kBatch}};
  shardpack_dataset* dataset_ = new shardpack_dataset(data_.dataset());
  shardpack_order* order_ = new shardpack_order(data_.order());
  shardpack_device* device_ = new shardpack_device(OpenedDevice{&fake_, ""});
  shardpack_decode decode_ = {};
  shardpack_loader_options options_ = {};
  Stream stream_ = nullptr;
  Said said_;
};

}  // namespace shardpack

#endif  // SHARDPACK_API_DEVICE_TEST_FIXTURE_H_
