// What a folder source lists: every kind of file and link, odd names, faults; nothing is lost
// silently.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;
using ::shardpack::testing::ScratchFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class FolderListingTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes = "bytes") {
    const fs::path full = scratch_.File(path);
    std::ofstream file(full, std::ios::binary);
    if (!file.is_open()) {
      fs::create_directories(full.parent_path());
      file.open(full, std::ios::binary);
    }
    file << bytes;
  }
  void Link(const std::string& target, const std::string& path) {
    const fs::path full = scratch_.File(path);
    fs::create_directories(full.parent_path());
    fs::create_symlink(target, full);
  }
  absl::StatusOr<Listing> TryList(const FolderSourceOptions& options = {},
                                  const std::string& folder = "") {
    IoPool pool(4);
    FolderSource source(folder.empty() ? scratch_.path() : scratch_.File(folder), options, pool);
    return source.List();
  }
  Listing List(const FolderSourceOptions& options = {}, const std::string& folder = "") {
    absl::StatusOr<Listing> listing = TryList(options, folder);
    if (!listing.ok()) ADD_FAILURE() << listing.status();
    return listing.ok() ? *std::move(listing) : Listing();
  }
  // path -> "" or the reason of its skip.
  static std::map<std::string, std::string> Rows(const Listing& listing) {
    std::map<std::string, std::string> rows;
    for (uint64_t row = 0; row < listing.rows(); ++row) rows[listing.Path(row)] = "";
    EXPECT_EQ(rows.size(), listing.rows()) << "a path twice";
    for (const Skip& skip : listing.skips)
      rows[listing.Path(skip.row)] = SkipReasonName(skip.reason);
    return rows;
  }

  ScratchFolder scratch_;
};

TEST_F(FolderListingTest, ClassFoldersInByteOrderWithSizesAndLabels) {
  Write("dog/2.JPG", "12345");
  Write("dog/10.jpeg", "123");
  Write("cat/x.png", "1");
  Write("cat/deep/y.webp", "12");
  Write("cat-b/z.gif", "1");
  Write("dog/notes.TXT");
  Write("dog/README");
  const Listing listing = List();
  EXPECT_THAT(listing.folders, ElementsAre("cat", "cat-b", "cat/deep", "dog"));
  EXPECT_THAT(Rows(listing), UnorderedElementsAre(Pair("cat/x.png", ""), Pair("cat-b/z.gif", ""),
                                                  Pair("cat/deep/y.webp", ""),
                                                  Pair("dog/10.jpeg", ""), Pair("dog/2.JPG", "")));
  EXPECT_EQ(listing.Path(3), "dog/10.jpeg");
  EXPECT_THAT(listing.bytes, ElementsAre(1, 1, 2, 3, 5));
  EXPECT_THAT(listing.label, ElementsAre(0, 1, 0, 2, 2));
  EXPECT_THAT(listing.classes, ElementsAre("cat", "cat-b", "dog"));
  EXPECT_THAT(listing.ignored, ElementsAre(Pair("", 1), Pair("txt", 1)));
  EXPECT_GT(listing.mtime_ns[0], 1'600'000'000'000'000'000);
  EXPECT_EQ(listing.root, fs::canonical(scratch_.path()).string());
}

