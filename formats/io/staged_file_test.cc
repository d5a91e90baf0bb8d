#include "formats/io/staged_file.h"

#include <errno.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "formats/testing/fault_injection.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using testing::FaultInjection;
using ::testing::IsEmpty;

class StagedFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<StagedFile> Create() { return *StagedFile::Create(scratch_.File("staged")); }
  std::string Read(const std::string& name) { return *ReadWholeFile(scratch_.File(name), 1 << 30); }

  testing::ScratchFolder scratch_;
  std::string final_ = scratch_.File("final");
  testing::Random random_{5};
};

TEST_F(StagedFileTest, ALinkReplacesNothingAndMayBeRepeated) {
  {
    auto staged = Create();
    ASSERT_TRUE(staged->Append(AsBytes("mine")).ok());
    ASSERT_TRUE(staged->Flush().ok());
    // As if the reply to an earlier link had been lost.
    std::filesystem::create_hard_link(scratch_.File("staged"), final_);
    EXPECT_TRUE(staged->Link(final_).ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(staged->Append(AsBytes("more"))));
    EXPECT_TRUE(std::filesystem::exists(scratch_.File("staged")));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch_.File("staged")));
  EXPECT_EQ(Read("final"), "mine");
  auto other = Create();
  ASSERT_TRUE(other->Append(AsBytes("mine")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(other->Link(final_)));  // another file, even if it is equal
  EXPECT_EQ(Read("final"), "mine");
}

TEST_F(StagedFileTest, AStartedSyncIsNoSync) {
  auto staged = Create();
  FaultInjection faults;
  faults.FailSyncs(EIO);
  ASSERT_TRUE(staged->Append(AsBytes("mine")).ok());
  EXPECT_TRUE(staged->StartSync().ok());
  EXPECT_EQ(*staged->file().Size(), 4u);  // as after Flush
  EXPECT_TRUE(absl::IsUnavailable(staged->SyncData()));
  EXPECT_TRUE(absl::IsUnavailable(staged->StartSync()));
}

TEST_F(StagedFileTest, AppendsOfAnySizeArriveInOrder) {
  for (const uint64_t limit : {uint64_t{1} << 40, uint64_t{4000}}) {
    auto staged = Create();
    FaultInjection faults;
    faults.LimitTransfers(limit);
    faults.InterruptEverySecondCall();
    std::string all;
    for (int i = 0; i < 400; ++i) {
      // Occasionally larger than what is gathered, and than the whole buffer.
      std::vector<std::string> texts;
      for (uint64_t p = random_.Below(4); p > 0; --p) {
        const uint64_t most = i % 90 == 0 ? 1'500'000 : i % 9 == 0 ? 40'000 : 3'000;
        texts.push_back(random_.Bytes(random_.Below(most)));
      }
      std::vector<Bytes> parts;
      for (const std::string& text : texts) {
        all += text;
        parts.push_back(AsBytes(text));
      }
      ASSERT_TRUE(staged->Append(parts).ok());
      EXPECT_EQ(staged->size(), all.size());
      if (i % 100 == 50) {
        ASSERT_TRUE(staged->Flush().ok());
        EXPECT_EQ(*staged->file().Size(), all.size());
      }
    }
    ASSERT_TRUE(staged->SyncData().ok());
    ASSERT_TRUE(staged->Publish(final_).ok());
    EXPECT_TRUE(Read("final") == all);
    EXPECT_THAT(scratch_.Names(), ElementsAre("final"));
    ASSERT_TRUE(RemoveFile(final_).ok());
  }
}

