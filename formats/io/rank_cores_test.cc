#include "formats/io/rank_cores.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "formats/io/resources.h"
#include "formats/testing/scratch_folder.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

// Processes and control groups, as the kernel shows them.
class Node {
 public:
  void AddGroup(const std::string& group, const std::string& quota) {
    Write("/sys/fs/cgroup" + group + "/cpu.max", quota + "\n");
  }
  void AddProcess(int id, int parent, const std::string& cores, const std::string& group,
                  bool is_rank = false) {
    const std::string folder = "/proc/" + std::to_string(id);
    Write(folder + "/status", "Name:\tit\nPPid:\t" + std::to_string(parent) +
                                  "\nCpus_allowed:\tff\nCpus_allowed_list:\t" + cores + "\n");
    Write(folder + "/cgroup", "0::" + group + "\n");
    std::string environment("HOME=/\0", 7);
    if (is_rank) environment += std::string("LOCAL_WORLD_SIZE=8\0", 19);
    Write(folder + "/environ", environment);
  }
  int Launcher(int process) const { return CoresOfLauncher(scratch_.path(), process); }

 private:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = scratch_.path() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::binary) << text;
  }

  testing::ScratchFolder scratch_;
};

TEST(RankCoresTest, RanksOfANodeShareItsCores) {
  EXPECT_EQ(ShareOfCores(128, 128, 8), 16);  // torchrun on a whole node
  EXPECT_EQ(ShareOfCores(128, 16, 8), 16);   // each rank is bound to its cores
  EXPECT_EQ(ShareOfCores(128, 4, 8), 4);
  EXPECT_EQ(ShareOfCores(4, 4, 8), 1);
  EXPECT_EQ(ShareOfCores(6, 6, 1), 6);
}

// A quota of all ranks is divided, whatever each is bound to.
TEST(RankCoresTest, RanksThatAreBoundShareAQuota) {
  Node node;
  node.AddGroup("/job", "3200000 100000");
  node.AddGroup("/job/step", "max 100000");
  node.AddProcess(10, 1, "0-127", "/job/step");         // the launcher
  node.AddProcess(11, 10, "0-15", "/job/step", true);   // bound by it
  node.AddProcess(12, 10, "16-31", "/job/step", true);  // another rank
  node.AddProcess(13, 12, "16-31", "/job/step", true);  // its program, behind a script
  EXPECT_EQ(node.Launcher(11), 32);
  EXPECT_EQ(node.Launcher(13), 32);
  EXPECT_EQ(ShareOfCores(node.Launcher(11), 16, 8), 4);
}

// A control group that each rank has alone is not divided again; one around all of them is.
TEST(RankCoresTest, ACpusetOfItsOwnIsNotDivided) {
  Node node;
  node.AddGroup("/job", "max 100000");
  node.AddGroup("/job/task_3", "1200000 100000");
  node.AddProcess(10, 1, "0-127", "/job");
  node.AddProcess(11, 10, "48-63", "/job/task_3", true);
  EXPECT_EQ(node.Launcher(11), 128);
  EXPECT_EQ(ShareOfCores(node.Launcher(11), /*own=*/12, 8), 12);

  node.AddProcess(20, 1, "0-31", "/");  // in a container with 32 cores
  node.AddProcess(21, 20, "0-31", "/", true);
  EXPECT_EQ(ShareOfCores(node.Launcher(21), 32, 8), 4);
}

TEST(RankCoresTest, WhatCannotBeReadIsNotThere) {
  Node node;
  EXPECT_EQ(node.Launcher(7), 0);
  node.AddProcess(8, 0, "0-3", "/");  // the first one of a container
  EXPECT_EQ(node.Launcher(8), 0);
  node.AddProcess(9, 6, "0-3", "/", true);
  EXPECT_EQ(node.Launcher(9), 0);
}

TEST(RankCoresTest, RanksAreThoseOfTheLauncher) {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, 1); };
  EXPECT_EQ(RanksOfNode(), 1);
  EXPECT_EQ(CoresOfRank(), AvailableCores());
  set("OMPI_COMM_WORLD_LOCAL_SIZE", "3");
  EXPECT_EQ(RanksOfNode(), 3);
  set("LOCAL_WORLD_SIZE", "4096");
  EXPECT_EQ(RanksOfNode(), 4096);
  EXPECT_EQ(CoresOfRank(), 1);
  for (const char* const wrong : {"", "0", "-2", "two"}) {
    set("LOCAL_WORLD_SIZE", wrong);
    EXPECT_EQ(RanksOfNode(), 3) << wrong;
  }
  ::unsetenv("LOCAL_WORLD_SIZE");
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
}

}  // namespace
}  // namespace shardpack
