#include "formats/io/named_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "formats/testing/scratch_folder.h"

namespace {

int lock_error = 0;  // the error of flock; 0: the real call

}  // namespace

// Replaces the C library's.
extern "C" int flock(int descriptor, int operation) noexcept {
  if (lock_error != 0) {
    errno = lock_error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

namespace shardpack {
namespace {

TEST(LockNamed, OneRunAtATime) {
  const testing::ScratchFolder scratch;
  const std::string path = scratch.File("part");
  File first = *File::CreateExclusive(path);
  EXPECT_EQ(LockNamed(first, AT_FDCWD, path).value(), true);
  const File second(::open(path.c_str(), O_RDWR), path);
  EXPECT_EQ(LockNamed(second, AT_FDCWD, path).value(), false);
  ASSERT_TRUE(first.Close().ok());
  EXPECT_EQ(LockNamed(second, AT_FDCWD, path).value(), true);
}

TEST(LockNamed, AFileThatHasLostItsNameIsNobodys) {
  const testing::ScratchFolder scratch;
  const std::string path = scratch.File("part");
  const File file = *File::CreateExclusive(path);
  std::filesystem::rename(path, path + "-moved");
  EXPECT_EQ(LockNamed(file, AT_FDCWD, path).value(), false);
  const File other = *File::CreateExclusive(path);
  EXPECT_EQ(LockNamed(file, AT_FDCWD, path).value(), false);
  EXPECT_EQ(LockNamed(file, AT_FDCWD, path + "-moved").value(), true);
}

TEST(LockNamed, WithoutLocksNobodyGoesOn) {
  const testing::ScratchFolder scratch;
  const std::string path = scratch.File("part");
  const File file = *File::CreateExclusive(path);
  for (const int error : {ENOSYS, ENOLCK}) {
    lock_error = error;
    const absl::StatusOr<bool> locked = LockNamed(file, AT_FDCWD, path);
    lock_error = 0;
    EXPECT_TRUE(absl::IsUnavailable(locked.status())) << locked.status();
    EXPECT_NE(locked.status().message().find("use a folder of another file system"),
              std::string_view::npos);
  }
}

}  // namespace
}  // namespace shardpack
