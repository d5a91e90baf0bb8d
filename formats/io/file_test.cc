#include "formats/io/file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "formats/testing/fault_injection.h"
#include "formats/testing/sample_generator.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::FaultInjection;
using ::testing::HasSubstr;
using testing::ScratchFolder;

class FileTest : public ::testing::Test {
 protected:
  // A file with these bytes, open for reading.
  File Open(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return *File::OpenRead(path_);
  }
  std::string Read() { return *ReadWholeFile(path_, 1 << 30); }

  ScratchFolder scratch_;
  std::string path_ = scratch_.File("file");
  testing::Random random_{1};
};

std::span<std::byte> Writable(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

TEST_F(FileTest, ReadAtStopsAtTheEnd) {
  const File file = Open("0123456789");
  std::string into(4, '.');
  EXPECT_EQ(*file.ReadAt(3, Writable(into)), 4u);
  EXPECT_EQ(into, "3456");
  EXPECT_EQ(*file.ReadAt(8, Writable(into)), 2u);
  EXPECT_EQ(into, "8956");
  EXPECT_EQ(*file.ReadAt(10, Writable(into)), 0u);
  EXPECT_EQ(*file.ReadAt(1000, Writable(into)), 0u);
  EXPECT_EQ(*file.ReadAt(0, {}), 0u);
  EXPECT_EQ(*file.Size(), 10u);
}

TEST_F(FileTest, ReadExactlyAtNamesTheShortage) {
  const File file = Open("0123456789");
  std::string into(4, '.');
  EXPECT_TRUE(file.ReadExactlyAt(6, Writable(into)).ok());
  const absl::Status status = file.ReadExactlyAt(7, Writable(into));
  EXPECT_TRUE(absl::IsOutOfRange(status));
  EXPECT_THAT(status.message(), HasSubstr("ends at offset 10, expected 4 bytes at offset 7"));
}

TEST_F(FileTest, ShortAndInterruptedReadsAreContinued) {
  const std::string bytes = random_.Bytes(10000);
  const File file = Open(bytes);
  FaultInjection faults;
  faults.LimitTransfers(7);
  faults.InterruptEverySecondCall();
  std::string into(9000, '.');
  EXPECT_EQ(*file.ReadAt(500, Writable(into)), 9000u);
  EXPECT_EQ(into, bytes.substr(500, 9000));
  EXPECT_GT(faults.reads(), 2 * 9000u / 7);
}

TEST_F(FileTest, AReadErrorNamesOffsetAndPath) {
  const File file = Open(std::string(100, 'x'));
  FaultInjection faults;
  faults.FailReadsAt(60, EIO);
  std::string into(100, '.');
  const absl::Status status = file.ReadAt(0, Writable(into)).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("read at offset 60 of " + path_));
}

TEST_F(FileTest, WriteGathersPartsOfAnySize) {
  std::string all;
  std::vector<std::string> texts;
  for (size_t i = 0; i < 300; ++i)
    texts.push_back(random_.Bytes(i % 5 == 0 ? 0 : random_.Below(200)));
  std::vector<Bytes> parts;
  for (const std::string& text : texts) {
    all += text;
    parts.push_back(AsBytes(text));
  }
  for (const uint64_t limit :
       {uint64_t{1} << 40, uint64_t{1}, uint64_t{13}, uint64_t{199}, uint64_t{5000}}) {
    ASSERT_TRUE(RemoveFile(path_).ok());
    File file = *File::CreateExclusive(path_);
    {
      FaultInjection faults;
      faults.LimitTransfers(limit);
      faults.InterruptEverySecondCall();
      ASSERT_TRUE(file.Write(parts).ok());
      ASSERT_TRUE(file.Write({}).ok());
    }
    ASSERT_TRUE(file.Close().ok());
    EXPECT_EQ(Read(), all) << limit;
  }
}

TEST_F(FileTest, WriteAtOverwritesAndAddsWithoutMovingThePosition) {
  const std::string first = "0123456789", over = "abc", added = "vwxyz";
  for (const uint64_t limit : {uint64_t{1} << 40, uint64_t{1}, uint64_t{4}}) {
    ASSERT_TRUE(RemoveFile(path_).ok());
    File file = *File::CreateExclusive(path_);
    {
      FaultInjection faults;
      faults.LimitTransfers(limit);
      faults.InterruptEverySecondCall();
      const std::array parts = {AsBytes(first), Bytes()};
      ASSERT_TRUE(file.Write(parts).ok());
      const std::array others = {AsBytes(over), AsBytes(added)};
      ASSERT_TRUE(file.WriteAt(4, others).ok());
      ASSERT_TRUE(file.Write(std::span(others).first(1)).ok());
    }
    ASSERT_TRUE(file.Close().ok());
    EXPECT_EQ(Read(), "0123abcvwxabc") << limit;
  }
}

