// Loads listed files: the right bytes from any thread, and a skip for any file that changed in
// between.
#include "converters/sources/folder_source.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/planning/plan.h"
#include "converters/sources/folder_access.h"
#include "converters/testing/made_up.h"
#include "converters/threads/io_pool.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;
using ::shardpack::testing::ScratchFolder;
using ::testing::HasSubstr;
using ::testing::Not;

class FolderSourceTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes = "bytes") {
    const fs::path full = scratch_.File(path);
    fs::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << bytes;
  }
  Listing List(FolderSource& source) {
    absl::StatusOr<Listing> listing = source.List();
    if (!listing.ok()) ADD_FAILURE() << listing.status();
    return listing.ok() ? *std::move(listing) : Listing();
  }
  // The bytes of a row, or the reason of its skip in angle brackets.
  static std::string Load(const FolderSource& source, const Listing& listing, uint64_t row) {
    Arena arena;
    const LoadResult loaded = source.Load(listing, row, arena);
    if (const Skip* skip = std::get_if<Skip>(&loaded)) {
      EXPECT_EQ(skip->row, row);
      return absl::StrCat("<", std::string(SkipReasonName(skip->reason)), ">");
    }
    const auto& fields = std::get<LoadedSample>(loaded).fields;
    EXPECT_EQ(fields.size(), 1u);
    EXPECT_EQ(fields[0].name, kImageField);
    return std::string(AsText(fields[0].bytes));
  }

  ScratchFolder scratch_;
  IoPool pool_{4};
};

TEST_F(FolderSourceTest, LoadsEveryRowFromManyThreads) {
  for (int i = 0; i < 500; ++i) {
    const std::string path = absl::StrCat("c", i % 50, "/", i, ".jpg");
    Write(path, path + std::string(static_cast<size_t>(i * i / 10), 'x'));
  }
  FolderSource source(scratch_.path(), {}, pool_);
  const Listing listing = List(source);
  ASSERT_EQ(listing.rows(), 500u);
  pool_.ForEach(2000, [&](size_t i) {
    const uint64_t row = i * 7919 % 500;
    const std::string bytes = Load(source, listing, row);
    EXPECT_TRUE(bytes.starts_with(listing.Path(row)));
    EXPECT_EQ(bytes.size(), listing.bytes[row]);
  });
}

