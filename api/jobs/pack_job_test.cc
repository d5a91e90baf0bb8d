// With scripts in the place of `pack`: what each of them does is known to the byte.
#include "api/jobs/pack_job.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/jobs/child_process.h"
#include "api/jobs/job_words.h"
#include "api/jobs/pack_program.h"
#include "formats/io/error_facts.h"

namespace shardpack {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Message(const auto& result) { return std::string(result.status().message()); }

class PackJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    ::setenv("PATH", "/usr/bin:/bin", 1);
    ::unsetenv("SHARDPACK_PACK");
  }

  std::string Script(const std::string& text, const std::string& name = "pack") {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n" << text;
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  std::string OfVersion(const std::string& version, const std::string& name) {
    return Script("echo 'pack " + version + " (shardpack, commit 0)'; echo libraries\n", name);
  }
  std::unique_ptr<PackJob> Start(const std::string& script,
                                 const std::vector<std::string>& words = {"build"},
                                 const std::string& folder = "") {
    auto job = PackJob::Start(Script(script), words, folder);
    EXPECT_TRUE(job.ok()) << job.status();
    return *std::move(job);
  }
  static Json Ended(PackJob& job) {
    EXPECT_EQ(job.Poll(-1, nullptr), PackJob::Seen::kEnd);
    return Json::parse(job.result());
  }

  // A folder with fifos that scripts wait at, each once: a second read of the same fifo would find
  // the first writer, which has yet to close it, and end at once.
  std::string MakeFifoFolder() {
    for (const char* name : {"first", "second"})
      EXPECT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
    return folder_.string();
  }
  void LetGo(const char* fifo) { std::ofstream(folder_ / fifo) << "go\n"; }

  fs::path folder_;
};

