// Parts of a folder: whatever is found or lost when it is divided, and whenever folders come, all
// of it is listed once; and only parts of that very list are taken.
#include "converters/sources/folder_parts.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "converters/sources/folder_listing.h"
#include "converters/threads/io_pool.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class FolderPartsTest : public ::testing::Test {
 protected:
  void Write(const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(scratch_.File(path)).parent_path());
    std::ofstream(scratch_.File(path)) << "bytes";
  }

  FolderDivision Divided(size_t most_parts = kMostFolderParts) const {
    return {FindFolderParts(root(), {}, stop_, most_parts), {.high = 1, .low = 2}};
  }

  absl::StatusOr<std::string> List(const FolderDivision& division, uint32_t part) {
    const SourceFolder folder = root();
    return FolderPartLister(folder, options_, division, pool_, listed_, stop_).List(part);
  }

  // The paths that all parts list together.
  std::vector<std::string> Joined(const FolderDivision& division) {
    FolderParts all(division);
    for (uint32_t part = 0; part < division.parts.size(); ++part) {
      const absl::Status added = all.Add(part, *List(division, part));
      EXPECT_TRUE(added.ok()) << added;
    }
    const absl::StatusOr<FolderWalk> walk = std::move(all).Join(scratch_.path());
    EXPECT_TRUE(walk.ok()) << walk.status();
    std::vector<std::string> paths;
    for (uint64_t row = 0; row < walk->listing.rows(); ++row)
      paths.push_back(walk->listing.Path(row));
    return paths;
  }

  SourceFolder root() const { return *OpenSourceFolder(scratch_.path()); }

  const testing::ScratchFolder scratch_;
  const FolderSourceOptions options_ = {};
  IoPool pool_{2};
  std::atomic<uint64_t> listed_ = 0;
  std::atomic<int> stop_ = 0;
};

TEST_F(FolderPartsTest, FoldersThatAppearLaterAreListed) {
  for (const char* path : {"cat/1.jpg", "dog/puppy/2.jpg"}) Write(path);
  const FolderDivision division = Divided();
  EXPECT_TRUE(division.IsWhole());
  for (const char* path : {"zebra/foal/3.jpg", "dog/old/4.jpg", "cat/kitten/5.jpg"}) Write(path);
  EXPECT_THAT(Joined(division), ElementsAre("cat/1.jpg", "cat/kitten/5.jpg", "dog/old/4.jpg",
                                            "dog/puppy/2.jpg", "zebra/foal/3.jpg"));
}

TEST_F(FolderPartsTest, FoldersThatTheDivisionMissedAreListed) {
  for (const char* path : {"cat/1.jpg", "dog/2.jpg", "emu/3.jpg"}) Write(path);
  const FolderDivision division = {.parts = {{""}, {"dog"}}, .mark = {}};
  ASSERT_TRUE(division.IsWhole());
  EXPECT_THAT(Joined(division), ElementsAre("cat/1.jpg", "dog/2.jpg", "emu/3.jpg"));
}

TEST_F(FolderPartsTest, AFolderInPlaceOfALinkIsListedOnce) {
  Write("cat/1.jpg");
  Write("dog/2.jpg");
  const FolderDivision division = Divided();
  std::filesystem::rename(scratch_.File("dog"), scratch_.File("wolf"));
  std::filesystem::create_symlink("wolf", scratch_.File("dog"));
  // The part of that name says that the folder turned into a link.
  EXPECT_THAT(Joined(division), ElementsAre("dog", "cat/1.jpg", "wolf/2.jpg"));
}

TEST_F(FolderPartsTest, NamesFoldersThatCouldNotBeListed) {
  for (const char* path : {"cat/1.jpg", "dog/old/2.jpg"}) Write(path);
  const FolderDivision division = {.parts = {{""}, {"cat", "dog/old"}}, .mark = {}};
  for (const char* path : {"cat", "dog/old"}) std::filesystem::remove_all(scratch_.File(path));
  std::vector<UnreadFolder> unread;
  const SourceFolder folder = root();
  const FolderPartLister lister(folder, options_, division, pool_, listed_, stop_);
  ASSERT_TRUE(lister.List(1, &unread).ok());
  EXPECT_THAT(unread, UnorderedElementsAre(UnreadFolder{"cat", SkipReason::kVanished},
                                           UnreadFolder{"dog/old", SkipReason::kVanished}));
}

