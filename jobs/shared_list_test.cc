#include "jobs/shared_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "converters/sources/folder_access.h"
#include "converters/threads/io_pool.h"

namespace shardpack {
namespace {

using testing::HasSubstr;

std::string& GoingRoot() {
  static std::string root;
  return root;
}

// The disk goes away while its first folder is read.
ssize_t ReadGoingDisk(int /*fd*/, void* /*buffer*/, size_t /*bytes*/) {
  std::filesystem::remove_all(GoingRoot() + "/a");
  std::filesystem::remove_all(GoingRoot() + "/b");
  return 0;
}

TEST(SharedListTest, NothingOfADiskThatGoesAwayIsListed) {
  std::string folder = testing::TempDir() + "/shared_list_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  GoingRoot() = folder + "/source";
  for (const char* name : {"/a", "/b"}) {
    std::filesystem::create_directories(GoingRoot() + name);
    std::ofstream(GoingRoot() + name + "/1.jpg") << "bytes";
  }
  const SharedListRequest request{.source = GoingRoot(), .lists = folder + "/lists", .join = true};
  IoPool pool(2);
  std::atomic<uint64_t> listed = 0;
  const std::atomic<int> stop = 0;
  const auto getdents = FolderSyscallsForTesting().getdents;
  FolderSyscallsForTesting().getdents = ReadGoingDisk;
  SharedListReport report;
  const absl::Status failed = ListShared(request, pool, listed, stop, report);
  FolderSyscallsForTesting().getdents = getdents;
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("holds nothing of what it held when"));
  EXPECT_TRUE(std::filesystem::exists(request.lists + "/list.json"));
  for (const auto& entry : std::filesystem::directory_iterator(request.lists))
    EXPECT_FALSE(entry.path().filename().string().starts_with("part-")) << entry.path();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace shardpack