TEST_F(PackJobTest, WordsGetTheirFlagsBeforeThoseThatAreNone) {
  EXPECT_THAT(*JobWords({"validate", "a b"}),
              ElementsAre("validate", "a b", "--json", "--progress=json"));
  EXPECT_THAT(*JobWords({"build", "-o", "out", "--", "-src", "--"}),
              ElementsAre("build", "-o", "out", "--json", "--progress=json", "--", "-src", "--"));
  EXPECT_THAT(*JobWords({"info", "a"}), ElementsAre("info", "a", "--json"));
  EXPECT_THAT(*JobWords({"stats", "a"}), ElementsAre("stats", "a", "--json"));
  EXPECT_THAT(*JobWords({"dups", "a"}), ElementsAre("dups", "a", "--json", "--progress=json"));
  EXPECT_EQ(JobWords({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(JobWords({"man"})), HasSubstr("\"man\" is not a job"));
}

TEST_F(PackJobTest, TheResultHoldsReportMessagesAndCode) {
  const Json result =
      Ended(*Start("echo '{\"schema\":\"x\",\n\"n\": 7}'; echo warned >&2\n"
                   "echo '{\"a\": 1}' >&2; printf 'no line end \\377' >&2; exit 3"));
  EXPECT_EQ(result["exit_code"], 3);
  EXPECT_EQ(result["cancelled"], false);
  EXPECT_EQ(result["report"]["n"], 7);
  EXPECT_EQ(result["error"], nullptr);
  EXPECT_EQ(result["stderr"], "warned\n{\"a\": 1}\nno line end \xEF\xBF\xBD\n");
  EXPECT_EQ(result["stderr_is_whole"], false);
  EXPECT_EQ(result["stdout_is_whole"], true);
}

TEST_F(PackJobTest, BytesThatAreNotTextAreNotWhole) {
  const Json result = Ended(*Start("printf '\\377\\330'; echo warned >&2"));
  EXPECT_EQ(result["stdout_is_whole"], false);
  EXPECT_EQ(result["stderr_is_whole"], true);
}

TEST_F(PackJobTest, AnErrorIsTakenFromBelowTheReport) {
  const std::string error = R"({"schema":"shardpack.error/1","code":6,"message":"m"})";
  Json result = Ended(*Start("printf '{\n}\n'; echo '" + error + "'; exit 6"));
  EXPECT_EQ(result["report"], Json::object());
  EXPECT_EQ(result["error"]["message"], "m");
  result = Ended(*Start("echo '" + error + "'; exit 6"));
  EXPECT_EQ(result["report"], nullptr);
  EXPECT_EQ(result["error"]["code"], 6);
  EXPECT_EQ(Ended(*Start("echo text"))["stdout"], "text");
}

TEST_F(PackJobTest, ProgressIsSeenAndIsNoMessage) {
  auto job = Start(R"(read go < first
echo '{"schema":"shardpack.progress/1","stage":"packing","done":5,"total":9,"bytes_in":7,"bytes_total":8,"seconds":1.5,"eta_seconds":null}' >&2
read go < second; exit 0)",
                   {"build"}, MakeFifoFolder());
  JobProgress progress;
  EXPECT_EQ(job->Poll(0, &progress), PackJob::Seen::kNothing);
  EXPECT_EQ(job->result(), "");
  EXPECT_EQ(job->exit_code(), -1);
  LetGo("first");
  ASSERT_EQ(job->Poll(-1, &progress), PackJob::Seen::kProgress);
  EXPECT_EQ(progress.stage, "packing");
  EXPECT_EQ(progress.done, 5u);
  EXPECT_EQ(progress.total, 9u);
  EXPECT_EQ(progress.bytes_in, 7u);
  EXPECT_EQ(progress.bytes_total, 8u);
  EXPECT_EQ(progress.seconds, 1.5);
  EXPECT_EQ(progress.eta_seconds, -1);
  EXPECT_EQ(job->Poll(0, &progress), PackJob::Seen::kNothing);
  EXPECT_FALSE(job->ended());
  LetGo("second");
  EXPECT_EQ(job->Poll(-1, &progress), PackJob::Seen::kEnd);
  EXPECT_EQ(job->Poll(-1, &progress), PackJob::Seen::kEnd);
  EXPECT_EQ(Json::parse(job->result())["stderr"], "");
}

// More than a pipe holds, on both of them, before the caller looks once.
TEST_F(PackJobTest, AChildNeverWaitsForItsCaller) {
  auto job = Start(
      "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2\n"
      "head -c 3000000 /dev/zero | tr '\\0' y; echo; touch done\n",
      {"build"}, folder_.string());
  const Json result = Ended(*job);
  EXPECT_TRUE(fs::exists(folder_ / "done"));
  EXPECT_EQ(result["stdout"].get<std::string>().size(), 3'000'000u);
  EXPECT_EQ(result["stderr_is_whole"], false);
}

// As a process does that the caller forks on another thread while the pipes are made.
TEST_F(PackJobTest, AProcessThatHoldsThePipesDoesNotKeepTheJob) {
  const auto start = std::chrono::steady_clock::now();
  const Json result =
      Ended(*Start("sleep 30 &\necho $! > sleeper\nhead -c 50000 /dev/zero | tr '\\0' y\n"
                   "echo warned >&2; exit 3",
                   {"build"}, folder_.string()));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(result["exit_code"], 3);
  EXPECT_EQ(result["stdout"].get<std::string>().size(), 50'000u);
  EXPECT_EQ(result["stderr"], "warned\n");
  pid_t sleeper = 0;
  std::ifstream(folder_ / "sleeper") >> sleeper;
  EXPECT_EQ(::kill(sleeper, SIGKILL), 0) << "it was to hold the pipes";
}

// What serves where the kernel has no descriptors of processes.
TEST_F(PackJobTest, AChildSaysWhetherItHasEnded) {
  auto child = ChildProcess::Start(Script("read go < first"), {}, MakeFifoFolder());
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_FALSE(child->HasEnded());
  LetGo("first");
  while (!child->HasEnded()) ::usleep(1000);
  EXPECT_EQ(child->Wait(), 0);
  EXPECT_TRUE(child->HasEnded());
}

TEST_F(PackJobTest, ALineWithoutEndIsCut) {
  const Json result =
      Ended(*Start("echo before >&2; head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2\n"
                   "echo after >&2"));
  EXPECT_EQ(result["stderr"], "before\nafter\n");
  EXPECT_EQ(result["stderr_is_whole"], false);
  const Json alone = Ended(*Start("head -c 3000000 /dev/zero | tr '\\0' x >&2"));
  EXPECT_EQ(alone["stderr"].get<std::string>().size(), (size_t{1} << 20) + 1);
  EXPECT_EQ(alone["stderr_is_whole"], false);
}

TEST_F(PackJobTest, CancelIsCtrlCForTheWholeGroup) {
  Script(R"(trap 'touch child; exit 0' INT
echo '{"schema":"shardpack.progress/1"}' >&2
while :; do sleep 0.01; done)",
         "its-child");
  auto job =
      Start("trap 'echo stopped >&2; exit 130' INT\n./its-child", {"build"}, folder_.string());
  JobProgress progress;
  ASSERT_EQ(job->Poll(-1, &progress), PackJob::Seen::kProgress);
  job->Cancel();
  const Json result = Ended(*job);
  EXPECT_EQ(result["exit_code"], 130);
  EXPECT_EQ(result["cancelled"], true);
  EXPECT_EQ(result["stderr"], "stopped\n");
  EXPECT_TRUE(fs::exists(folder_ / "child"));
  job->Cancel();  // does nothing
}

TEST_F(PackJobTest, ASignalThatEndsItIsACode) {
  EXPECT_EQ(Ended(*Start("kill -TERM $$"))["exit_code"], 143);
}

// The signals of this process do not matter to the child, nor its descriptors.
TEST_F(PackJobTest, TheChildStartsClean) {
  ::signal(SIGINT, SIG_IGN);
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  const int mine = ::open("/dev/null", O_RDONLY);
  ::setenv("BUILD_WORKING_DIRECTORY", "/nowhere", 1);
  const Json result = Ended(*Start(
      "grep -E 'Sig(Ign|Blk)' /proc/self/status >&2; ls /proc/$$/fd >&2\n"
      "echo $BUILD_WORKING_DIRECTORY >&2; pwd >&2; [ $(ps -o pgid= $$) = $$ ] && echo own >&2",
      {"build"}, "/"));
  ::unsetenv("BUILD_WORKING_DIRECTORY");
  ::close(mine);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_NE(::signal(SIGINT, SIG_DFL), SIG_DFL) << "it was changed";
  // 10 and 11 are the shell's own; two signals are the C library's.
  EXPECT_THAT(result["stderr"],
              ::testing::MatchesRegex("SigBlk:\t0*\nSigIgn:\t0*1?[08]?0000000\n0\n1\n10\n(11\n)?2\n"
                                      "\n/\n(own\n)?"));
}

TEST_F(PackJobTest, ReleaseStopsWhatRuns) {
  auto job = Start(
      "trap 'touch stopped; exit 130' INT\necho '{\"schema\":\"shardpack.progress/1\"}' >&2\n"
      "while :; do sleep 0.01; done",
      {"build"}, folder_.string());
  JobProgress progress;
  ASSERT_EQ(job->Poll(-1, &progress), PackJob::Seen::kProgress);
  job.reset();
  EXPECT_TRUE(fs::exists(folder_ / "stopped"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

// A second Ctrl-C would end it at once.
TEST_F(PackJobTest, ReleaseAfterCancelIsNoSecondCancel) {
  auto job = Start(
      "trap 'echo x >> stops' INT\necho '{\"schema\":\"shardpack.progress/1\"}' >&2\n"
      "while [ ! -e stops ]; do sleep 0.01; done\n"
      "echo '{\"schema\":\"shardpack.progress/1\"}' >&2\nsleep 0.5",
      {"build"}, folder_.string());
  JobProgress progress;
  ASSERT_EQ(job->Poll(-1, &progress), PackJob::Seen::kProgress);
  job->Cancel();
  ASSERT_EQ(job->Poll(-1, &progress), PackJob::Seen::kProgress);
  job.reset();
  std::ifstream stops(folder_ / "stops");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stops), {}), "x\n");
}

TEST_F(PackJobTest, OutputWithoutLimitIsNotKept) {
  const Json result =
      Ended(*Start("head -c 80000000 /dev/zero | tr '\\0' x; echo\n"
                   "echo '{\"schema\":\"shardpack.error/1\",\"code\":6}'; exit 6"));
  EXPECT_EQ(result["stdout_is_whole"], false);
  EXPECT_FALSE(result.contains("stdout"));
  EXPECT_EQ(result["report"], nullptr);
  EXPECT_EQ(result["error"]["code"], 6);
}

TEST_F(PackJobTest, AForkedChildOfTheCallerTouchesNothing) {
  auto job = Start("read go < first; exit 4", {"build"}, MakeFifoFolder());
  const pid_t child = ::fork();
  if (child == 0) {
    JobProgress progress;
    const bool good = job->Poll(-1, &progress) == PackJob::Seen::kEnd && !job->InOwnProcess() &&
                      job->result().empty() && job->exit_code() == -1;
    job->Cancel();
    job.reset();
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  LetGo("first");
  EXPECT_EQ(Ended(*job)["exit_code"], 4);
}

TEST_F(PackJobTest, ACodeThatSomebodyElseHasTakenComesFromTheOutput) {
  ::signal(SIGCHLD, SIG_IGN);  // the system waits for all children
  EXPECT_EQ(Ended(*Start("exit 5"))["exit_code"], -1);
  EXPECT_EQ(Ended(*Start(R"(echo '{"schema":"shardpack.error/1","code":5}'; exit 5)"))["exit_code"],
            5);
  const auto report = [](const std::string& schema, int skipped) {
    return R"(echo '{"schema":"shardpack.)" + schema + R"(/1","counts":{"skipped":)" +
           std::to_string(skipped) + R"(,"failed":0}}')";
  };
  EXPECT_EQ(Ended(*Start(report("build", 0)))["exit_code"], 0);
  EXPECT_EQ(Ended(*Start(report("build", 1) + "; exit 3"))["exit_code"], 3);
  // This one is the same whatever the exit code.
  EXPECT_EQ(Ended(*Start(report("stats", 0)))["exit_code"], -1);
  const auto validation = [](int errors, const std::string& stopped) {
    return R"(echo '{"schema":"shardpack.validation/1","errors":)" + std::to_string(errors) +
           R"(,"stopped":)" + stopped + "}'";
  };
  EXPECT_EQ(Ended(*Start(validation(0, "false")))["exit_code"], 0);
  EXPECT_EQ(Ended(*Start(validation(2, "false")))["exit_code"], 4);
  // By a time limit, perhaps, or by somebody's signal.
  EXPECT_EQ(Ended(*Start(validation(0, "true")))["exit_code"], -1);
  EXPECT_EQ(Ended(*Start(R"(echo '{"schema":"shardpack.validation/1","errors":0}')"))["exit_code"],
            -1);
  ::signal(SIGCHLD, SIG_DFL);
}

TEST_F(PackJobTest, SoDoesThatOfACancelledValidation) {
  ::signal(SIGCHLD, SIG_IGN);
  auto job = Start(
      R"(stop() { echo '{"schema":"shardpack.validation/1","errors":0,"stopped":true}'; exit 130; }
trap stop INT
echo '{"schema":"shardpack.progress/1"}' >&2
while :; do sleep 0.01; done)",
      {"validate"});
  JobProgress progress;
  EXPECT_EQ(job->Poll(-1, &progress), PackJob::Seen::kProgress);
  job->Cancel();
  const Json result = Ended(*job);
  ::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(result["exit_code"], 130);
  EXPECT_EQ(result["cancelled"], true);
}

TEST_F(PackJobTest, WhatCannotBeStartedIsSaid) {
  const auto absent = PackJob::Start((folder_ / "absent").string(), {"build"});
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(absent), HasSubstr("absent: No such file"));
  const auto nowhere = PackJob::Start(Script("true"), {"build"}, "/no/folder");
  EXPECT_THAT(Message(nowhere), HasSubstr("in /no/folder: No such file"));
  EXPECT_EQ(FactsOf(nowhere.status()).system_errno, ENOENT);
  const auto too_long = PackJob::Start(Script("true"), {std::string(size_t{1} << 20, 'x')});
  EXPECT_EQ(FactsOf(too_long.status()).system_errno, E2BIG);
}