TEST_F(StagedFileTest, PartsAreCopiedBeforeAppendReturns) {
  auto staged = Create();
  for (const size_t bytes : {10, 40'000}) {
    std::string part(bytes, 'a');
    ASSERT_TRUE(staged->Append(AsBytes(part)).ok());
    part.assign(bytes, 'b');
  }
  ASSERT_TRUE(staged->Publish(final_).ok());
  EXPECT_EQ(Read("final"), std::string(40'010, 'a'));
}

TEST_F(StagedFileTest, TheSizeOfWhatALibraryWrote) {
  auto staged = Create();
  std::ofstream(staged->path(), std::ios::binary) << std::string(5000, 'x');
  EXPECT_EQ(staged->size(), 0u);
  ASSERT_TRUE(staged->Flush().ok());
  EXPECT_EQ(staged->size(), 5000u);
  ASSERT_TRUE(staged->Publish(final_).ok());
  EXPECT_EQ(Read("final"), std::string(5000, 'x'));
}

TEST_F(StagedFileTest, AbandonedIsGone) {
  Create();
  EXPECT_THAT(scratch_.Names(), IsEmpty());
}

TEST_F(StagedFileTest, NeverTakesOrReplacesWhatIsThere) {
  std::ofstream(scratch_.File("staged")) << "other";
  EXPECT_TRUE(absl::IsAlreadyExists(StagedFile::Create(scratch_.File("staged")).status()));
  EXPECT_EQ(Read("staged"), "other");
  ASSERT_TRUE(RemoveFile(scratch_.File("staged")).ok());
  std::ofstream(final_) << "published before";
  {
    auto staged = Create();
    ASSERT_TRUE(staged->Append(AsBytes("new")).ok());
    EXPECT_TRUE(absl::IsAlreadyExists(staged->Publish(final_)));
    EXPECT_TRUE(absl::IsAlreadyExists(staged->Publish(scratch_.File("elsewhere"))))
        << "errors stay";
  }
  EXPECT_EQ(Read("final"), "published before");
  EXPECT_THAT(scratch_.Names(), ElementsAre("final"));
}

TEST_F(StagedFileTest, ReplaceTakesThePlaceOfAFile) {
  for (const char* text : {"first", "second"}) {
    auto staged = Create();
    ASSERT_TRUE(staged->Append(AsBytes(std::string_view(text))).ok());
    ASSERT_TRUE(staged->Replace(final_).ok());
    EXPECT_EQ(Read("final"), text);
    EXPECT_TRUE(absl::IsFailedPrecondition(staged->Replace(final_)));
  }
  EXPECT_TRUE(absl::IsNotFound(Create()->Replace(scratch_.File("no/folder"))));
  EXPECT_THAT(scratch_.Names(), ElementsAre("final"));
}

TEST_F(StagedFileTest, PublishedOnce) {
  auto staged = Create();
  ASSERT_TRUE(staged->Append(AsBytes("x")).ok());
  ASSERT_TRUE(staged->Publish(final_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(staged->Append(AsBytes("y"))));
  EXPECT_TRUE(absl::IsFailedPrecondition(staged->Publish(scratch_.File("again"))));
  // It must leave a later file with the same staged name alone.
  std::ofstream(scratch_.File("staged")) << "another";
  staged.reset();
  EXPECT_THAT(scratch_.Names(), ElementsAre("final", "staged"));
}

TEST_F(StagedFileTest, AFailedWriteIsFinal) {
  auto staged = Create();
  {
    FaultInjection faults;
    faults.FailWritesAfter(1000, ENOSPC);
    ASSERT_TRUE(staged->Append(AsBytes("small: still in the buffer")).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(staged->Append(AsBytes(std::string(100'000, 'x')))));
  }
  // There is space again, but bytes are missing in the middle.
  EXPECT_TRUE(absl::IsResourceExhausted(staged->Append(AsBytes("y"))));
  EXPECT_TRUE(absl::IsResourceExhausted(staged->Flush()));
  EXPECT_TRUE(absl::IsResourceExhausted(staged->SyncData()));
  EXPECT_TRUE(absl::IsResourceExhausted(staged->Publish(final_)));
  staged.reset();
  EXPECT_THAT(scratch_.Names(), IsEmpty());
}

TEST_F(StagedFileTest, AFailedSyncIsFinal) {
  auto staged = Create();
  ASSERT_TRUE(staged->Append(AsBytes("x")).ok());
  {
    FaultInjection faults;
    faults.FailSyncs(EIO);
    EXPECT_TRUE(absl::IsUnavailable(staged->SyncData()));
  }
  FaultInjection faults;
  EXPECT_TRUE(absl::IsUnavailable(staged->SyncData())) << "a second fdatasync would report success";
  EXPECT_EQ(faults.syncs(), 0u);
  EXPECT_TRUE(absl::IsUnavailable(staged->Publish(final_)));
}

TEST_F(StagedFileTest, AFailedCloseIsNotPublished) {
  {
    auto staged = Create();
    ASSERT_TRUE(staged->Append(AsBytes("x")).ok());
    FaultInjection faults;
    faults.FailCloses(EIO);
    EXPECT_TRUE(absl::IsUnavailable(staged->Publish(final_)));
  }
  EXPECT_THAT(scratch_.Names(), IsEmpty());
}

TEST_F(StagedFileTest, AFailedFlushInPublishIsNotPublished) {
  {
    auto staged = Create();
    ASSERT_TRUE(staged->Append(AsBytes("x")).ok());
    FaultInjection faults;
    faults.FailWritesAfter(0, EDQUOT);
    EXPECT_TRUE(absl::IsResourceExhausted(staged->Publish(final_)));
  }
  EXPECT_THAT(scratch_.Names(), IsEmpty());
}

}  // namespace
}  // namespace shardpack
