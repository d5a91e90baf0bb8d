#include "cli/commands/worker_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace shardpack::cli {
namespace {

using ::testing::HasSubstr;
using Ranges = std::vector<std::pair<size_t, size_t>>;
using Variables = std::map<std::string, std::string>;

Environment Of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::pair<uint64_t, uint64_t> Part(const Variables& variables) {
  const absl::StatusOr<TaskPart> part = PartOfTask(Of(variables));
  EXPECT_TRUE(part.ok()) << part.status();
  return part.ok() ? std::pair(part->part, part->parts) : std::pair<uint64_t, uint64_t>(0, 0);
}

std::string Refusal(const Variables& variables) {
  const absl::StatusOr<TaskPart> part = PartOfTask(Of(variables));
  EXPECT_TRUE(absl::IsInvalidArgument(part.status())) << part.status();
  return std::string(part.status().message());
}

Variables Slurm(const std::string& id, const std::string& min, const std::string& max,
                const std::string& count) {
  return {{"SLURM_ARRAY_TASK_ID", id},
          {"SLURM_ARRAY_TASK_MIN", min},
          {"SLURM_ARRAY_TASK_MAX", max},
          {"SLURM_ARRAY_TASK_COUNT", count}};
}

TEST(WorkerPart, EverySchedulerIsUnderstood) {
  using P = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(Part(Slurm("0", "0", "99", "100")), P(1, 100));
  EXPECT_EQ(Part(Slurm("7", "5", "8", "4")), P(3, 4));
  EXPECT_EQ(Part({{"JOB_COMPLETION_INDEX", "99"}, {"SHARDPACK_WORKERS", "100"}}), P(100, 100));
  EXPECT_EQ(Part({{"PBS_ARRAY_INDEX", "1"}, {"SHARDPACK_WORKERS", "4"}}), P(1, 4));
  EXPECT_EQ(Part({{"SGE_TASK_ID", "3"},
                  {"SGE_TASK_FIRST", "2"},
                  {"SGE_TASK_LAST", "5"},
                  {"SGE_TASK_STEPSIZE", "1"}}),
            P(2, 4));
  EXPECT_EQ(Part({{"LSB_JOBINDEX", "4"}, {"LSB_JOBINDEX_END", "4"}}), P(4, 4));
  EXPECT_EQ(Part({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), P(1, 2));
  // Outside of an array, Grid Engine and LSF set their variables too.
  EXPECT_EQ(Part({{"SGE_TASK_ID", "undefined"},
                  {"LSB_JOBINDEX", "0"},
                  {"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "2"}}),
            P(2, 2));
}

TEST(WorkerPart, IndicesThatAreNotDenseAreRefused) {
  // sbatch --array=3,7,9
  for (const std::string id : {"3", "7", "9"})
    EXPECT_THAT(Refusal(Slurm(id, "3", "9", "3")), HasSubstr("--join"));
  EXPECT_THAT(Refusal({{"SGE_TASK_ID", "3"},
                       {"SGE_TASK_FIRST", "1"},
                       {"SGE_TASK_LAST", "9"},
                       {"SGE_TASK_STEPSIZE", "2"}}),
              HasSubstr("--join"));
  EXPECT_THAT(Refusal({{"PBS_ARRAY_INDEX", "5"}, {"SHARDPACK_WORKERS", "4"}}), HasSubstr("--join"));
  EXPECT_THAT(Refusal({{"PBS_ARRAY_INDEX", "0"}, {"SHARDPACK_WORKERS", "4"}}), HasSubstr("--join"));
}

TEST(WorkerPart, WhatIsMissingIsNamed) {
  EXPECT_THAT(Refusal({}), HasSubstr("SLURM_ARRAY_TASK_ID"));
  EXPECT_THAT(Refusal({{"JOB_COMPLETION_INDEX", "2"}}), HasSubstr("SHARDPACK_WORKERS"));
  EXPECT_THAT(Refusal(Slurm("two", "0", "9", "10")),
              HasSubstr("SLURM_ARRAY_TASK_ID is not a number"));
}

TEST(WorkerPart, PartsCoverAllShardsOnce) {
  for (const size_t shards : {size_t{1}, size_t{2}, size_t{7}, size_t{60}, size_t{1000}}) {
    for (const uint64_t parts : {uint64_t{1}, uint64_t{3}, uint64_t{8}, uint64_t{100}}) {
      size_t next = 0;
      for (uint64_t part = 1; part <= parts; ++part) {
        WorkerFlags flags;
        flags.part = std::to_string(part) + "/" + std::to_string(parts);
        const auto worker = WorkerOf(flags, shards, Of({}));
        ASSERT_TRUE(worker.ok()) << worker.status();
        ASSERT_EQ(worker->ranges.size(), 1u);
        EXPECT_EQ(worker->ranges[0].first, next);
        next = worker->ranges[0].second;
      }
      EXPECT_EQ(next, shards);
    }
  }
}

TEST(WorkerPart, ListsOfShards) {
  EXPECT_EQ(*ParseShardList("3,7-9"), (Ranges{{3, 4}, {7, 10}}));
  EXPECT_EQ(*ParseShardList("9,0-3,2-5,5"), (Ranges{{0, 6}, {9, 10}}));
  EXPECT_EQ(*ParseShardList("0"), (Ranges{{0, 1}}));
  for (const std::string text :
       {"", ",", "1,", ",1", "1,,2", "a", "3-1", "1;2", "1, 2", "-", "1-2-3"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseShardList(text).status())) << text;
}

TEST(WorkerPart, NamedShardsAreVerifiedAndPartsAreNot) {
  WorkerFlags flags;
  flags.shards = "2";
  EXPECT_TRUE(WorkerOf(flags, 9, Of({}))->named);
  flags = {};
  flags.join = true;
  EXPECT_FALSE(WorkerOf(flags, 9, Of({}))->named);
  EXPECT_TRUE(WorkerOf(flags, 9, Of({}))->ranges.empty());
}

}  // namespace
}  // namespace shardpack::cli