TEST_F(PackJobTest, TheProgramThatTheVariableNames) {
  ::setenv("SHARDPACK_PACK", OfVersion("1.2.3", "mine/pack").c_str(), 1);
  EXPECT_EQ(*FindPack("1.2.3"), (folder_ / "mine/pack").string());
  const auto other = FindPack("1.2.4");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(other),
              HasSubstr("mine/pack is pack 1.2.3, and this library is of Shardpack 1.2.4"));
  ::setenv("SHARDPACK_PACK", Script("echo 0.33.2+git", "tool").c_str(), 1);
  EXPECT_THAT(Message(FindPack("1.2.3")),
              HasSubstr("tool, which the variable SHARDPACK_PACK names, is not"));
  for (const std::string& none : {std::string("/no/such/pack"), folder_.string()}) {
    ::setenv("SHARDPACK_PACK", none.c_str(), 1);
    EXPECT_EQ(FindPack("1.2.3").status().code(), absl::StatusCode::kNotFound) << none;
  }
}

// A lack of descriptors is not a lack of programs.
TEST_F(PackJobTest, WhatTheSystemLacksIsSaid) {
  OfVersion("1.2.3", "pack");
  ::setenv("PATH", (folder_.string() + ":/usr/bin:/bin").c_str(), 1);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto found = FindPack("1.2.3");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(FactsOf(found.status()).system_errno, EMFILE) << found.status();
}

