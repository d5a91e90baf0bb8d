#include "readers/dataset/warm_shards.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "formats/testing/fault_injection.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using testing::ScopedSyscalls;
using testing::ScratchFolder;

std::string WriteFile(const ScratchFolder& scratch, size_t bytes) {
  std::string content(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 7 + i / 251);
  std::ofstream(scratch.File("shard"), std::ios::binary) << content;
  return content;
}

TEST(MappedShard, CopiesAndNamesAnotherSize) {
  const ScratchFolder scratch;
  const std::string content = WriteFile(scratch, 100'000);
  const File file = *File::OpenRead(scratch.File("shard"));
  const absl::StatusOr<MappedShard> shard = MappedShard::Open(file, content.size());
  ASSERT_TRUE(shard.ok()) << shard.status();
  std::string into(5000, '\0');
  EXPECT_TRUE(shard->Copy(95'000, std::as_writable_bytes(std::span(into))));
  EXPECT_EQ(into, content.substr(95'000));
  EXPECT_TRUE(absl::IsDataLoss(MappedShard::Open(file, content.size() + 1).status()));
  EXPECT_FALSE(shard->Copy(95'001, std::as_writable_bytes(std::span(into))));  // past the end
  EXPECT_FALSE(shard->Copy(~uint64_t{0}, std::as_writable_bytes(std::span(into))));
  shard->Forget(90'000, 1 << 20);
  EXPECT_TRUE(shard->Copy(95'000, std::as_writable_bytes(std::span(into))));
  EXPECT_EQ(into, content.substr(95'000));
}

TEST(MappedShard, AFileCutShortIsNoSignalInAnyThread) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "its runtime does not allow a jump out of a signal handler";
#endif
  const ScratchFolder scratch;
  const std::string content = WriteFile(scratch, 1 << 20);
  const File file = *File::OpenRead(scratch.File("shard"));
  const MappedShard shard = *MappedShard::Open(file, content.size());
  ASSERT_EQ(::truncate(scratch.File("shard").c_str(), 4096), 0);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::array<std::byte, 9000> into;
      for (int i = 0; i < 100; ++i) {
        refused += !shard.Copy(2 * 4096 + static_cast<uint64_t>(i), into);
        EXPECT_TRUE(shard.Copy(0, std::span(into).first(4096)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 400);
}

sigjmp_buf own_back;
std::atomic<int> own_signals{0};

// A handler that the program installed before the first mapping still gets its own faults.
TEST(MappedShardDeathTest, OtherFaultsGoWhereTheyWent) {
  const ScratchFolder scratch;
  WriteFile(scratch, 8192);
  const auto fault = [&] {
    const File file = *File::OpenRead(scratch.File("shard"));
    const MappedShard shard = *MappedShard::Open(file, 8192);
    const auto* mine = static_cast<const volatile char*>(
        ::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, file.descriptor(), 0));
    if (::truncate(scratch.File("shard").c_str(), 0) != 0) ::_exit(2);
    return mine[5000];
  };
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);  // a sanitizer has its own handler
        (void)fault();
      },
      ::testing::KilledBySignal(SIGBUS), "");
  WriteFile(scratch, 8192);
  EXPECT_EXIT(
      {
        struct sigaction own {};
        own.sa_handler = [](int) {
          own_signals = 1;
          ::siglongjmp(own_back, 1);
        };
        ::sigaction(SIGBUS, &own, nullptr);
        if (::sigsetjmp(own_back, 1) == 0) (void)fault();
        ::_exit(own_signals == 1 ? 0 : 3);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(WarmShard, MapsWhatIsCachedAsAWholeAfterSomeReads) {
  const ScratchFolder scratch;
  const std::string content = WriteFile(scratch, 300'000);
  const File file = *File::OpenRead(scratch.File("shard"));
  const WarmShard warm(content.size());
  EXPECT_EQ(warm.Get(), nullptr);
  for (int i = 0; i < 15; ++i) warm.RecordRead(file, true);
  warm.RecordRead(file, false);  // a miss restarts the count
  for (int i = 0; i < 15; ++i) warm.RecordRead(file, true);
  EXPECT_EQ(warm.Get(), nullptr);
  warm.RecordRead(file, true);
  const std::shared_ptr<const MappedShard> mapped = warm.Get();
  ASSERT_NE(mapped, nullptr);
  EXPECT_TRUE(WarmShard::IsSlow(1000, 1'000'000));
  EXPECT_FALSE(WarmShard::IsSlow(1 << 20, 1'000'000));
  warm.LookAgain(file);  // everything is there
  EXPECT_EQ(warm.Get(), mapped);
}

// Nothing is in the page cache any more.
ssize_t ColdPreadv2(int, const iovec*, int, off_t, int) {
  errno = EAGAIN;
  return -1;
}

TEST(WarmShard, WhatIsNotCachedIsNotMappedAndWhatIsGoneIsDropped) {
  const ScratchFolder scratch;
  const std::string content = WriteFile(scratch, 300'000);
  const File file = *File::OpenRead(scratch.File("shard"));
  const WarmShard warm(content.size());
  const ScopedSyscalls restored;
  SyscallsForTesting().preadv2 = ColdPreadv2;
  for (int i = 0; i < 16; ++i) warm.RecordRead(file, true);
  EXPECT_EQ(warm.Get(), nullptr);
  SyscallsForTesting().preadv2 = ::preadv2;
  for (int i = 0; i < 32; ++i) warm.RecordRead(file, true);  // twice as many the second time
  ASSERT_NE(warm.Get(), nullptr);
  SyscallsForTesting().preadv2 = ColdPreadv2;
  warm.LookAgain(file);
  EXPECT_EQ(warm.Get(), nullptr);
}

}  // namespace
}  // namespace shardpack
