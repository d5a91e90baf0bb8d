#include "converters/extracting/output_tree.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "formats/testing/scratch_folder.h"

namespace {

int lock_error = 0;  // the errno of flock; 0: the system's behaviour

}  // namespace

// Replaces the C library's function.
extern "C" int flock(int descriptor, int operation) noexcept {
  if (lock_error != 0) {
    errno = lock_error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

namespace shardpack {
namespace {

namespace fs = std::filesystem;

class OutputTreeTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return scratch_.File(name); }
  static std::string Content(const std::string& path) { return *ReadWholeFile(path, 1 << 20); }

  testing::ScratchFolder scratch_;
};

TEST_F(OutputTreeTest, WritesFilesWithTheirFolders) {
  OutputTree tree = *OutputTree::Create(Path("a/b/out"), "all");
  EXPECT_EQ(tree.made_parent(), Path("a"));
  for (const char* name : {"top.jpg", "cat/1.jpg", "cat/deep/er/1.jpg", "dog/1.jpg", "cat/2.jpg"}) {
    EXPECT_EQ(tree.Write(name, 4, AsBytes(std::string_view(name))).value_or("failed"), name);
    EXPECT_EQ(Content(Path("a/b/out/") + name), name);
  }
  EXPECT_EQ(OutputTree::Create(Path("a/b/other"), "all")->made_parent(), "");
}

TEST_F(OutputTreeTest, WantsANewOrEmptyFolder) {
  EXPECT_TRUE(OutputTree::Create(Path("out"), "all")->Finish().ok());
  EXPECT_TRUE(OutputTree::Create(Path("out") + "/", "all")->Finish().ok());
  ASSERT_TRUE(MakeDirectory(Path("out/x")).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(OutputTree::Create(Path("out"), "all").status()));
  for (const char* name : {"manifest.json", ".pack"}) {
    const std::string dataset = Path(std::string("of-") + name);
    ASSERT_TRUE(MakeDirectory(dataset).ok() && MakeDirectory(dataset + "/" + name).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(OutputTree::Create(dataset, "all").status())) << name;
  }
  ASSERT_TRUE(File::CreateExclusive(Path("file")).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(OutputTree::Create(Path("file"), "all").status()));
}

TEST_F(OutputTreeTest, TheSameRequestGoesOn) {
  const auto write = [](OutputTree& tree, const char* path, std::string_view text) {
    return tree.Write(path, 0, AsBytes(text));
  };
  {
    OutputTree tree = *OutputTree::Create(Path("out"), "all");
    ASSERT_TRUE(write(tree, "cat/1", "one").ok() && write(tree, "2", "two").ok());
    EXPECT_EQ(*write(tree, "2", "other"), "2~" + write(tree, "2", "other")->substr(2));
    // Two runs at once would take each other's files.
    EXPECT_TRUE(absl::IsFailedPrecondition(OutputTree::Create(Path("out"), "all").status()));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(OutputTree::Create(Path("out"), "some").status()))
      << "another request";
  EXPECT_TRUE(OutputTree::Create(Path("out"), "all\nsaid in other words").ok());
  // The file that a killed run was writing.
  ASSERT_TRUE(File::CreateExclusive(Path("out/.pack-extract-part")).ok());
  ASSERT_TRUE(File::CreateExclusive(Path("out/mine")).ok());
  OutputTree tree = *OutputTree::Create(Path("out"), "all");
  EXPECT_EQ(*write(tree, "cat/1", "one"), "cat/1");
  EXPECT_EQ(*write(tree, "2", "two"), "2");
  EXPECT_EQ(write(tree, "2", "other")->substr(0, 2), "2~") << "a name that this run has given";
  const absl::Status refused = write(tree, "mine", "theirs").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("out/mine is there"), std::string_view::npos) << refused;
  EXPECT_EQ(Content(Path("out/mine")), "");
  EXPECT_EQ(*write(tree, "3", "three"), "3");
  ASSERT_TRUE(tree.Finish().ok());
  EXPECT_FALSE(fs::exists(Path("out/.pack-extract")));
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(Path("out")), {}), 6);
}

// It would mix two requests.
TEST_F(OutputTreeTest, AFolderWithAMarkOfNobodyIsNotGoneOnWith) {
  for (const bool folder : {false, true}) {
    const std::string out = Path(folder ? "folder" : "file");
    ASSERT_TRUE(OutputTree::Create(out, "all")->Write("1", 0, AsBytes(std::string_view("1"))).ok());
    fs::remove_all(out + "/.pack-extract");
    if (folder) {
      ASSERT_TRUE(MakeDirectory(out + "/.pack-extract").ok());
    } else {
      ASSERT_TRUE(File::CreateExclusive(out + "/.pack-extract").ok());
    }
    const absl::Status refused = OutputTree::Create(out, "some").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_EQ(Content(out + "/1"), "1");
  }
}

TEST_F(OutputTreeTest, AKilledRunThatHasNotBegunIsNoObstacle) {
  ASSERT_TRUE(MakeDirectory(Path("out")).ok());
  ASSERT_TRUE(File::CreateExclusive(Path("out/.pack-extract")).ok());
  EXPECT_TRUE(OutputTree::Create(Path("out"), "all").ok());
  EXPECT_TRUE(OutputTree::Create(Path("out"), "another one, and nothing is there yet").ok());
}

TEST_F(OutputTreeTest, WithoutLocksNothingIsWritten) {
  for (const int error : {ENOSYS, ENOLCK}) {
    lock_error = error;
    const absl::Status failed = OutputTree::Create(Path("out"), "all").status();
    lock_error = 0;
    EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
    EXPECT_TRUE(fs::is_empty(Path("out")));
  }
}

