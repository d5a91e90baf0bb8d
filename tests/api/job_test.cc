// Jobs with the real `pack`, through the wrapper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "api/shardpack.hpp"

namespace shardpack_api {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using std::chrono::milliseconds;

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::map<std::string, std::string> Files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = Contents(entry.path());
  return files;
}

class JobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pack_ = fs::absolute("cli/pack").string();
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    images_ = At("images");
    fs::copy("testdata/images", images_, fs::copy_options::recursive);  // not the links of a test
    ::setenv("SHARDPACK_PACK", pack_.c_str(), 1);
  }
  void TearDown() override { fs::permissions(folder_, fs::perms::owner_all); }

  std::string At(const std::string& name) const { return (folder_ / name).string(); }
  std::string Packed() {
    Job job({"build", images_, "-o", At("packed")});
    EXPECT_EQ(job.wait(), 0) << job.result_json();
    return At("packed");
  }
  // A program in the place of pack, which is asked for its version like it.
  void SetProgram(const std::string& script) {
    std::ofstream(folder_ / "program") << "#!/bin/sh\n" << script << "\n";
    fs::permissions(folder_ / "program", fs::perms::owner_all);
    ::setenv("SHARDPACK_PACK", At("program").c_str(), 1);
  }

  // The result of a job with exit code 0, and the stages that were seen on the way.
  Json Run(const std::vector<std::string>& words, std::set<std::string>* stages = nullptr) {
    Job job(words);
    shardpack_job_progress progress = {};
    while (!job.poll(milliseconds(60'000), &progress)) {
      if (stages != nullptr) stages->emplace(View(progress.stage));
      EXPECT_TRUE(progress.total == 0 || progress.done <= progress.total);
    }
    const Json result = Json::parse(job.result_json());
    EXPECT_EQ(job.wait(), result["exit_code"]);
    EXPECT_EQ(result["exit_code"], 0) << result.dump(1);
    return result;
  }

  fs::path folder_;
  std::string images_, pack_;
};

TEST_F(JobTest, PacksValidatesIndexesAndConverts) {
  std::set<std::string> stages;
  Json result = Run({"build", images_, "-o", At("out"), "--format=webdataset"}, &stages);
  EXPECT_EQ(result["schema"], "shardpack.job/1");
  EXPECT_EQ(result["report"]["schema"], "shardpack.build/1");
  EXPECT_EQ(result["report"]["counts"]["packed"], 59);
  EXPECT_THAT(std::string(result["stderr"]), HasSubstr("packed    59 of 59 images"));
  EXPECT_THAT(stages, Contains("packing"));
  EXPECT_EQ(Dataset(At("out")).samples(), 59u);

  stages.clear();
  result = Run({"validate", At("out")}, &stages);
  EXPECT_EQ(result["report"]["errors"], 0);
  EXPECT_FALSE(result["report"]["findings"].empty());  // warnings
  EXPECT_THAT(stages, Contains("validating"));

  stages.clear();
  fs::create_directory(At("tars"));
  fs::copy_file(At("out") + "/train-000000.tar", At("tars") + "/train-000000.tar");
  result = Run({"index", At("tars")}, &stages);
  EXPECT_EQ(result["report"]["records"], 59);
  EXPECT_THAT(stages, Contains("indexing"));
  EXPECT_EQ(Dataset(At("tars")).samples(), 59u);

  for (const std::string format : {"tfrecord", "lmdb", "hdf5"}) {
    stages.clear();
    result = Run({"convert", At("out"), "-o", At(format), "-f", format}, &stages);
    EXPECT_EQ(result["report"]["format"], format);
    EXPECT_THAT(stages, Contains("packing"));
    EXPECT_EQ(Dataset(At(format)).samples(), 59u);
  }
}

TEST_F(JobTest, DamageIsAResultNotAnError) {
  const std::string shard = Packed() + "/train-000000.tar";
  std::fstream(shard, std::ios::in | std::ios::out | std::ios::binary).seekp(700).write("?", 1);
  Job job({"validate", At("packed")});
  EXPECT_EQ(job.wait(), 4);
  const Json result = Json::parse(job.result_json());
  EXPECT_EQ(result["exit_code"], 4);
  EXPECT_GT(result["report"]["errors"], 0);
  EXPECT_EQ(result["report"]["findings"][0]["shard"], "train-000000.tar");
}

TEST_F(JobTest, ACommandThatIsRefusedSaysWhy) {
  Job job({"build", At("absent"), "-o", At("out")});
  EXPECT_EQ(job.wait(), 2);
  const Json result = Json::parse(job.result_json());
  EXPECT_EQ(result["report"], nullptr);
  EXPECT_EQ(result["error"]["code"], 2);
  EXPECT_THAT(std::string(result["error"]["message"]), HasSubstr("does not exist"));
  EXPECT_THROW(Job({"man"}), Error);
  EXPECT_THROW(Job(std::vector<std::string>()), Error);
  try {
    Job({"validate", "x"}, At("no folder"));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.path(), At("no folder"));
  }
}

