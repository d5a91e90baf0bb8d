#include "formats/core/dataset_parts.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

TEST(DatasetParts, IndexAmongNames) {
  EXPECT_TRUE(HasIndex(std::vector<std::string>{"a.tar", "a.pidx"}));
  EXPECT_FALSE(HasIndex(std::vector<std::string>{"a.tar", ".pack", "pidx", "a.pidx.bak"}));
}

TEST(DatasetParts, AnIndexOrTheFolderOfABuild) {
  const testing::ScratchFolder scratch;
  std::ofstream(scratch.File("a.tar")) << "a shard";
  EXPECT_FALSE(HoldsDatasetParts(scratch.path()).value());
  std::filesystem::create_directory(scratch.File(".pack"));
  EXPECT_TRUE(HoldsDatasetParts(scratch.path()).value());
  std::filesystem::remove(scratch.File(".pack"));
  std::ofstream(scratch.File("a.pidx")) << "an index";
  EXPECT_TRUE(HoldsDatasetParts(scratch.path()).value());
}

}  // namespace
}  // namespace shardpack