TEST_F(FolderPartsTest, PartsHaveABound) {
  std::vector<std::string> want;
  for (int n = 0; n < 1100; ++n) {
    want.push_back(absl::StrCat("f", 1000 + n, "/1.jpg"));
    Write(want.back());
  }
  EXPECT_THAT(Divided().parts, SizeIs(1101));
  const FolderDivision few = Divided(10);
  EXPECT_THAT(few.parts, SizeIs(10));
  EXPECT_TRUE(few.IsWhole());
  EXPECT_EQ(Joined(few), want);
}

TEST_F(FolderPartsTest, OnlyPartsOfThisListAreTaken) {
  Write("cat/1.jpg");
  const FolderDivision division = Divided();
  ASSERT_THAT(division.parts, SizeIs(2));
  const std::string bytes = *List(division, 1);
  FolderDivision other = division;
  other.mark.low ^= 1;
  const std::string_view head = std::string_view(bytes).substr(0, kFolderPartHeadBytes);
  EXPECT_TRUE(CheckFolderPart(head, division, 1).ok());
  EXPECT_TRUE(FolderParts(division).Add(1, bytes).ok());
  for (const auto& [of, part] :
       std::vector<std::pair<const FolderDivision*, uint32_t>>{{&division, 0}, {&other, 1}}) {
    EXPECT_TRUE(absl::IsDataLoss(CheckFolderPart(head, *of, part)));
    EXPECT_THAT(FolderParts(*of).Add(part, bytes).message(), HasSubstr("not a part of this list"));
  }
  // It has the number of that part, and not its folders.
  other = {.parts = {{""}, {"cat", "dog"}}, .mark = division.mark};
  EXPECT_THAT(FolderParts(other).Add(1, bytes).message(),
              HasSubstr("does not hold the folder dog"));
}

TEST_F(FolderPartsTest, DivisionsThatAreNotWhole) {
  for (const std::vector<FolderPart>& parts :
       std::vector<std::vector<FolderPart>>{{},
                                            {{}},
                                            {{"cat"}},
                                            {{""}, {"cat"}, {"cat"}},
                                            {{"", "cat/deep"}},
                                            {{""}, {"../cat"}},
                                            {{""}, {"/cat"}},
                                            {{""}, {"cat/"}}}) {
    EXPECT_FALSE((FolderDivision{parts}.IsWhole())) << ::testing::PrintToString(parts);
  }
  EXPECT_TRUE((FolderDivision{{{"cat", "cat/deep"}, {""}}}.IsWhole()));
}

// Also in the middle of a folder.
TEST_F(FolderPartsTest, APartStopsWhenAsked) {
  for (int n = 0; n < 50; ++n) Write(absl::StrCat("cat/", n, ".jpg"));
  const FolderDivision division = Divided();
  static std::atomic<int>* stop = &stop_;
  static std::atomic<int> looks;
  static const FolderSyscalls real = FolderSyscallsForTesting();
  FolderSyscallsForTesting().fstatat = [](int folder, const char* name, struct stat* out,
                                          int flags) {
    if (++looks == 10) *stop = 1;
    return real.fstatat(folder, name, out, flags);
  };
  EXPECT_TRUE(absl::IsCancelled(List(division, 1).status()));
  EXPECT_EQ(looks, 10);
  EXPECT_TRUE(absl::IsCancelled(List(division, 0).status()));
  FolderSyscallsForTesting() = real;
  EXPECT_THAT(Divided().parts, IsEmpty());
  stop_ = 0;
  EXPECT_TRUE(List(division, 1).ok());
}

}  // namespace
}  // namespace shardpack