TEST_F(FolderListingTest, DoesNotDependOnThreadsOrOrderOfCreation) {
  std::vector<std::string> paths;
  for (int i = 0; i < 4500; ++i)
    paths.push_back(absl::StrCat("big/", i, ".jpg"));  // several chunks of one folder
  for (int i = 0; i < 300; ++i)
    paths.push_back(absl::StrCat("c", i % 30, "/d", i % 7, "/", i, ".jpg"));
  std::mt19937 random(1);
  Digest first;
  for (const int threads : {1, 16}) {
    std::shuffle(paths.begin(), paths.end(), random);
    const std::string folder = absl::StrCat("t", threads);
    for (const std::string& path : paths) Write(absl::StrCat(folder, "/", path), path);
    IoPool pool(threads);
    FolderSource source(scratch_.File(folder), {}, pool);
    const auto listing = source.List();
    ASSERT_TRUE(listing.ok()) << listing.status();
    EXPECT_EQ(listing->rows(), paths.size());
    EXPECT_EQ(source.listed(), paths.size());
    for (uint64_t row = 0; row < listing->rows(); ++row) {
      ASSERT_EQ(listing->bytes[row], listing->Path(row).size());
      if (row == 0) continue;
      const auto place = [&](uint64_t r) {
        return std::pair(listing->folders[listing->folder[r]], listing->Name(r));
      };
      ASSERT_LT(place(row - 1), place(row));
    }
    if (threads == 1) first = listing->ComputeDigest();
    EXPECT_EQ(listing->ComputeDigest(), first);
  }
}

TEST_F(FolderListingTest, OddNames) {
  const std::vector<std::string> names = {"new\nline.jpg",
                                          "\x1B[31mred.jpg",
                                          "-leading.jpg",
                                          "latin\xE9.jpg",
                                          " .jpg",
                                          ".hidden.jpg",
                                          ".jpg",
                                          "a.b.c.JPG",
                                          "quote'\".png",
                                          "back\\slash.jpg",
                                          std::string(251, 'x') + ".jpg",
                                          "\xF0\x9F\x98\xBA.gif"};
  for (const std::string& name : names) Write("c/" + name, name);
  const Listing listing = List();
  EXPECT_EQ(listing.rows(), names.size());
  for (uint64_t row = 0; row < listing.rows(); ++row)
    EXPECT_EQ(listing.bytes[row], listing.Name(row).size());
}

TEST_F(FolderListingTest, PathsLongerThanTheSystemTakes) {
  const std::string component(250, 'd');
  Descriptor folder(open(scratch_.path().c_str(), O_PATH | O_DIRECTORY));
  for (int depth = 0; depth < 20; ++depth) {
    ASSERT_EQ(mkdirat(folder.get(), component.c_str(), 0755), 0);
    folder = Descriptor(openat(folder.get(), component.c_str(), O_PATH | O_DIRECTORY));
  }
  {
    const Descriptor file(openat(folder.get(), "deep.jpg", O_WRONLY | O_CREAT, 0644));
    ASSERT_EQ(write(file.get(), "12345", 5), 5);
  }
  IoPool pool(2);
  FolderSource source(scratch_.path(), {}, pool);
  const auto listing = source.List();
  ASSERT_TRUE(listing.ok()) << listing.status();
  ASSERT_EQ(listing->rows(), 1u);
  EXPECT_EQ(listing->Path(0).size(), 20 * 251 + 8);
  Arena arena;
  EXPECT_TRUE(std::holds_alternative<LoadedSample>(source.Load(*listing, 0, arena)));
}

TEST_F(FolderListingTest, LinksInsideTheRootPackOthersAreSkipped) {
  ScratchFolder outside;
  std::ofstream(outside.File("o.jpg")) << "outside";
  Write("a/1.jpg");
  Link("../a/1.jpg", "b/inside.jpg");
  Link(scratch_.File("a/1.jpg"), "b/absolute.jpg");
  Link(outside.File("o.jpg"), "b/outside.jpg");
  Link(outside.path(), "b/outside-folder");
  Link("nowhere.jpg", "b/dangling.jpg");
  Link("nowhere", "b/dangling-folder");
  Link("nowhere.txt", "b/ignored.txt");
  Link("me.jpg", "b/me.jpg");
  Link("a", "linked");
  Link("..", "a/up");
  Link(".", "a/self");
  Write("a/notes.txt");
  Link("notes.txt", "a/text-as.jpg");
  const Listing listing = List({.label_from = FolderSourceOptions::LabelFrom::kNone});
  EXPECT_THAT(Rows(listing),
              UnorderedElementsAre(
                  Pair("a/1.jpg", ""), Pair("a/text-as.jpg", ""), Pair("a/up", "symlink-loop"),
                  Pair("a/self", "symlink-loop"), Pair("b/inside.jpg", ""),
                  Pair("b/absolute.jpg", ""), Pair("b/outside.jpg", "outside-root"),
                  Pair("b/outside-folder", "outside-root"), Pair("b/dangling.jpg", "dangling"),
                  Pair("b/dangling-folder", "dangling"), Pair("b/me.jpg", "symlink-loop"),
                  Pair("linked/1.jpg", ""), Pair("linked/text-as.jpg", ""),
                  Pair("linked/up", "symlink-loop"), Pair("linked/self", "symlink-loop")));
}

