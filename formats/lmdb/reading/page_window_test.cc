#include "formats/lmdb/reading/page_window.h"

#include <fstream>
#include <string>

#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/sequential_reader.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

constexpr uint64_t kBytes = 4 << 20;

class PageWindowTest : public ::testing::Test {
 protected:
  PageWindowTest() {
    for (uint64_t i = 0; i < kBytes; ++i) bytes_.push_back(static_cast<char>(i * 7919 >> 8));
    std::ofstream(path_, std::ios::binary) << bytes_;
    file_ = *File::OpenRead(path_);
  }
  void Expect(PageWindow& window, uint64_t offset, uint64_t bytes) {
    const absl::StatusOr<Bytes> read = window.Read(offset, bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(AsText(*read) == std::string_view(bytes_).substr(offset, bytes));
  }

  testing::ScratchFolder scratch_;
  const std::string path_ = scratch_.File("file");
  std::string bytes_;
  File file_;
};

TEST_F(PageWindowTest, AWalkForwardAdvancesTheReader) {
  SequentialReader in(file_, kBytes);
  PageWindow window(in);
  window.FollowReader();
  // Values of several sizes after their headers, the last one larger than what may be skipped.
  uint64_t at = 8192;
  for (const uint64_t value : {100'000u, 5'000u, 300'000u, 80'000u}) {
    Expect(window, at, 16);
    EXPECT_EQ(in.position(), at);
    Expect(window, at + 16, value);
    EXPECT_EQ(in.position(), at + 16);
    at += 16 + value;
  }
  EXPECT_EQ(*in.Finish(), Xxh3_128(AsBytes(bytes_)));
}

TEST_F(PageWindowTest, OtherReadsLeaveTheReaderAlone) {
  SequentialReader in(file_, kBytes);
  PageWindow window(in);
  Expect(window, 4096, 4096);  // before FollowReader
  EXPECT_EQ(in.position(), 0u);
  window.FollowReader();
  Expect(window, kBytes - 4096, 4096);  // far ahead
  EXPECT_EQ(in.position(), 0u);
  Expect(window, 100'000, 4096);
  EXPECT_EQ(in.position(), 100'000u);
  Expect(window, 8192, 50'000);  // behind
  EXPECT_EQ(in.position(), 100'000u);
  Expect(window, 120'000, 16);
  EXPECT_EQ(in.position(), 120'000u);
  EXPECT_EQ(*in.Finish(), Xxh3_128(AsBytes(bytes_)));
}

}  // namespace
}  // namespace shardpack
