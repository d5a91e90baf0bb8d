#include "formats/io/exists.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "formats/io/list_folder.h"
#include "formats/testing/scratch_folder.h"

namespace shardpack {
namespace {

TEST(Exists, AnErrorOfLookingIsNoAnswer) {
  const testing::ScratchFolder scratch;
  const std::string file = scratch.File("file"), loop = scratch.File("loop");
  ASSERT_TRUE(File::CreateExclusive(file).ok());
  std::filesystem::create_symlink(loop, loop);
  EXPECT_TRUE(*Exists(file));
  EXPECT_TRUE(*Exists(loop)) << "a link counts";
  EXPECT_FALSE(*Exists(scratch.File("other")));
  EXPECT_FALSE(*Exists(file + "/below"));
  EXPECT_FALSE(Exists(loop + "/below").ok());
  EXPECT_FALSE(Exists(scratch.File(std::string(300, 'a'))).ok());
}

TEST(ListFolder, SortedNames) {
  const testing::ScratchFolder scratch;
  ASSERT_TRUE(MakeDirectory(scratch.File("folder")).ok());
  EXPECT_TRUE(ListFolder(scratch.File("folder"))->empty());
  for (const char* name : {"b", ".hidden", "a"})
    ASSERT_TRUE(MakeDirectory(scratch.File("folder/") + name).ok());
  EXPECT_EQ(*ListFolder(scratch.File("folder")), (std::vector<std::string>{".hidden", "a", "b"}));
  EXPECT_TRUE(absl::IsNotFound(ListFolder(scratch.File("other")).status()));
}

}  // namespace
}  // namespace shardpack
