#include "formats/io/same_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

class SameFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name) {
    std::ofstream(scratch_.File(name)) << "the same bytes";
    return scratch_.File(name);
  }

  testing::ScratchFolder scratch_;
};

TEST_F(SameFileTest, CopiesAreTwoFiles) {
  const auto found = FindSameFile(std::vector<std::string>{Write("a"), Write("b")});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->has_value());
}

TEST_F(SameFileTest, OneFileUnderTwoNames) {
  const std::string a = Write("a"), b = Write("b");
  std::filesystem::create_hard_link(b, scratch_.File("hard"));
  std::filesystem::create_symlink(b, scratch_.File("soft"));
  for (const std::string& again :
       {b, scratch_.File("hard"), scratch_.File("soft"), scratch_.File("./b")}) {
    const auto found = FindSameFile(std::vector<std::string>{a, b, Write("c"), again});
    ASSERT_TRUE(found.ok() && found->has_value()) << again;
    EXPECT_EQ((*found)->first, 1u);
    EXPECT_EQ((*found)->again, 3u);
  }
}

TEST_F(SameFileTest, WhatIsNotThereIsNoFileOfThese) {
  const std::string gone = scratch_.File("gone");
  const auto found = FindSameFile(std::vector<std::string>{gone, gone, Write("a")});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->has_value());
}

}  // namespace
}  // namespace shardpack
