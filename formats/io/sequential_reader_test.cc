#include "formats/io/sequential_reader.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "formats/testing/fault_injection.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::FaultInjection;

// As in sequential_reader.cc; other values would only test less.
constexpr uint64_t kBlock = 256 << 10;

class SequentialReaderTest : public ::testing::Test {
 protected:
  File Open(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return *File::OpenRead(path_);
  }
  // Small, around a block, and anything up to three blocks.
  uint64_t AnySize(testing::Random& random) {
    switch (random.Below(4)) {
      case 0:
        return random.Below(20);
      case 1:
        return kBlock - 3 + random.Below(7);
      case 2:
        return random.Below(3 * kBlock);
      default:
        return random.Below(5000);
    }
  }

  testing::ScratchFolder scratch_;
  std::string path_ = scratch_.File("file");
};

// One step of a random kind, compared with the plain bytes. False after a step that had to fail.
bool StepLikePlainBytes(SequentialReader& in, std::string_view all, uint64_t size, int kind) {
  const std::string_view rest = all.substr(in.position());
  EXPECT_EQ(in.remaining(), rest.size());
  const uint64_t before = in.position();
  if (kind == 0) {
    const absl::StatusOr<Bytes> peeked = in.Peek(size);
    EXPECT_TRUE(peeked.ok());
    EXPECT_TRUE(AsText(*peeked) == rest.substr(0, size));
    EXPECT_EQ(in.position(), before);
    return true;
  }
  const absl::StatusOr<uint64_t> hash = kind == 1 ? in.HashNext(size) : absl::StatusOr<uint64_t>(0);
  const absl::Status status = kind == 1 ? hash.status() : in.Skip(size);
  if (size > rest.size()) {
    EXPECT_TRUE(absl::IsOutOfRange(status));
    EXPECT_EQ(in.position(), before);
    return false;
  }
  EXPECT_TRUE(status.ok()) << status;
  if (kind == 1) {
    EXPECT_EQ(*hash, Xxh3_64(AsBytes(rest.substr(0, size))));
  }
  EXPECT_EQ(in.position(), before + size);
  return true;
}

TEST_F(SequentialReaderTest, AnySequenceOfCallsIsLikePlainBytes) {
  testing::Random random(6);
  for (int round = 0; round < 150; ++round) {
    const std::string all =
        random.Bytes(round % 10 == 0 ? round : AnySize(random) * (1 + random.Below(4)));
    const File file = Open(all);
    FaultInjection faults;
    if (round % 3 == 0) faults.LimitTransfers(1 + random.Below(50'000));
    if (round % 5 == 0) faults.InterruptEverySecondCall();
    SequentialReader in(file, all.size());
    for (uint64_t step = random.Below(40); step > 0; --step) {
      StepLikePlainBytes(in, all, AnySize(random), static_cast<int>(random.Below(3)));
      ASSERT_FALSE(HasFailure()) << "round " << round;
    }
    const absl::StatusOr<Digest> digest = in.Finish();
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_EQ(*digest, Xxh3_128(AsBytes(all)));
    EXPECT_EQ(in.position(), all.size());
    EXPECT_EQ(*in.Finish(), *digest) << "a second time";
  }
}

TEST_F(SequentialReaderTest, FieldsAroundTheBorderOfABlock) {
  testing::Random random(7);
  const std::string all = random.Bytes(4 * kBlock);
  const File file = Open(all);
  for (const uint64_t skipped : {uint64_t{0}, uint64_t{1}, kBlock - 1, kBlock, kBlock + 1}) {
    for (const uint64_t size :
         {uint64_t{0}, uint64_t{1}, uint64_t{2}, kBlock - 1, kBlock, kBlock + 1, 2 * kBlock}) {
      SequentialReader in(file, all.size());
      ASSERT_TRUE(in.Skip(skipped).ok());
      ASSERT_TRUE(in.Peek(10).ok());
      EXPECT_EQ(*in.HashNext(size), Xxh3_64(AsBytes(std::string_view(all).substr(skipped, size))));
      EXPECT_TRUE(AsText(*in.Peek(5)) == all.substr(skipped + size, 5));
      EXPECT_EQ(*in.Finish(), Xxh3_128(AsBytes(all)));
    }
  }
}

TEST_F(SequentialReaderTest, EachByteIsReadOnce) {
  const std::string all(3 * kBlock, 'x');
  const File file = Open(all);
  FaultInjection faults;
  SequentialReader in(file, all.size());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(in.HashNext(5000).ok());
  ASSERT_TRUE(in.Finish().ok());
  EXPECT_LE(faults.reads(), 6u);
}

TEST_F(SequentialReaderTest, AnEmptyFile) {
  const File file = Open("");
  SequentialReader in(file, 0);
  EXPECT_TRUE(in.Peek(100)->empty());
  EXPECT_TRUE(in.Skip(0).ok());
  EXPECT_EQ(*in.HashNext(0), Xxh3_64({}));
  EXPECT_TRUE(absl::IsOutOfRange(in.Skip(1)));
  EXPECT_TRUE(absl::IsOutOfRange(in.HashNext(1).status()));
  EXPECT_EQ(*in.Finish(), Xxh3_128({}));
}

TEST_F(SequentialReaderTest, HugeNumbersAreJustTooLarge) {
  const File file = Open("abc");
  SequentialReader in(file, 3);
  ASSERT_TRUE(in.Skip(1).ok());
  for (const uint64_t bytes : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{3}}) {
    EXPECT_TRUE(absl::IsOutOfRange(in.Skip(bytes)));
    EXPECT_TRUE(absl::IsOutOfRange(in.HashNext(bytes).status()));
    EXPECT_EQ(AsText(*in.Peek(bytes)), "bc");
  }
  EXPECT_EQ(*in.Finish(), Xxh3_128(AsBytes("abc")));
}

TEST_F(SequentialReaderTest, AFileThatShrinksIsAnError) {
  const std::string all(3 * kBlock, 'x');
  const File file = Open(all);
  SequentialReader in(file, all.size());
  ASSERT_TRUE(in.Skip(10).ok());
  ASSERT_EQ(::truncate(path_.c_str(), 2 * kBlock), 0);
  EXPECT_TRUE(in.Skip(kBlock).ok()) << "the bytes before it are still read";
  EXPECT_TRUE(absl::IsOutOfRange(in.Finish().status()));
  SequentialReader larger(file, all.size());
  EXPECT_TRUE(absl::IsOutOfRange(larger.HashNext(all.size()).status()));
  SequentialReader peeking(file, all.size());
  EXPECT_TRUE(absl::IsOutOfRange(peeking.Peek(all.size()).status()));
}

TEST_F(SequentialReaderTest, AFileThatGrowsIsAnError) {
  const File file = Open("0123456789");
  SequentialReader in(file, 9);
  ASSERT_TRUE(in.Skip(9).ok());
  const absl::Status status = in.Finish().status();
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
}

TEST_F(SequentialReaderTest, AReadErrorIsPassedOn) {
  const File file = Open(std::string(2 * kBlock, 'x'));
  FaultInjection faults;
  faults.FailReadsAt(kBlock + 5, EIO);
  SequentialReader in(file, 2 * kBlock);
  ASSERT_TRUE(in.HashNext(kBlock).ok());
  EXPECT_TRUE(absl::IsUnavailable(in.Peek(100).status()));
  EXPECT_TRUE(absl::IsUnavailable(in.Finish().status()));
}

}  // namespace
}  // namespace shardpack
