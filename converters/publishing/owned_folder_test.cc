#include "converters/publishing/owned_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "formats/testing/scratch_folder.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

class OwnedFolderTest : public ::testing::Test {
 protected:
  OwnedFolderTest() {
    Write("mine/out/train-000000.tar");
    Write("mine/out/.pack/stage/a/b");
    Write("mine/precious.txt");
    fs::create_directory(Path("mine/out/empty"));
  }
  std::string Path(const std::string& name) const { return scratch_.path() + "/" + name; }
  void Write(const std::string& name) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << "bytes";
  }
  // Everything below the scratch folder.
  std::set<std::string> All() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_.path()))
      names.insert(entry.path());
    return names;
  }
  OwnedFolder Out() const { return *OwnedFolder::Open(Path("mine/out")); }

  testing::ScratchFolder scratch_;
};

// Names that a crafted plan, journal or manifest, or a number past the end of a table, could
// produce.
std::vector<std::string> HostileNames() {
  return {"",
          "/",
          "//",
          ".",
          "..",
          "./",
          "../",
          "../precious.txt",
          "/etc/passwd",
          "a/",
          "/a",
          "a//b",
          "a/../b",
          ".pack/..",
          ".pack/../..",
          "./train-000000.tar",
          "train-000000.tar/",
          "train-000000.tar/..",
          std::string("a\0b", 3),
          std::string(1, '\0'),
          "a\nb",
          "caf\xc3\xa9",
          "\xff\xfe",
          "a b",
          "*",
          "~",
          "a\\b",
          std::string(256, 'a'),
          std::string(4096, 'a'),
          std::string(2048, '.'),
          [] {
            std::string deep = "a";
            for (int i = 0; i < 2047; ++i) deep += "/a";
            return deep;
          }()};
}

TEST_F(OwnedFolderTest, HostileNamesTouchNothing) {
  const OwnedFolder out = Out();
  const std::set<std::string> before = All();
  for (const std::string& name : HostileNames()) {
    EXPECT_FALSE(OwnedFolder::IsName(name)) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(out.RemoveFile(name))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(out.RemoveTree(name))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(out.List(name).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(out.RemoveEmptyFolder(name))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(out.Replace(name, "b"))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(out.Replace("train-000000.tar", name))) << name;
    EXPECT_EQ(before, All()) << name;
  }
}

TEST_F(OwnedFolderTest, RemovesWhatIsNamedAndNothingElse) {
  const OwnedFolder out = Out();
  EXPECT_TRUE(out.RemoveFile("train-000000.tar").ok());
  EXPECT_FALSE(fs::exists(Path("mine/out/train-000000.tar")));
  EXPECT_TRUE(out.RemoveFile("train-000000.tar").ok()) << "it is not there";
  EXPECT_TRUE(out.RemoveFile("no/such/folder").ok());
  EXPECT_TRUE(out.RemoveEmptyFolder(".pack").ok());
  EXPECT_TRUE(fs::exists(Path("mine/out/.pack/stage/a/b"))) << "it is not empty";
  EXPECT_TRUE(out.RemoveEmptyFolder("empty").ok());
  EXPECT_FALSE(fs::exists(Path("mine/out/empty")));
  EXPECT_TRUE(out.RemoveTree(".pack").ok());
  EXPECT_FALSE(fs::exists(Path("mine/out/.pack")));
  EXPECT_TRUE(fs::exists(Path("mine/out")));
  EXPECT_TRUE(fs::exists(Path("mine/precious.txt")));
}

TEST_F(OwnedFolderTest, AFolderIsNotAFile) {
  const OwnedFolder out = Out();
  EXPECT_TRUE(absl::IsFailedPrecondition(out.RemoveFile(".pack")));
  EXPECT_TRUE(absl::IsFailedPrecondition(out.RemoveEmptyFolder("train-000000.tar")));
  EXPECT_TRUE(absl::IsFailedPrecondition(out.Replace("train-000000.tar", ".pack")));
  EXPECT_TRUE(fs::exists(Path("mine/out/train-000000.tar")));
}

TEST_F(OwnedFolderTest, LinksAreNeverFollowed) {
  Write("mine/elsewhere/keep.txt");
  fs::create_directory_symlink(Path("mine/elsewhere"), Path("mine/out/link"));
  fs::create_directory_symlink(Path("mine/elsewhere"), Path("mine/out/.pack/stage/link"));
  fs::create_symlink(Path("mine/precious.txt"), Path("mine/out/file"));
  const OwnedFolder out = Out();
  EXPECT_TRUE(absl::IsFailedPrecondition(out.RemoveFile("link/keep.txt")));
  EXPECT_TRUE(absl::IsFailedPrecondition(out.RemoveTree("link/keep.txt")));
  EXPECT_TRUE(absl::IsFailedPrecondition(out.Replace("train-000000.tar", "link/keep.txt")));
  EXPECT_TRUE(out.RemoveTree(".pack").ok());
  EXPECT_TRUE(out.RemoveTree("link").ok());
  EXPECT_TRUE(out.RemoveFile("file").ok());
  EXPECT_FALSE(fs::exists(fs::symlink_status(Path("mine/out/link"))));
  EXPECT_FALSE(fs::exists(fs::symlink_status(Path("mine/out/file"))));
  EXPECT_TRUE(fs::exists(Path("mine/elsewhere/keep.txt")));
  EXPECT_TRUE(fs::exists(Path("mine/precious.txt")));
}

TEST_F(OwnedFolderTest, ReplacesAFile) {
  std::ofstream(Path("mine/out/.pack/stage/new")) << "new";
  EXPECT_TRUE(Out().Replace(".pack/stage/new", "train-000000.tar").ok());
  EXPECT_EQ("new", *ReadWholeFile(Path("mine/out/train-000000.tar"), 10));
  EXPECT_TRUE(absl::IsNotFound(Out().Replace(".pack/stage/new", "train-000000.tar")));
}

TEST_F(OwnedFolderTest, StaysInItsFolderWhenThePathIsSwapped) {
  const OwnedFolder out = Out();
  fs::rename(Path("mine/out"), Path("mine/moved"));
  Write("mine/out/train-000000.tar");
  EXPECT_TRUE(out.RemoveFile("train-000000.tar").ok());
  EXPECT_TRUE(fs::exists(Path("mine/out/train-000000.tar")));
  EXPECT_FALSE(fs::exists(Path("mine/moved/train-000000.tar")));
}

}  // namespace
}  // namespace shardpack
