#include "converters/repairing/repair_folder.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "converters/publishing/journal.h"
#include "formats/io/hash.h"
#include "formats/testing/fault_injection.h"
#include "formats/testing/scratch_folder.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;

class RepairFolderTest : public ::testing::Test {
 protected:
  RepairFolderTest() {
    Write("out/train-000000.tar", "damaged");
    Write("precious.txt", "mine");
  }
  std::string Path(const std::string& name) const { return scratch_.path() + "/" + name; }
  void Write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << bytes;
  }
  std::string Text(const std::string& name) const {
    std::ifstream in(Path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::set<std::string> All() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_.path()))
      names.insert(entry.path());
    return names;
  }
  static FileEntry Entry(const std::string& name, const std::string& bytes) {
    return {name, bytes.size(), Xxh3_128(AsBytes(bytes))};
  }
  absl::StatusOr<std::string> Publish(const std::string& name, const std::string& bytes = "whole") {
    absl::StatusOr<RepairFolder> folder = RepairFolder::Open(Path("out"), false);
    EXPECT_TRUE(folder.ok()) << folder.status();
    EXPECT_TRUE(folder->Stage("rebuilt", bytes).ok());
    return folder->Publish("rebuilt", Entry(name, "whole"));
  }

  testing::ScratchFolder scratch_;
};

TEST_F(RepairFolderTest, PublishesWhatHasTheHashAndNothingElse) {
  EXPECT_EQ("other bytes", *Publish("train-000000.tar", "wrong"));
  EXPECT_EQ("damaged", Text("out/train-000000.tar"));
  EXPECT_EQ("", *Publish("train-000000.tar"));
  EXPECT_EQ("whole", Text("out/train-000000.tar"));
  EXPECT_EQ("", *Publish("train-000001/data.mdb"));
  EXPECT_EQ("whole", Text("out/train-000001/data.mdb"));
  EXPECT_FALSE(fs::exists(Path("out/.pack")));
}

// The failure says nothing about the source's bytes.
TEST_F(RepairFolderTest, AStagedFileThatCannotBeReadIsAnError) {
  absl::StatusOr<RepairFolder> folder = RepairFolder::Open(Path("out"), false);
  ASSERT_TRUE(folder.ok() && folder->Stage("rebuilt", "whole").ok());
  testing::FaultInjection faults;
  faults.FailReadsAt(0, EIO);
  const auto damage = folder->Publish("rebuilt", Entry("train-000000.tar", "whole"));
  EXPECT_TRUE(absl::IsUnavailable(damage.status())) << damage.status();
  EXPECT_EQ("damaged", Text("out/train-000000.tar"));
}

TEST_F(RepairFolderTest, HostileNamesTouchNothing) {
  fs::create_directory_symlink(Path("elsewhere"), Path("out/link"));
  const std::set<std::string> before = All();
  const std::string names[] = {"",
                               ".",
                               "..",
                               "/",
                               "../precious.txt",
                               "/etc/passwd",
                               "a/../../precious.txt",
                               "a/",
                               "a//b",
                               "a/b/c",
                               ".pack/lock",
                               ".hidden",
                               "./train-000000.tar",
                               "link/x",
                               "caf\xc3\xa9",
                               std::string("a\0b", 3),
                               std::string(4096, 'x'),
                               "precious.txt/../x"};
  for (const std::string& name : names) {
    EXPECT_FALSE(Publish(name).ok()) << name;
    EXPECT_EQ(before, All()) << name;
  }
  EXPECT_EQ("mine", Text("precious.txt"));
  // The same for staging.
  absl::StatusOr<RepairFolder> folder = RepairFolder::Open(Path("out"), false);
  for (const std::string name : {"", "..", "../../../precious.txt", "/etc/passwd"}) {
    EXPECT_FALSE(folder->Stage(name, "x").ok()) << name;
    EXPECT_FALSE(folder->Discard(name).ok()) << name;
    EXPECT_FALSE(folder->Publish(name, Entry("train-000000.tar", "mine")).ok()) << name;
  }
  EXPECT_EQ("mine", Text("precious.txt"));
  EXPECT_EQ("damaged", Text("out/train-000000.tar"));
}

TEST_F(RepairFolderTest, FoldersAndLinksInTheWayStay) {
  fs::create_directories(Path("out/train-000001.tar/mine"));
  EXPECT_FALSE(Publish("train-000001.tar").ok());
  EXPECT_TRUE(fs::exists(Path("out/train-000001.tar/mine")));
  fs::create_directories(Path("elsewhere"));
  fs::create_directory_symlink(Path("elsewhere"), Path("out/train-000002"));
  EXPECT_FALSE(Publish("train-000002/data.mdb").ok());
  EXPECT_TRUE(fs::is_empty(Path("elsewhere")));
}

TEST_F(RepairFolderTest, WhatABuildOrAnIndexHasNotFinishedStays) {
  const std::pair<std::string, std::string> unfinished[] = {
      {"out/.pack/plan", "SPKPLAN1"},
      {"out/.pack/index", "theirs"},
      {"out/.pack/journal.jsonl", ToJournalLine(ShardResult())}};
  for (const auto& [name, text] : unfinished) {
    Write(name, text);
    Write("out/.pack/stage/rebuilt", "theirs");
    EXPECT_FALSE(RepairFolder::Open(Path("out"), false).ok()) << name;
    EXPECT_EQ(text, Text(name));
    EXPECT_EQ("theirs", Text("out/.pack/stage/rebuilt"));
    fs::remove(Path(name));
  }
  EXPECT_TRUE(RepairFolder::Open(Path("out"), false).ok());
  EXPECT_FALSE(fs::exists(Path("out/.pack")));
}

// A user's files: they do not get in the way, and are not removed.
TEST_F(RepairFolderTest, WhatPackHasNotPutIntoItsFolderStays) {
  const std::string names[] = {"mine",          "journal-notes.jsonl", "stage/mine",
                               "stage/notes/a", "stage/build/a",       "stage/x.lock"};
  for (const std::string& name : names) Write("out/.pack/" + name, "theirs");
  Write("out/.pack/stage/rebuilt", "half");
  Write("out/.pack/stage/build/manifest.json", "half");
  EXPECT_EQ("", *Publish("train-000000.tar"));
  for (const std::string& name : names) EXPECT_EQ("theirs", Text("out/.pack/" + name)) << name;
  EXPECT_FALSE(fs::exists(Path("out/.pack/stage/rebuilt")));
  EXPECT_FALSE(fs::exists(Path("out/.pack/lock")));
}

}  // namespace
}  // namespace shardpack