TEST_F(FileTest, AFullDiskIsResourceExhausted) {
  File file = *File::CreateExclusive(path_);
  FaultInjection faults;
  faults.FailWritesAfter(5, ENOSPC);
  const Bytes part = AsBytes("0123456789");
  const absl::Status status = file.Write(std::span(&part, 1));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("write " + path_));
}

TEST_F(FileTest, AWriteOfNothingIsNotRepeatedForEver) {
  File file = *File::CreateExclusive(path_);
  FaultInjection faults;
  faults.LimitTransfers(0);
  const Bytes part = AsBytes("0123456789");
  EXPECT_TRUE(absl::IsUnavailable(file.Write(std::span(&part, 1))));
}

TEST_F(FileTest, ErrorsOfSyncAndCloseAreSeen) {
  File file = *File::CreateExclusive(path_);
  {
    FaultInjection faults;
    faults.FailSyncs(EIO);
    EXPECT_TRUE(absl::IsUnavailable(file.SyncData()));
  }
  {
    FaultInjection faults;
    faults.FailCloses(EDQUOT);
    EXPECT_TRUE(absl::IsResourceExhausted(file.Close()));
    EXPECT_FALSE(file.is_open());
    EXPECT_TRUE(file.Close().ok()) << "closed twice";
    EXPECT_EQ(faults.closes(), 1u);
  }
  File interrupted = *File::OpenRead(path_);
  FaultInjection faults;
  faults.FailCloses(EINTR);
  EXPECT_TRUE(interrupted.Close().ok()) << "the descriptor is gone all the same";
}

TEST_F(FileTest, MovingClosesOnce) {
  File a = Open("x");
  FaultInjection faults;
  {
    File b = std::move(a);
    EXPECT_FALSE(a.is_open());
    File c;
    c = std::move(b);
    File& itself = c;
    c = std::move(itself);
    EXPECT_TRUE(c.is_open());
  }
  EXPECT_EQ(faults.closes(), 1u);
}

TEST_F(FileTest, CreateExclusiveNeverOpensWhatIsThere) {
  ASSERT_TRUE(File::CreateExclusive(path_).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(File::CreateExclusive(path_).status()));
  ASSERT_EQ(::symlink("nowhere", scratch_.File("link").c_str()), 0);
  EXPECT_TRUE(absl::IsAlreadyExists(File::CreateExclusive(scratch_.File("link")).status()));
}

TEST_F(FileTest, OpeningAFifoDoesNotBlock) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  absl::StatusOr<File> fifo = File::OpenRead(path_);
  ASSERT_TRUE(fifo.ok());
  std::string into(1, '.');
  EXPECT_FALSE(fifo->ReadAt(0, Writable(into)).ok());
}

TEST_F(FileTest, ReadWholeFileKeepsToItsLimit) {
  Open("0123456789");
  EXPECT_EQ(*ReadWholeFile(path_, 10), "0123456789");
  EXPECT_TRUE(absl::IsOutOfRange(ReadWholeFile(path_, 9).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadWholeFile(path_ + "x", 9).status()));
  // It claims a petabyte, but no memory is allocated for it.
  ASSERT_EQ(::truncate(path_.c_str(), off_t{1} << 40), 0);
  EXPECT_TRUE(absl::IsOutOfRange(ReadWholeFile(path_, 100).status()));
}

TEST_F(FileTest, RenameNeverReplaces) {
  const std::string other = scratch_.File("other");
  // The second time like NFS, which does not support flags.
  for (const int error : {0, EINVAL}) {
    FaultInjection faults;
    faults.FailRenames(error);
    std::ofstream(path_) << "new";
    std::ofstream(other) << "old";
    EXPECT_TRUE(absl::IsAlreadyExists(RenameNoReplace(path_, other)));
    EXPECT_EQ(*ReadWholeFile(other, 10), "old");
    EXPECT_EQ(Read(), "new");
    ASSERT_TRUE(RemoveFile(other).ok());
    EXPECT_TRUE(RenameNoReplace(path_, other).ok());
    EXPECT_EQ(*ReadWholeFile(other, 10), "new");
    EXPECT_TRUE(absl::IsNotFound(ReadWholeFile(path_, 10).status()));
    EXPECT_TRUE(absl::IsNotFound(RenameNoReplace(path_, scratch_.File("third"))));
    ASSERT_TRUE(RemoveFile(other).ok());
    // Folders too.
    ASSERT_TRUE(MakeDirectory(path_).ok());
    ASSERT_TRUE(MakeDirectory(other).ok());
    EXPECT_TRUE(absl::IsAlreadyExists(RenameNoReplace(path_, other)));
    ASSERT_TRUE(RemoveTree(other).ok());
    EXPECT_TRUE(RenameNoReplace(path_, other).ok());
    ASSERT_TRUE(RemoveTree(other).ok());
  }
}