// Every write waits until this test lets it go, so that the job is cancelled in its middle.
TEST_F(JobTest, WhatIsCancelledGoesOnWhereItWas) {
  const std::vector<std::string> words = {
      "build", images_, "-o",         At("out"), "--samples-per-shard", "2", "--no-fsync",
      "-j",    "1",     "--io-depth", "1"};
  std::vector<std::string> whole_words = words;
  whole_words[3] = At("whole");
  Run(whole_words);

  for (const char* fifo : {"says", "waits"}) ASSERT_EQ(::mkfifo(At(fifo).c_str(), 0600), 0);
  SetProgram("[ \"$1\" = --version ] && exec '" + pack_ + "' --version\n" + "exec 7> '" +
             At("says") + "' 8< '" + At("waits") + "'\n" + "LD_PRELOAD='" +
             fs::absolute("tests/faults/libfault_shim.so").string() + "' SHARDPACK_FAULT_ROOT='" +
             At("out") + "' SHARDPACK_FAULT_SAYS=7 SHARDPACK_FAULT_WAITS=8 exec '" + pack_ +
             "' \"$@\"");
  Job job(words);
  {
    std::ifstream says(At("says"), std::ios::binary);
    std::ofstream waits(At("waits"), std::ios::binary);
    for (int writes = 0; writes < 40; ++writes) {
      ASSERT_EQ(says.get(), '.');
      waits << '.' << std::flush;
    }
    ASSERT_EQ(says.get(), '.');
    EXPECT_FALSE(job.poll(milliseconds(0)));
    try {
      job.result_json();
      ADD_FAILURE() << "it has not ended";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kState);
    }
    job.cancel();
  }  // nothing waits any more
  EXPECT_EQ(job.wait(), 130);
  const Json result = Json::parse(job.result_json());
  EXPECT_EQ(result["cancelled"], true);
  EXPECT_EQ(result["error"]["code"], 130);
  EXPECT_FALSE(fs::exists(At("out") + "/manifest.json"));

  ::setenv("SHARDPACK_PACK", pack_.c_str(), 1);
  const Json resumed = Run(words);
  EXPECT_GT(resumed["report"]["kept_shards"], 0);
  EXPECT_EQ(Files(At("out")), Files(At("whole")));
}

TEST_F(JobTest, AReleasedJobIsGone) {
  SetProgram("[ \"$1\" = --version ] && exec '" + pack_ + "' --version\n" + "trap 'echo > \"" +
             At("stopped") +
             "\"; exit 130' INT\n"
             "echo '{\"schema\":\"shardpack.progress/1\",\"stage\":\"waiting\"}' >&2\n"
             "while :; do sleep 0.01; done");
  {
    Job job({"validate", At("any")});
    shardpack_job_progress progress = {};
    EXPECT_FALSE(job.poll(milliseconds(60'000), &progress));
    EXPECT_EQ(View(progress.stage), "waiting");
  }
  EXPECT_TRUE(fs::exists(At("stopped")));
}

TEST_F(JobTest, AnotherVersionOrNoPackIsRefused) {
  SetProgram("echo 'pack 9.9.9 (shardpack, commit 0)'");
  try {
    Job({"validate", "x"});
    ADD_FAILURE() << "it was started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("is pack 9.9.9, and this library is of Shardpack " +
                                        std::string(version())));
  }
  ::unsetenv("SHARDPACK_PACK");
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  try {
    Job({"validate", "x"});
    ADD_FAILURE() << "it was started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/pack"));
  }
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(JobTest, AFolderThatCannotBeWrittenToIsAResult) {
  if (::geteuid() == 0) {
    // Root may write everywhere but below a file.
    std::ofstream(At("file")) << "x";
    Job job({"build", images_, "-o", At("file") + "/out"});
    EXPECT_NE(job.wait(), 0);
    EXPECT_NE(Json::parse(job.result_json())["error"], nullptr);
    return;
  }
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  Job job({"build", images_, "-o", At("out")});
  EXPECT_EQ(job.wait(), 6);
  EXPECT_THAT(std::string(Json::parse(job.result_json())["error"]["message"]),
              HasSubstr("Permission"));
}

TEST_F(JobTest, PathsAreBytesAndRelativeToTheFolderOfTheJob) {
  const std::string name = "a b'\"\xFF\xE9";
  fs::copy(images_, folder_ / name, fs::copy_options::recursive);
  Job job(
      {
          "build",
          name,
          "--out=out " + name,
          "--",
      },
      folder_.string());
  EXPECT_EQ(job.wait(), 0) << job.result_json();
  EXPECT_TRUE(Json::accept(job.result_json()));
  EXPECT_EQ(Dataset(At("out " + name)).samples(), 59u);
  EXPECT_EQ(Job({"validate", At("out " + name)}).wait(), 0);
}

// The system waits for all children, so nobody learns how they ended but from their reports.
TEST_F(JobTest, AValidationOfAProcessThatIgnoresItsChildren) {
  ASSERT_EQ(Job({"build", images_, "-o", At("out")}).wait(), 0);
  ::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(Job({"validate", At("out")}).wait(), 0);
  fs::resize_file(At("out") + "/train-000000.tar", 5000);
  EXPECT_EQ(Job({"validate", At("out")}).wait(), 4);
  EXPECT_EQ(Job({"validate", At("nothing")}).wait(), 2);
  ::signal(SIGCHLD, SIG_DFL);
}

TEST_F(JobTest, NullsAreRefused) {
  shardpack_job* job = nullptr;
  const char* words[] = {"validate", nullptr};
  EXPECT_EQ(shardpack_job_start(words, 2, nullptr, &job, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_job_start(nullptr, 1, nullptr, &job, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_job_start(words, 1, nullptr, nullptr, nullptr), SHARDPACK_INVALID);
  shardpack_job_options options = {};
  EXPECT_EQ(shardpack_job_start(words, 1, &options, &job, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_job_poll(nullptr, 0, nullptr, nullptr), SHARDPACK_INVALID);
  char* json = nullptr;
  EXPECT_EQ(shardpack_job_result_json(nullptr, &json, nullptr), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_job_exit_code(nullptr), -1);
  shardpack_job_cancel(nullptr);
  shardpack_job_release(nullptr);
}

}  // namespace
}  // namespace shardpack_api