TEST_F(FolderSourceTest, ManyRowsShareOneArena) {
  for (int i = 0; i < 50; ++i)
    Write(absl::StrCat("c/", 100 + i, ".jpg"), std::string(10'000, static_cast<char>(i)));
  FolderSource source(scratch_.path(), {}, pool_);
  const Listing listing = List(source);
  Arena arena;
  std::vector<LoadedSample> samples;
  for (uint64_t row = 0; row < 50; ++row)
    samples.push_back(std::get<LoadedSample>(source.Load(listing, row, arena)));
  for (uint64_t row = 0; row < 50; ++row) {
    EXPECT_EQ(AsText(samples[row].fields[0].bytes), std::string(10'000, static_cast<char>(row)));
  }
}

// A worker has the listing from a plan file and never lists.
TEST_F(FolderSourceTest, LoadsFromAListingReadFromAPlan) {
  Write("a/1.jpg", "one");
  Write("b/2.jpg", "two");
  std::string bytes;
  {
    FolderSource source(scratch_.path(), {}, pool_);
    PlanOptions options;
    options.shuffle = false;
    bytes = Plan::Make(List(source), options, testing::PlainFormat())->ToBytes();
  }
  const auto plan = Plan::FromBytes(bytes, &testing::FindMadeUpFormat);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const FolderSource source(scratch_.path(), {}, pool_);
  EXPECT_EQ(Load(source, plan->listing(), plan->row(0)), "one");
  EXPECT_EQ(Load(source, plan->listing(), plan->row(1)), "two");
}

TEST_F(FolderSourceTest, WhatHappenedSinceListingIsASkip) {
  for (const char* name :
       {"grown", "shrunk", "gone", "rewritten", "fifo", "folder", "link", "same"}) {
    Write(absl::StrCat("c/", name, ".jpg"));
  }
  Write("gone/1.jpg");
  FolderSource source(scratch_.path(), {}, pool_);
  const Listing listing = List(source);
  const auto path = [&](const std::string& name) { return scratch_.File("c/" + name + ".jpg"); };
  std::ofstream(path("grown"), std::ios::app) << "more";
  ASSERT_EQ(truncate(path("shrunk").c_str(), 2), 0);
  fs::remove(path("gone"));
  std::ofstream(path("rewritten")) << "BYTES";
  const timespec later[2] = {{0, UTIME_OMIT}, {2'000'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path("rewritten").c_str(), later, 0), 0);
  for (const char* name : {"fifo", "folder", "link"}) fs::remove(path(name));
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0644), 0);
  fs::create_directory(path("folder"));
  fs::create_symlink("/etc/passwd", path("link"));
  fs::remove_all(scratch_.File("gone"));
  std::map<std::string, std::string> loaded;
  for (uint64_t row = 0; row < listing.rows(); ++row)
    loaded[listing.Path(row)] = Load(source, listing, row);
  const std::map<std::string, std::string> expected = {
      {"c/grown.jpg", "<changed>"},     {"c/shrunk.jpg", "<changed>"},
      {"c/gone.jpg", "<vanished>"},     {"c/rewritten.jpg", "<changed>"},
      {"c/fifo.jpg", "<not-regular>"},  {"c/folder.jpg", "<not-regular>"},
      {"c/link.jpg", "<outside-root>"}, {"c/same.jpg", "bytes"},
      {"gone/1.jpg", "<vanished>"}};
  EXPECT_EQ(loaded, expected);
}

TEST_F(FolderSourceTest, LinksAreLoadedLikeTheirTargets) {
  Write("a/1.jpg", "one");
  fs::create_directories(scratch_.File("b"));
  fs::create_symlink("../a/1.jpg", scratch_.File("b/link.jpg"));
  fs::create_directory_symlink("a", scratch_.File("c"));
  FolderSource source(scratch_.path(), {}, pool_);
  const Listing listing = List(source);
  ASSERT_EQ(listing.rows(), 3u);
  for (uint64_t row = 0; row < 3; ++row)
    EXPECT_EQ(Load(source, listing, row), "one") << listing.Path(row);
  fs::remove(scratch_.File("a/1.jpg"));
  EXPECT_EQ(Load(source, listing, 0), "<vanished>");
  EXPECT_EQ(Load(source, listing, 1), "<dangling>");
}

TEST_F(FolderSourceTest, MoreFoldersThanDescriptors) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {64, before.rlim_max};
  for (int i = 0; i < 200; ++i) Write(absl::StrCat("c", i, "/d/1.jpg"), absl::StrCat(i));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    FolderSource source(scratch_.path(), {}, pool_);
    const Listing listing = List(source);
    EXPECT_EQ(listing.rows(), 200u);
    pool_.ForEach(400, [&](size_t i) {
      const uint64_t row = i % 200;
      EXPECT_EQ("c" + Load(source, listing, row) + "/d/1.jpg", listing.Path(row));
    });
    EXPECT_LT(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()), 40);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

class FolderReadTest : public FolderSourceTest {
 protected:
  FolderReadTest() {
    Write("c/1.jpg", "0123456789");
    listing_ = List(source_);
  }
  ~FolderReadTest() override { FolderSyscallsForTesting() = real_; }

  static inline FolderSyscalls real_ = FolderSyscallsForTesting();
  static inline int calls_ = 0;
  FolderSource source_{scratch_.path(), {}, pool_};
  Listing listing_;
};

TEST_F(FolderReadTest, ShortReadsGoOn) {
  FolderSyscallsForTesting().read = [](int fd, void* buffer, size_t bytes) -> ssize_t {
    if (++calls_ % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    return real_.read(fd, buffer, std::min<size_t>(bytes, 3));
  };
  EXPECT_EQ(Load(source_, listing_, 0), "0123456789");
}

TEST_F(FolderReadTest, OneCallReadsAFile) {
  calls_ = 0;
  FolderSyscallsForTesting().read = [](int fd, void* buffer, size_t bytes) -> ssize_t {
    ++calls_;
    return real_.read(fd, buffer, bytes);
  };
  EXPECT_EQ(Load(source_, listing_, 0), "0123456789");
  EXPECT_EQ(calls_, 1);
}

TEST_F(FolderReadTest, AFileThatGrowsOrShrinksWhileItIsReadHasChanged) {
  FolderSyscallsForTesting().read = [](int, void*, size_t bytes) -> ssize_t {
    return static_cast<ssize_t>(bytes);
  };
  EXPECT_EQ(Load(source_, listing_, 0), "<changed>");
  FolderSyscallsForTesting().read = [](int, void*, size_t) -> ssize_t { return 0; };
  EXPECT_EQ(Load(source_, listing_, 0), "<changed>");
}

TEST_F(FolderReadTest, AnErrorOfReadingEndsTheRun) {
  static int error = 0;
  for (const int each : {EIO, EMFILE, ENOMEM, ESTALE}) {
    error = each;
    FolderSyscallsForTesting().read = [](int, void*, size_t) -> ssize_t {
      errno = error;
      return -1;
    };
    Arena arena;
    const LoadResult loaded = source_.Load(listing_, 0, arena);
    ASSERT_TRUE(std::holds_alternative<absl::Status>(loaded)) << strerror(error);
    EXPECT_TRUE(absl::IsUnavailable(std::get<absl::Status>(loaded)));
    EXPECT_THAT(std::get<absl::Status>(loaded).message(), HasSubstr("1.jpg: "));
    // Not every command has this flag.
    EXPECT_THAT(std::get<absl::Status>(loaded).message(), Not(HasSubstr("--exclude")));
  }
}

TEST_F(FolderReadTest, AFileThatMayNotBeReadIsASkip) {
  FolderSyscallsForTesting().openat = [](int at, const char* name, int flags) {
    if (std::string_view(name) != "1.jpg") return real_.openat(at, name, flags);
    errno = EACCES;
    return -1;
  };
  EXPECT_EQ(Load(source_, listing_, 0), "<permission>");
}

TEST_F(FolderReadTest, OwnersAloneMayLeaveTheAccessTime) {
  FolderSyscallsForTesting().openat = [](int at, const char* name, int flags) {
    if ((flags & O_NOATIME) == 0) return real_.openat(at, name, flags);
    ++calls_;
    errno = EPERM;
    return -1;
  };
  calls_ = 0;
  EXPECT_EQ(Load(source_, listing_, 0), "0123456789");
  EXPECT_EQ(Load(source_, listing_, 0), "0123456789");
  EXPECT_EQ(calls_, 1);  // refused once, not tried again
}

TEST(FolderSourceOptionsTest, OnlyWhatDiffersIsInTheMap) {
  EXPECT_TRUE(FolderSourceOptions().ToMap().empty());
  FolderSourceOptions options;
  options.label_dir = 1;
  options.label_dir_given = true;
  options.extensions = {"jpg", "png"};
  options.follow = true;
  EXPECT_EQ(options.ToMap(), (std::map<std::string, std::string>{
                                 {"ext", "jpg,png"}, {"follow", "on"}, {"label-from", "dir:1"}}));
}

}  // namespace
}  // namespace shardpack