TEST_F(FileTest, ARenameWhoseReplyWasLostIsDone) {
  static int error_number;
  Syscalls& calls = SyscallsForTesting();
  const auto real = calls.renameat2;
  for (const int lost : {EEXIST, ENOENT}) {
    error_number = lost;
    const std::string from = scratch_.File(std::to_string(lost)), to = from + ".final";
    std::ofstream(from) << "x";
    calls.renameat2 = [](int from_folder, const char* old, int to_folder, const char* now,
                         unsigned flags) {
      (void)::renameat2(from_folder, old, to_folder, now, flags);
      errno = error_number;
      return -1;
    };
    const absl::Status done = RenameNoReplace(from, to);
    // The same answer if nothing was done.
    std::ofstream(from) << "another";
    const absl::Status refused = RenameNoReplace(from, to);
    calls.renameat2 = real;
    EXPECT_TRUE(done.ok()) << done;
    EXPECT_FALSE(refused.ok());
    EXPECT_EQ(*ReadWholeFile(to, 10), "x");
    EXPECT_EQ(*ReadWholeFile(from, 10), "another");
  }
}

TEST_F(FileTest, FoldersAndRemoving) {
  EXPECT_TRUE(MakeDirectory(path_).ok());
  EXPECT_TRUE(MakeDirectory(path_).ok()) << "there already";
  EXPECT_TRUE(SyncDirectory(path_).ok());
  std::ofstream(path_ + "/kept") << "x";
  ASSERT_EQ(::symlink(path_.c_str(), scratch_.File("link").c_str()), 0);
  EXPECT_TRUE(RemoveTree(scratch_.File("link")).ok());
  EXPECT_TRUE(ReadWholeFile(path_ + "/kept", 10).ok()) << "a link was followed";
  for (const std::string& unnamed :
       {std::string(), path_ + "/", path_ + "/.", path_ + "/..", std::string("/")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(RemoveTree(unnamed))) << unnamed;
    EXPECT_TRUE(absl::IsInvalidArgument(RemoveFile(unnamed))) << unnamed;
  }
  EXPECT_TRUE(RemoveTree(path_).ok());
  EXPECT_TRUE(RemoveTree(path_).ok()) << "gone already";
  EXPECT_TRUE(RemoveFile(path_).ok()) << "gone already";
  std::ofstream(path_) << "a file";
  EXPECT_TRUE(absl::IsAlreadyExists(MakeDirectory(path_)));
  EXPECT_TRUE(absl::IsNotFound(SyncDirectory(path_)));
}

TEST(IoStatus, CodesAndText) {
  EXPECT_TRUE(absl::IsResourceExhausted(IoStatus("write", "a", ENOSPC)));
  EXPECT_TRUE(absl::IsResourceExhausted(IoStatus("write", "a", EFBIG)));
  EXPECT_TRUE(absl::IsNotFound(IoStatus("open", "a", ENOTDIR)));
  EXPECT_TRUE(absl::IsPermissionDenied(IoStatus("open", "a", EROFS)));
  EXPECT_TRUE(absl::IsAlreadyExists(IoStatus("create", "a", EEXIST)));
  EXPECT_TRUE(absl::IsUnavailable(IoStatus("read", "a", EIO)));
  EXPECT_EQ(IoStatus("open", "a\x1B[31m", ENOENT).message(),
            "open a\\x1b[31m: No such file or directory");
}

TEST(IoStatus, AndItsErrorAreOfOneOpinion) {
  for (int error = 1; error < 134; ++error) {
    EXPECT_EQ(IsAboutThePath(error), IsAboutThePath(IoStatus("open", "a", error)))
        << strerror(error);
  }
  for (const int error :
       {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, ELOOP, ENXIO, ENODEV, ENAMETOOLONG}) {
    EXPECT_TRUE(IsAboutThePath(error)) << strerror(error);
  }
  for (const int error :
       {EIO, EMFILE, ENFILE, ENOMEM, ESTALE, ENOSPC, EDQUOT, ETIMEDOUT, EINTR, EAGAIN}) {
    EXPECT_FALSE(IsAboutThePath(error)) << strerror(error);
  }
}

TEST(EscapeForTerminal, OnlyPrintableTextIsLeft) {
  EXPECT_EQ(EscapeForTerminal("plain \xC3\xA4 \xF0\x9F\x90\xB1"),
            "plain \xC3\xA4 \xF0\x9F\x90\xB1");
  EXPECT_EQ(EscapeForTerminal("a\nb\x1B[2J\\\x7F"), "a\\x0ab\\x1b[2J\\x5c\\x7f");
  EXPECT_EQ(EscapeForTerminal("\xC2\x9B"
                              "31m"),
            "\\xc2\\x9b31m")
      << "CSI as a C1 control";
  EXPECT_EQ(EscapeForTerminal("\xE9\xC3"), "\\xe9\\xc3");
  // A right-to-left override makes a name look like another one.
  EXPECT_EQ(EscapeForTerminal("\xE2\x80\xAE"
                              "gpj"),
            "\\xe2\\x80\\xaegpj");
  EXPECT_EQ(EscapeForTerminal(std::string_view("\0", 1)), "\\x00");
}

}  // namespace
}  // namespace shardpack
