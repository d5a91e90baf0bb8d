#include "formats/hdf5/writing/positioned_output.h"

#include <sys/resource.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>

#include "formats/io/file.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ScratchFolder;

class PositionedOutputTest : public ::testing::Test {
 protected:
  PositionedOutputTest() : staged_(*StagedFile::Create(scratch_.File("part"))) {}
  std::string Contents() { return *ReadWholeFile(scratch_.File("part"), 1 << 26); }

  const ScratchFolder scratch_;
  std::unique_ptr<StagedFile> staged_;
};

TEST_F(PositionedOutputTest, WritesPartsWhereTheyBelong) {
  PositionedOutput out(*staged_);
  const std::array parts = {AsBytes("ab"), AsBytes(""), AsBytes("cde")};
  ASSERT_TRUE(out.WriteAt(4, parts).ok());
  ASSERT_TRUE(out.WriteAt(0, std::span(&parts[0], 1)).ok());
  EXPECT_EQ(Contents(), std::string("ab\0\0abcde", 9));
  std::array<std::byte, 4> read;
  ASSERT_TRUE(out.ReadAt(7, read).ok());
  EXPECT_EQ(AsText(read), std::string_view("de\0\0", 4)) << "zero behind the end";
  ASSERT_TRUE(out.Resize(5).ok());
  EXPECT_EQ(Contents(), std::string_view("ab\0\0a", 5));
}

TEST_F(PositionedOutputTest, ARegionKeepsTheOrderOfSmallAndLargeParts) {
  PositionedOutput out(*staged_);
  std::string expected(10, '\0');
  OutputRegion region(out, 10, 4 << 20);
  for (const size_t bytes : {5, 40000, 1, 0, 32767, 32768, 300000, 7}) {
    for (char c = 'a'; c < 'e'; ++c) {
      const std::string part(bytes, c);
      ASSERT_TRUE(region.Append(AsBytes(part)).ok());
      expected += part;
    }
  }
  ASSERT_TRUE(region.Flush().ok());
  EXPECT_EQ(region.appended(), expected.size() - 10);
  EXPECT_TRUE(Contents() == expected);
}

TEST_F(PositionedOutputTest, ARegionRefusesWhatItHasNoRoomFor) {
  PositionedOutput out(*staged_);
  OutputRegion region(out, 0, 3);
  ASSERT_TRUE(region.Append(AsBytes("ab")).ok());
  EXPECT_TRUE(absl::IsInternal(region.Append(AsBytes("cd"))));
  ASSERT_TRUE(region.Append(AsBytes("c")).ok());
  ASSERT_TRUE(region.Flush().ok());
  EXPECT_EQ(Contents(), "abc");
}

TEST_F(PositionedOutputTest, AFailureIsRemembered) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  PositionedOutput out(*staged_);
  const std::string bytes(1500, 'x');
  const std::array<Bytes, 1> part = {AsBytes(bytes)};
  const absl::Status failed = out.WriteAt(0, part);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(failed)) << failed;
  EXPECT_EQ(out.WriteAt(0, part), failed);
  EXPECT_EQ(out.Resize(0), failed);
  EXPECT_EQ(out.status(), failed);
}

}  // namespace
}  // namespace shardpack