TEST_F(FolderListingTest, AFolderThatIsPackedTwiceIsNamed) {
  ScratchFolder outside;
  fs::create_directories(outside.File("deep"));
  std::ofstream(outside.File("deep/o.jpg")) << "outside";
  Write("dog/deep/1.jpg");
  Write("hidden/1.jpg");
  Write("empty/notes.txt");
  Link("dog", "puppy");
  Link("empty", "nothing");
  Link("../hidden", "cat/only");
  Link(outside.path(), "out");
  Link(outside.File("deep"), "again");
  FolderSourceOptions options = {.label_from = FolderSourceOptions::LabelFrom::kNone};
  options.exclude = {"hidden/"};
  EXPECT_THAT(List(options).warnings,
              ElementsAre(AllOf(HasSubstr("a link leads to"), HasSubstr(": puppy (to dog);"),
                                HasSubstr("--exclude /puppy/ "))));
  options.follow = true;
  EXPECT_THAT(List(options).warnings,
              ElementsAre(HasSubstr(": again (to out/deep), puppy (to dog);")));
  options.exclude = {"hidden/", "/puppy/", "/out/"};
  EXPECT_THAT(List(options).warnings, IsEmpty());
}

// Like a folder that cannot be listed: nobody knows what it holds.
TEST_F(FolderListingTest, LinksInTheirPlaceAreFoldersThatAreNotRead) {
  ScratchFolder outside;
  std::ofstream(outside.File("o.jpg")) << "outside";
  Write("a/1.jpg");
  Link(outside.path(), "cat");
  Link("nowhere", "dog");
  Link(outside.path(), "a/deep");
  Link("nowhere.jpg", "a/file.jpg");
  Link("a", "inside");
  Link(outside.path(), "left");
  Link("nowhere", "left-too");
  FolderSourceOptions options = {.label_from = FolderSourceOptions::LabelFrom::kNone};
  options.exclude = {"left/", "left-too/"};
  const Listing listing = List(options);
  EXPECT_THAT(listing.unread_folders,
              ElementsAre(UnreadFolder{"a/deep", SkipReason::kOutsideRoot},
                          UnreadFolder{"cat", SkipReason::kOutsideRoot},
                          UnreadFolder{"dog", SkipReason::kDangling},
                          UnreadFolder{"inside/deep", SkipReason::kOutsideRoot}));
  EXPECT_THAT(Rows(listing),
              UnorderedElementsAre(Pair("a/1.jpg", ""), Pair("a/deep", "outside-root"),
                                   Pair("a/file.jpg", "dangling"), Pair("cat", "outside-root"),
                                   Pair("dog", "dangling"), Pair("inside/1.jpg", ""),
                                   Pair("inside/deep", "outside-root"),
                                   Pair("inside/file.jpg", "dangling")));
  options.follow = true;
  EXPECT_THAT(List(options).unread_folders,
              ElementsAre(UnreadFolder{"dog", SkipReason::kDangling}));
}