TEST_F(OutputTreeTest, APartThatItHasNotMadeStays) {
  OutputTree tree = *OutputTree::Create(Path("out"), "all");
  const std::string part = Path("out/.pack-extract-part");
  const Bytes mine = AsBytes(std::string_view("mine"));
  ASSERT_TRUE(File::CreateExclusive(part)->Write({&mine, 1}).ok());
  EXPECT_FALSE(tree.Write("1", 0, AsBytes(std::string_view("1"))).ok());
  EXPECT_EQ(ReadWholeFile(part, 10).value_or("gone"), "mine");
  ASSERT_TRUE(fs::remove(part));
  EXPECT_EQ(*tree.Write("1", 0, AsBytes(std::string_view("1"))), "1");
}

TEST_F(OutputTreeTest, NeverWritesThroughALink) {
  OutputTree tree = *OutputTree::Create(Path("out"), "all");
  ASSERT_TRUE(MakeDirectory(Path("away")).ok());
  ASSERT_TRUE(MakeDirectory(Path("out/cat")).ok());
  fs::create_directory_symlink(Path("away"), Path("out/dog"));
  fs::create_directory_symlink(Path("away"), Path("out/cat/deep"));
  fs::create_symlink(Path("away/new.jpg"), Path("out/cat/1.jpg"));
  for (const char* name : {"dog/1.jpg", "dog/a/1.jpg", "cat/deep/1.jpg", "cat/1.jpg"}) {
    const absl::StatusOr<std::string> written = tree.Write(name, 4, AsBytes(std::string_view("x")));
    EXPECT_TRUE(absl::IsFailedPrecondition(written.status())) << name << written.status();
    EXPECT_NE(written.status().message().find("link"), std::string_view::npos);
  }
  EXPECT_TRUE(fs::is_empty(Path("away")));
  // A folder that is replaced by a link after it was entered stays the original folder.
  ASSERT_TRUE(tree.Write("bird/1.jpg", 4, AsBytes(std::string_view("x"))).ok());
  fs::rename(Path("out/bird"), Path("out/moved"));
  fs::create_directory_symlink(Path("away"), Path("out/bird"));
  ASSERT_TRUE(tree.Write("bird/2.jpg", 4, AsBytes(std::string_view("x"))).ok());
  EXPECT_TRUE(fs::is_empty(Path("away")));
  EXPECT_TRUE(fs::exists(Path("out/moved/2.jpg")));
}

TEST_F(OutputTreeTest, ShortensNamesThatAreTooLong) {
  OutputTree tree = *OutputTree::Create(Path("out"), "all");
  std::string stem;
  for (int i = 0; i < 250; ++i) stem += "%0A";
  const std::string image = *tree.Write("cat/" + stem + ".jpg", 4, AsBytes(std::string_view("1")));
  const std::string mask =
      *tree.Write("cat/" + stem + ".mask.png", 9, AsBytes(std::string_view("2")));
  const std::string other = *tree.Write("cat/" + stem + "x.jpg", 4, AsBytes(std::string_view("3")));
  EXPECT_EQ(Content(Path("out/") + image), "1");
  EXPECT_EQ(Content(Path("out/") + mask), "2");
  EXPECT_EQ(Content(Path("out/") + other), "3");
  EXPECT_NE(image, other);
  EXPECT_LE(image.size(), 4u + 255);
  EXPECT_TRUE(image.ends_with(".jpg"));
  EXPECT_TRUE(mask.ends_with(".mask.png"));
  // The files of a sample stay together, and escapes are not split.
  const size_t hash = image.rfind('~');
  EXPECT_EQ(image.substr(hash, 17), mask.substr(mask.rfind('~'), 17));
  EXPECT_EQ(image.substr(hash - 3, 3), "%0A");
  const std::string folder =
      *tree.Write(std::string(300, 'f') + "/1.jpg", 4, AsBytes(std::string_view("4")));
  EXPECT_EQ(Content(Path("out/") + folder), "4");
  EXPECT_EQ(folder,
            *tree.Write(std::string(300, 'f') + "/1.jpg", 4, AsBytes(std::string_view("4"))));
}

TEST_F(OutputTreeTest, NamesThatAreTakenAreNotOverwritten) {
  OutputTree tree = *OutputTree::Create(Path("out"), "all");
  EXPECT_EQ(*tree.Write("a.json", 5, AsBytes(std::string_view("1"))), "a.json");
  EXPECT_EQ(*tree.Write("a.json", 5, AsBytes(std::string_view("1"))), "a.json");
  const std::string second = *tree.Write("a.json", 5, AsBytes(std::string_view("2")));
  EXPECT_NE(second, "a.json");
  EXPECT_TRUE(second.starts_with("a~") && second.ends_with(".json")) << second;
  EXPECT_EQ(Content(Path("out/a.json")), "1");
  EXPECT_EQ(Content(Path("out/") + second), "2");
  // A file in place of a folder, and the reverse.
  const std::string below = *tree.Write("a.json/1.jpg", 4, AsBytes(std::string_view("3")));
  EXPECT_EQ(Content(Path("out/") + below), "3");
  ASSERT_TRUE(tree.Write("b/1.jpg", 4, AsBytes(std::string_view("4"))).ok());
  const std::string file = *tree.Write("b", 0, AsBytes(std::string_view("5")));
  EXPECT_EQ(Content(Path("out/") + file), "5");
}

}  // namespace
}  // namespace shardpack