TEST_F(PackJobTest, AProgramWithoutItsInterpreterIsNamed) {
  const std::string script = Script("true", "odd/pack");
  std::ofstream(script) << "#!/no/such/interpreter\n";
  ::setenv("PATH", (folder_ / "odd").c_str(), 1);
  const auto found = FindPack("1.2.3");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(found), HasSubstr("odd/pack (starting"));
}

TEST_F(PackJobTest, TheFirstRightOneInThePath) {
  Script("echo 0.33.2+git", "tool/pack");
  OfVersion("1.2.2", "old/pack");
  OfVersion("1.2.3", "new/pack");
  const std::string path = folder_.string();
  ::setenv(
      "PATH",
      (path + "/absent:" + path + "/tool:relative::" + path + "/old:" + path + "/new:/usr/bin:/bin")
          .c_str(),
      1);
  EXPECT_EQ(*FindPack("1.2.3"), path + "/new/pack");
  const auto none = FindPack("1.2.5");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(none), HasSubstr("old/pack is pack 1.2.2"));
  ::setenv("PATH", (path + "/absent:" + path + "/tool").c_str(), 1);
  const auto nowhere = FindPack("1.2.3");
  EXPECT_EQ(nowhere.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(nowhere), HasSubstr(path + "/absent/pack"));
  EXPECT_THAT(Message(nowhere), HasSubstr(path + "/tool/pack (another tool)"));
  EXPECT_THAT(Message(nowhere), HasSubstr("/bin/pack, "));  // beside this program
}

}  // namespace
}  // namespace shardpack
