// Uploader: memory comes back when its copy is done, not before; slots, events, ends.
#include "cuda/loading/uploader.h"

#include <array>
#include <cstring>
#include <memory>

#include "cuda/loading/pinned_memory.h"
#include "cuda/testing/fake_device.h"
#include "cuda/testing/loader_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::IsEmpty;

class UploaderTest : public ::testing::Test {
 protected:
  ~UploaderTest() override {
    uploader_.reset();
    EXPECT_TRUE(fake_.Free(to_).ok());
    EXPECT_EQ(fake_.live_objects(), 0u) << fake_.LiveObjects();
    EXPECT_THAT(fake_.misuses(), IsEmpty());
  }
  // From the staging memory.
  absl::Status Upload(char value, std::span<const Event> dependencies = {}) {
    std::memset(uploader_->staging().data(), value, 64);
    const UploadCopy copy{uploader_->staging().data(), to_, 64};
    return uploader_->Upload(nullptr, std::span(&copy, 1), dependencies).status();
  }
  void WaitForUploads() { EXPECT_TRUE(fake_.Synchronize(uploader_->stream()).ok()); }

  FakeDevice fake_{{.max_delay_us = 100}};
  PinnedMemory memory_{fake_, {.log = nullptr}};
  void* const to_ = *fake_.Allocate(64, "a test");
  std::unique_ptr<Uploader> uploader_ = *Uploader::Create(fake_, 2, 64, memory_);
};

TEST_F(UploaderTest, SlotsComeBackInOrderWhenTheirCopyIsDone) {
  fake_.Hold();
  ASSERT_TRUE(Upload('a').ok());
  ASSERT_TRUE(Upload('b').ok());
  EXPECT_TRUE(uploader_->full());
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 2u) << "nothing is done";
  fake_.LetGo();
  WaitForUploads();
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 0u);
  EXPECT_EQ(*static_cast<char*>(to_), 'b');
  EXPECT_EQ(uploader_->uploads(), 2u);
  EXPECT_EQ(uploader_->uploaded_bytes(), 128u);
}

TEST_F(UploaderTest, WaitsOnTheDeviceForWhatCameBefore) {
  const Event before = *fake_.CreateEvent();
  const Stream other = *fake_.CreateStream();
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(fake_.Fill(to_, 1, 64, other).ok());
    EXPECT_TRUE(fake_.RecordEvent(before, other).ok());
    ASSERT_TRUE(Upload('c', std::span(&before, 1)).ok());
    WaitForUploads();
    EXPECT_EQ(*static_cast<char*>(to_), 'c');
    EXPECT_TRUE(uploader_->Reclaim().ok());
  }
  EXPECT_TRUE(fake_.DestroyStream(other).ok());
  EXPECT_TRUE(fake_.DestroyEvent(before).ok());
}

TEST_F(UploaderTest, ABrokenUploadKeepsItsMemoryUntilTheStreamIsIdle) {
  fake_.Hold();
  fake_.FailEntry("RecordEvent", kDeviceInvalidValue, 1);
  EXPECT_EQ(Upload('d').code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 1u);
  fake_.LetGo();
  WaitForUploads();
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 0u);
}

TEST_F(UploaderTest, ABatchThatIsNotUploadedIsKeptUntilTheStreamIsIdle) {
  const LoaderFixture data("ABatchThatIsNotUploaded", {});
  PageableMemory memory;
  Loader loader = data.Open(memory, data.Options());
  fake_.Hold();
  EXPECT_TRUE(fake_.Fill(to_, 1, 64, uploader_->stream()).ok());
  uploader_->KeepUntilIdle(std::make_shared<HostBatch>(**loader.Next()));
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 1u) << "the stream may still read the batch";
  fake_.LetGo();
  WaitForUploads();
  EXPECT_TRUE(uploader_->Reclaim().ok());
  EXPECT_EQ(uploader_->in_flight(), 0u);
  EXPECT_EQ(uploader_->uploads(), 0u);
}

}  // namespace
}  // namespace shardpack
