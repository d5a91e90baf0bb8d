// Uploader: memory comes back when its copy is done, not before; slots, events, ends.
#include "cuda/loading/uploader.h"

#include <array>
#include <cstring>

#include "cuda/loading/pinned_memory.h"
#include "cuda/testing/fake_api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::IsEmpty;

class UploaderTest : public ::testing::Test {
 protected:
  UploaderTest() {
    EXPECT_TRUE(api_.allocate(api_.self, &device_, 64).ok());
    uploader_ = *Uploader::Create(api_, 2, 64, memory_);
  }
  ~UploaderTest() override {
    uploader_.reset();
    api_.free(api_.self, device_);
    EXPECT_EQ(fake_.live_objects(), 0u) << fake_.LiveObjects();
    EXPECT_THAT(fake_.misuses(), IsEmpty());
  }
  // From the side memory.
  absl::Status Upload(char value, std::span<const Event> after = {}) {
    std::memset(uploader_->side().data(), value, 64);
    const UploadCopy copy{uploader_->side().data(), device_, 64};
    return uploader_->Upload(std::nullopt, std::span(&copy, 1), after, &copied_);
  }

  FakeApi fake_{{.max_delay_us = 100}};
  const DeviceApi& api_ = fake_.api();
  PinnedMemory memory_{fake_.api(), {.log = nullptr}};
  void* device_ = nullptr;
  Event copied_ = nullptr;
  std::unique_ptr<Uploader> uploader_;
};

TEST_F(UploaderTest, SlotsComeBackInOrderWhenTheirCopyIsDone) {
  fake_.Hold();
  ASSERT_TRUE(Upload('a').ok());
  ASSERT_TRUE(Upload('b').ok());
  EXPECT_TRUE(uploader_->full());
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 2u) << "nothing is done";
  EXPECT_EQ(uploader_->oldest_step(), 0u);
  fake_.LetGo();
  ASSERT_TRUE(api_.event_synchronize(api_.self, copied_).ok());
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 0u);
  EXPECT_EQ(*static_cast<char*>(device_), 'b');
  EXPECT_EQ(uploader_->uploads(), 2u);
  EXPECT_EQ(uploader_->uploaded_bytes(), 128u);
}

TEST_F(UploaderTest, WaitsOnTheDeviceForWhatCameBefore) {
  Event before = nullptr;
  Stream other = nullptr;
  ASSERT_TRUE(api_.event_create(api_.self, &before, false).ok());
  ASSERT_TRUE(api_.stream_create(api_.self, &other).ok());
  for (int round = 0; round < 20; ++round) {
    api_.fill(api_.self, device_, 1, 64, other);
    api_.event_record(api_.self, before, other);
    ASSERT_TRUE(Upload('c', std::span(&before, 1)).ok());
    api_.event_synchronize(api_.self, copied_);
    EXPECT_EQ(*static_cast<char*>(device_), 'c');
    EXPECT_TRUE(uploader_->Reclaim().ok());
  }
  api_.stream_destroy(api_.self, other);
  api_.event_destroy(api_.self, before);
}

TEST_F(UploaderTest, ABrokenUploadKeepsItsMemoryUntilTheStreamIsIdle) {
  fake_.Hold();
  fake_.FailEntry("event_record", kDeviceInvalidValue, 1);
  EXPECT_EQ(Upload('d').code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 1u);
  fake_.LetGo();
  api_.stream_synchronize(api_.self, uploader_->stream());
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 0u);
}

}  // namespace
}  // namespace shardpack
