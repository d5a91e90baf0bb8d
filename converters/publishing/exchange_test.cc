#include "converters/publishing/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "converters/publishing/pack_names.h"
#include "formats/io/file.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::ScratchFolder;
using ::testing::HasSubstr;
using ::testing::Not;

int answer = 0;     // the error of an exchange
bool done = false;  // whether it succeeds anyway

int Renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (done || (flags & RENAME_EXCHANGE) == 0) ::renameat2(from_folder, from, to_folder, to, flags);
  errno = answer;
  return -1;
}

class ExchangeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(Path("new/.pack/stage"));
    std::filesystem::create_directories(Path("out/.pack"));
    std::ofstream(Path("new/which")) << "new";
    std::ofstream(Path("out/which")) << "old";
  }
  void TearDown() override { SyscallsForTesting() = real_; }

  std::string Path(const std::string& name) const { return scratch_.File(name); }
  std::string Which(const std::string& folder) const {
    return ReadWholeFile(Path(folder + "/which"), 16).value_or("");
  }
  void Fail(int error, bool all_the_same = false) {
    answer = error;
    done = all_the_same;
    SyscallsForTesting().renameat2 = &Renameat2;
  }
  absl::Status Try() { return TryExchange(*OwnedFolder::Open(Path("new")), Path("out")); }
  bool Tried() const {
    return !std::filesystem::is_empty(Path("new/.pack/stage")) || Which("new") != "new";
  }

  const ScratchFolder scratch_;
  const Syscalls real_ = SyscallsForTesting();
};

TEST_F(ExchangeTest, IsTriedAndLeavesNothing) {
  EXPECT_TRUE(Try().ok()) << Try();
  EXPECT_FALSE(Tried());
}

TEST_F(ExchangeTest, WhereItIsNotKnownAnotherFolderIsTheWayOn) {
  for (const int error : {EINVAL, ENOSYS, EXDEV, EBUSY, EOPNOTSUPP}) {
    Fail(error);
    for (const absl::Status& status :
         {Try(), ExchangeFolders(Path("new"), Path("out"), Path("out"))}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(Path("out")));
      EXPECT_THAT(std::string(status.message()), HasSubstr("build into another folder"));
    }
    EXPECT_FALSE(Tried());
    EXPECT_EQ("old", Which("out"));
  }
  Fail(EIO);
  EXPECT_TRUE(absl::IsUnavailable(Try())) << Try();
  EXPECT_FALSE(Tried());
}

TEST_F(ExchangeTest, AReplyThatWasLostIsNoError) {
  Fail(EIO, /*all_the_same=*/true);
  EXPECT_TRUE(ExchangeFolders(Path("new"), Path("out"), Path("out")).ok());
  EXPECT_EQ("new", Which("out"));
  EXPECT_EQ("old", Which("new"));
}

TEST_F(ExchangeTest, OnlyWhatBearsTheMarkIsEmptied) {
  const ReplacedNote note{NewMark(), {"which"}};
  EXPECT_NE(note.mark, NewMark());
  std::ofstream(Path("new/.pack/replaced")) << ReplacedText(note);
  ASSERT_TRUE(*IsReplacement(Path("new")));
  EXPECT_FALSE(*FinishReplacement(Path("new"), Path("out")));
  ASSERT_TRUE(MarkReplaced(*OwnedFolder::Open(Path("out")), NewMark(), false).ok());
  EXPECT_FALSE(*FinishReplacement(Path("new"), Path("out")));
  ASSERT_TRUE(MarkReplaced(*OwnedFolder::Open(Path("out")), note.mark, true).ok());
  std::filesystem::create_directory_symlink(Path("out"), Path("link"));
  EXPECT_FALSE(*FinishReplacement(Path("new"), Path("link")));
  EXPECT_EQ("old", Which("out"));
  std::ofstream(Path("out/notes")) << "theirs";
  EXPECT_TRUE(absl::IsFailedPrecondition(FinishReplacement(Path("new"), Path("out")).status()));
  EXPECT_TRUE(std::filesystem::exists(Path("out/notes")));
  std::filesystem::remove(Path("out/notes"));
  EXPECT_TRUE(*FinishReplacement(Path("new"), Path("out")));
  EXPECT_FALSE(std::filesystem::exists(Path("out")));
  EXPECT_TRUE(*FinishReplacement(Path("new"), Path("out")));  // nothing is left there
}

TEST_F(ExchangeTest, NotesAreToldByTheirContent) {
  const std::string mark = NewMark();
  EXPECT_TRUE(IsReplacedText(mark + "\n"));
  EXPECT_TRUE(IsReplacedText(ReplacedText({mark, {"train-000000.tar"}})));
  EXPECT_TRUE(IsReplacedText(""));
  EXPECT_TRUE(IsReplacedText(std::string(40, '\0')));
  for (const std::string theirs : {"thesis\n", "train-000000.tar\n", "two words\n"})
    EXPECT_FALSE(IsReplacedText(theirs)) << theirs;
  EXPECT_FALSE(IsReplacedText(mark + "\ntwo words\n"));
  for (const std::string out : {"/data/out", "/data/a b", "/data/caf\xc3\xa9"}) {
    EXPECT_TRUE(IsReplacesText(ReplacesText(out))) << out;
    EXPECT_NE(ReplacesText(out), ReplacesText(out + "2"));
  }
  for (const std::string theirs : {"thesis\n", "thesis", "thesis\nthesis\n"})
    EXPECT_FALSE(IsReplacesText(theirs)) << theirs;
}

TEST_F(ExchangeTest, AFolderIsNoMountPoint) {
  EXPECT_TRUE(CheckNotMounted(Path("out")).ok()) << CheckNotMounted(Path("out"));
  EXPECT_TRUE(CheckNotMounted(Path("nothing")).ok());
  const absl::Status mounted = CheckNotMounted("/proc");
  EXPECT_TRUE(absl::IsFailedPrecondition(mounted)) << mounted;
  EXPECT_THAT(std::string(mounted.message()), HasSubstr("mount point"));
  EXPECT_THAT(std::string(mounted.message()), Not(HasSubstr("run again")));
}

}  // namespace
}  // namespace shardpack