TEST_F(FolderListingTest, FollowTakesWhatLiesOutside) {
  ScratchFolder outside;
  std::ofstream(outside.File("o.jpg")) << "outside";
  Write("a/1.jpg");
  Link(outside.File("o.jpg"), "a/o.jpg");
  Link(outside.path(), "b");
  fs::create_symlink(outside.path(), outside.File("again"));
  EXPECT_THAT(Rows(List({.follow = true})),
              UnorderedElementsAre(Pair("a/1.jpg", ""), Pair("a/o.jpg", ""), Pair("b/o.jpg", ""),
                                   Pair("b/again", "symlink-loop")));
}

TEST_F(FolderListingTest, LinksAcrossFoldersDoNotMultiplyWithoutEnd) {
  for (int a = 0; a < 6; ++a) {
    Write(absl::StrCat("f", a, "/1.jpg"));
    for (int b = 0; b < 6; ++b) Link(absl::StrCat("../f", b), absl::StrCat("f", a, "/to", b));
  }
  const Listing listing = List();
  EXPECT_LT(listing.rows(), 20'000u);
}

TEST_F(FolderListingTest, WhatIsNoFileIsSkippedAndNeverWaitedFor) {
  Write("c/1.jpg");
  ASSERT_EQ(mkfifo(scratch_.File("c/fifo.jpg").c_str(), 0644), 0);
  ASSERT_EQ(mkfifo(scratch_.File("c/fifo").c_str(), 0644), 0);
  ASSERT_EQ(mknod(scratch_.File("c/socket.png").c_str(), S_IFSOCK | 0644, 0), 0);
  fs::create_directories(scratch_.File("c/folder.jpg"));
  Write("c/folder.jpg/2.jpg");
  Link("/dev/null", "c/null.jpg");
  const Listing listing = List({.follow = true});
  EXPECT_THAT(
      Rows(listing),
      UnorderedElementsAre(Pair("c/1.jpg", ""), Pair("c/fifo.jpg", "not-regular"),
                           Pair("c/socket.png", "not-regular"), Pair("c/null.jpg", "not-regular"),
                           Pair("c/folder.jpg/2.jpg", "")));
}

TEST_F(FolderListingTest, EmptyAndHugeFilesAreSkipped) {
  Write("c/1.jpg");
  Write("c/empty.jpg", "");
  Write("c/sparse.jpg");
  ASSERT_EQ(truncate(scratch_.File("c/sparse.jpg").c_str(), off_t{1} << 40), 0);
  Write("c/limit.jpg", std::string(100, 'x'));
  Write("c/over.jpg", std::string(101, 'x'));
  EXPECT_THAT(Rows(List({.max_file_bytes = 100})),
              UnorderedElementsAre(Pair("c/1.jpg", ""), Pair("c/empty.jpg", "empty"),
                                   Pair("c/sparse.jpg", "too-large"), Pair("c/limit.jpg", ""),
                                   Pair("c/over.jpg", "too-large")));
}

// Root may read everything, so the test's thread (and its pool) first drops that capability.
void DropPowersOfRoot() {
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[2] = {};
  ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
}

TEST_F(FolderListingTest, AFolderWithoutPermissionIsOneRow) {
  Write("closed/1.jpg");
  Write("closed/2.jpg");
  Write("open/1.jpg");
  Write("open/closed/1.jpg");
  Write("open/secret.jpg");
  for (const char* path : {"closed", "open/closed", "open/secret.jpg"}) {
    fs::permissions(scratch_.File(path), fs::perms::none);
  }
  std::thread([&] {
    DropPowersOfRoot();
    IoPool pool(2);
    FolderSource source(scratch_.path(), {}, pool);
    const auto listing = source.List();
    ASSERT_TRUE(listing.ok()) << listing.status();
    EXPECT_THAT(Rows(*listing), UnorderedElementsAre(
                                    Pair("closed", "permission"), Pair("open/closed", "permission"),
                                    Pair("open/1.jpg", ""), Pair("open/secret.jpg", "")));
    EXPECT_THAT(listing->unread_folders,
                ElementsAre(UnreadFolder{"closed", SkipReason::kPermission},
                            UnreadFolder{"open/closed", SkipReason::kPermission}));
    ASSERT_EQ(listing->Path(3), "open/secret.jpg");
    Arena arena;
    const LoadResult loaded = source.Load(*listing, 3, arena);
    ASSERT_TRUE(std::holds_alternative<Skip>(loaded));
    EXPECT_EQ(std::get<Skip>(loaded).reason, SkipReason::kPermission);
  }).join();
  for (const char* path : {"closed", "open/closed"})
    fs::permissions(scratch_.File(path), fs::perms::owner_all);
}

TEST_F(FolderListingTest, ABadSourceIsNamedWithItsFault) {
  Write("file.jpg");
  fs::create_directories(scratch_.File("empty/er"));
  Write("texts/a.csv");
  Write("texts/b.csv");
  Write("texts/c");
  Link("gone", "link");
  for (const auto& [folder, words] : std::map<std::string, std::vector<std::string>>{
           {"missing", {"does not exist"}},
           {"file.jpg", {"is not a folder"}},
           {"link", {"link to nothing"}},
           {"empty", {"holds no image"}},
           {"texts", {"3 other files", ".csv 2", "--ext csv"}}}) {
    const auto listing = TryList({}, folder);
    ASSERT_FALSE(listing.ok()) << folder;
    EXPECT_TRUE(absl::IsInvalidArgument(listing.status())) << listing.status();
    for (const std::string& word : words) EXPECT_THAT(listing.status().ToString(), HasSubstr(word));
    EXPECT_THAT(listing.status().ToString(), HasSubstr(folder));
  }
  EXPECT_EQ(List({.any_extension = true}, "texts").rows(), 3u);
  EXPECT_EQ(List({.extensions = {".CSV"}}, "texts").rows(), 2u);
}

TEST_F(FolderListingTest, ExcludedFilesAndFoldersAreNoInputs) {
  Write("a/1.jpg");
  Write("a/thumbs/2.jpg");
  Write("a/3_mask.png");
  EXPECT_THAT(Rows(List({.exclude = {"thumbs/", "*_mask.png"}})),
              UnorderedElementsAre(Pair("a/1.jpg", "")));
  EXPECT_THAT(Rows(List({.include = {"a/*.png"}})), UnorderedElementsAre(Pair("a/3_mask.png", "")));
}

TEST_F(FolderListingTest, StrayFilesAreAnErrorAndEmptyFoldersAWarning) {
  Write("a/1.jpg");
  fs::create_directories(scratch_.File("b"));
  EXPECT_THAT(List().warnings, ElementsAre(HasSubstr("b")));
  Write("stray.jpg");
  const auto listing = TryList();
  EXPECT_THAT(listing.status().ToString(), AllOf(HasSubstr("stray.jpg"), HasSubstr("--exclude")));
  EXPECT_EQ(List({.label_from = FolderSourceOptions::LabelFrom::kNone}).label,
            (std::vector<int32_t>{-1, -1}));
}

// Faults are injected into the system calls by name or by count.
std::atomic<int> calls_before_fault{0};
std::atomic<int> fault{0};

class FolderFaultTest : public FolderListingTest {
 protected:
  ~FolderFaultTest() override { FolderSyscallsForTesting() = real_; }

  static inline FolderSyscalls real_ = FolderSyscallsForTesting();
};

// Threads decide which folder the n-th call reads; the failing call reports it.
std::string failed_folder;

TEST_F(FolderFaultTest, AnErrorWhileListingEndsItAndNamesTheFolder) {
  for (int folder = 0; folder < 5; ++folder) Write(absl::StrCat("class\n", folder, "/1.jpg"));
  FolderSyscallsForTesting().getdents = [](int fd, void* buffer, size_t bytes) -> ssize_t {
    if (calls_before_fault.fetch_sub(1) != 0) return real_.getdents(fd, buffer, bytes);
    failed_folder = std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", fd));
    errno = EIO;
    return -1;
  };
  for (int after = 0; after < 12; ++after) {  // two calls per folder, six folders
    calls_before_fault = after;
    failed_folder.clear();
    const auto listing = TryList();
    ASSERT_FALSE(listing.ok()) << after;
    EXPECT_TRUE(absl::IsUnavailable(listing.status())) << listing.status();
    ASSERT_NE(failed_folder, "") << after;
    EXPECT_THAT(listing.status().ToString(),
                HasSubstr(absl::StrReplaceAll(failed_folder, {{"\n", "\\x0a"}})));
  }
  calls_before_fault = 12;
  EXPECT_TRUE(TryList().ok());
}

TEST_F(FolderFaultTest, AFolderThatVanishesIsARow) {
  Write("a/1.jpg");
  Write("b/1.jpg");
  FolderSyscallsForTesting().openat = [](int at, const char* name, int flags) {
    if (std::string_view(name) == "b") {
      errno = ENOENT;
      return -1;
    }
    return real_.openat(at, name, flags);
  };
  const Listing listing = List();
  EXPECT_THAT(Rows(listing), UnorderedElementsAre(Pair("a/1.jpg", ""), Pair("b", "vanished")));
  EXPECT_THAT(listing.unread_folders, ElementsAre(UnreadFolder{"b", SkipReason::kVanished}));
}

TEST_F(FolderFaultTest, AFileThatVanishesIsASkipAndAStatErrorEndsTheListing) {
  Write("a/1.jpg");
  Write("a/2.jpg");
  FolderSyscallsForTesting().fstatat = [](int at, const char* name, struct stat* out, int flags) {
    if (std::string_view(name) != "1.jpg") return real_.fstatat(at, name, out, flags);
    errno = fault;
    return -1;
  };
  fault = ENOENT;
  EXPECT_THAT(Rows(List()), UnorderedElementsAre(Pair("a/1.jpg", "vanished"), Pair("a/2.jpg", "")));
  fault = EACCES;
  EXPECT_THAT(Rows(List()),
              UnorderedElementsAre(Pair("a/1.jpg", "permission"), Pair("a/2.jpg", "")));
  fault = EIO;
  EXPECT_THAT(TryList().status().ToString(), AllOf(HasSubstr("a/1.jpg"), HasSubstr("UNAVAILABLE")));
}

TEST_F(FolderFaultTest, ALackOfDescriptorsIsWaitedOut) {
  Write("a/1.jpg");
  FolderSyscallsForTesting().openat = [](int at, const char* name, int flags) {
    if (calls_before_fault.fetch_sub(1) > 0) {
      errno = EMFILE;
      return -1;
    }
    return real_.openat(at, name, flags);
  };
  calls_before_fault = 4;
  EXPECT_EQ(List().rows(), 1u);
}

// File systems that do not give the type of an entry (DT_UNKNOWN).
TEST_F(FolderFaultTest, EntriesOfUnknownTypeAreLookedAt) {
  Write("a/1.jpg");
  Write("a/2.txt");
  Write("a/b/3.png");
  Link("1.jpg", "a/link.jpg");
  ASSERT_EQ(mkfifo(scratch_.File("a/fifo").c_str(), 0644), 0);
  const Digest known = List().ComputeDigest();
  const auto ignored = List().ignored;
  FolderSyscallsForTesting().getdents = [](int fd, void* buffer, size_t bytes) -> ssize_t {
    const ssize_t got = real_.getdents(fd, buffer, bytes);
    for (ssize_t at = 0; at < got;) {
      char* const entry = static_cast<char*>(buffer) + at;
      entry[18] = 0;  // d_type
      uint16_t length;
      memcpy(&length, entry + 16, sizeof(length));
      at += length;
    }
    return got;
  };
  EXPECT_EQ(List().ComputeDigest(), known);
  EXPECT_EQ(List().ignored, ignored);
}

}  // namespace
}  // namespace shardpack
