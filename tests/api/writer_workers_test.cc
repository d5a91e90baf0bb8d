// Writers beside and after each other: workers, resume, forks, what was killed.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "api/shardpack.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/writer_fixture.h"

namespace shardpack_api {
namespace {

using ::testing::HasSubstr;

TEST_F(WriterTest, TheShardsAreTheSameForOneWriterAndSixteen) {
  std::vector<Sample> samples = Samples(100);
  const std::vector<std::string> arguments = {"--format=tfrecord", "--samples-per-shard=20"};
  {
    Writer one(At("one"), {.arguments = arguments});
    for (const Sample& sample : samples) Add(one, sample);
    Finish(one);
  }
  std::shuffle(samples.begin(), samples.end(), std::mt19937(7));
  Writer last;
  for (uint32_t worker = 0; worker < 16; ++worker) {
    Writer writer(At("many"), {.arguments = arguments, .worker = worker, .workers = 16});
    for (size_t n = worker; n < samples.size(); n += 16) {
      Add(writer, samples[n]);
      if (n % 3 == 0) writer.flush();
    }
    writer.flush();
    if (worker == 15) last = std::move(writer);
  }
  Finish(last);
  EXPECT_EQ(Files(At("one")), Files(At("many")));
  EXPECT_EQ(Dataset(At("one")).identity(), Dataset(At("many")).identity());
}

TEST_F(WriterTest, AWriterGoesOnWhereAnotherEnded) {
  const std::vector<Sample> samples = Samples(9);
  const pid_t child = ::fork();
  if (child == 0) {
    Writer writer(At("out"));
    for (size_t n = 0; n < 4; ++n) Add(writer, samples[n]);
    writer.flush();
    Add(writer, samples[4]);
    ::_exit(0);  // as if it was killed
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  Writer writer(At("out"));
  for (size_t n = 0; n < samples.size(); ++n) {
    EXPECT_EQ(writer.has(samples[n].key), n < 4) << n;
    if (n < 4) {
      EXPECT_EQ(CodeOf([&] { Add(writer, samples[n]); }), Code::kExists);
    } else {
      Add(writer, samples[n]);
    }
  }
  Finish(writer);
  EXPECT_EQ(Dataset(At("out")).samples(), 9u);
}

TEST_F(WriterTest, WhatWasNotFlushedIsGoneAndNothingElse) {
  const std::vector<Sample> samples = Samples(3);
  {
    Writer writer(At("out"));
    Add(writer, samples[0]);
    writer.flush();
    EXPECT_TRUE(writer.has(samples[0].key));
    Add(writer, samples[1]);
  }
  // What a crash leaves behind.
  std::ofstream(At("out.parts/w00000-000001.stage")) << "x";
  std::ofstream(At("out.parts/w00000-000001.tfrecord")) << "x";
  for (const char* name : {"mine.txt", "wedding.json", "w00000.json", "w00000-x.pidx"})
    std::ofstream(At("out.parts/") + name) << "x";
  Writer writer(At("out"));
  EXPECT_TRUE(writer.has(samples[0].key));
  EXPECT_FALSE(writer.has(samples[1].key));
  Add(writer, samples[2]);
  Finish(writer);
  EXPECT_EQ(Dataset(At("out")).samples(), 2u);
  EXPECT_THAT(Files(At("out.parts")), ::testing::SizeIs(4));  // those are not the library's
}

TEST_F(WriterTest, WorkersExcludeEachOtherAndWaitForAll) {
  const std::vector<Sample> samples = Samples(4);
  const WriterOptions first{.worker = 0, .workers = 3}, second{.worker = 1, .workers = 3},
      third{.worker = 2, .workers = 3};
  Writer one(At("out"), first);
  Add(one, samples[0]);
  std::string message;
  EXPECT_EQ(CodeOf([&] { Writer(At("out"), first); }, &message), Code::kState);
  EXPECT_THAT(message, HasSubstr("another writer is worker 0"));
  {
    Writer two(At("out"), second);
    Add(two, samples[1]);
    two.flush();
    EXPECT_EQ(CodeOf([&] { one.finish(); }, &message), Code::kState);
    EXPECT_THAT(message, HasSubstr("worker 1 of 3 is still writing"));
  }
  EXPECT_EQ(CodeOf([&] { one.finish(); }, &message), Code::kState);
  EXPECT_THAT(message, HasSubstr("worker 2 of 3 has not begun"));
  {
    Writer three(At("out"), third);
    EXPECT_EQ(CodeOf([&] { Add(three, samples[1]); }), Code::kExists);  // another worker's
  }
  Finish(one);
  EXPECT_EQ(Dataset(At("out")).samples(), 2u);
  EXPECT_EQ(CodeOf([&] { Writer(At("x"), {.worker = 3, .workers = 3}); }), Code::kInvalid);
}

TEST_F(WriterTest, AForkedProcessHasNoWriterAndHoldsNoLock) {
  int says[2];
  ASSERT_EQ(::pipe(says), 0);
  std::optional<Writer> writer(At("out"));
  Add(*writer, Samples(1)[0]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(says[1]);
    const bool good = CodeOf([&] { writer->flush(); }) == Code::kState && !writer->has("set/0");
    writer.reset();
    char byte;
    while (::read(says[0], &byte, 1) > 0) {
    }
    ::_exit(good ? 0 : 1);
  }
  writer->flush();
  writer.reset();
  EXPECT_TRUE(Writer(At("out")).has("set/0"));  // while the child has the descriptor
  ::close(says[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Who came back while the parts are packed would lose what it wrote.
TEST_F(WriterTest, AWorkerCannotComeBackBeforeTheJobHasEnded) {
  std::ofstream(At("program"))
      << "#!/bin/sh\n[ \"$1\" = --version ] && exec '" << ::getenv("SHARDPACK_PACK")
      << "' --version\ntrap 'exit 130' INT\nwhile :; do sleep 0.01; done\n";
  fs::permissions(At("program"), fs::perms::owner_all);
  ::setenv("SHARDPACK_PACK", At("program").c_str(), 1);
  const WriterOptions first{.worker = 0, .workers = 2}, second{.worker = 1, .workers = 2};
  { Writer two(At("out"), second); }
  Job job;
  {
    Writer one(At("out"), first);
    one.add("a", {}, images_[0]);
    job = one.finish();
  }
  for (const WriterOptions& options : {first, second})
    EXPECT_EQ(CodeOf([&] { Writer(At("out"), options); }), Code::kState);
  // Nor is a process that was forked meanwhile one of them.
  int says[2];
  ASSERT_EQ(::pipe(says), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(says[1]);
    char byte;
    while (::read(says[0], &byte, 1) > 0) {
    }
    ::_exit(0);
  }
  job.cancel();
  EXPECT_EQ(job.wait(), 130);
  job = Job();
  EXPECT_TRUE(Writer(At("out"), first).has("a"));
  EXPECT_EQ(CodeOf([&] { Writer(At("out"), second); }), Code::kOk);
  ::close(says[1]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(WriterTest, ASecondFinishWaitsForTheFirstOne) {
  const std::string pack = ::getenv("SHARDPACK_PACK");
  std::ofstream(At("program"))
      << "#!/bin/sh\n[ \"$1\" = --version ] && exec '" << pack
      << "' --version\ntrap 'exit 130' INT\nwhile :; do sleep 0.01; done\n";
  fs::permissions(At("program"), fs::perms::owner_all);
  ::setenv("SHARDPACK_PACK", At("program").c_str(), 1);
  Writer writer(At("out"));
  writer.add("a", {}, images_[0]);
  Job job = writer.finish();
  const auto written = fs::last_write_time(At("out.parts/manifest.json"));
  std::string message;
  EXPECT_EQ(CodeOf([&] { writer.finish(); }, &message), Code::kState);
  EXPECT_THAT(message, HasSubstr("has not ended"));
  EXPECT_EQ(fs::last_write_time(At("out.parts/manifest.json")), written);
  job.cancel();
  EXPECT_EQ(job.wait(), 130);
  ::setenv("SHARDPACK_PACK", pack.c_str(), 1);
  Finish(writer);  // once it has failed
  EXPECT_EQ(Dataset(At("out")).samples(), 1u);
  EXPECT_FALSE(fs::exists(At("out.parts")));
}

// The system waits for all children, so nobody learns how they ended.
TEST_F(WriterTest, AProcessThatIgnoresItsChildrenFinishesToo) {
  ::signal(SIGCHLD, SIG_IGN);
  Writer writer(At("out"));
  writer.add("a", {}, images_[0]);
  Finish(writer);
  ::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(Dataset(At("out")).samples(), 1u);
  EXPECT_FALSE(fs::exists(At("out.parts")));
}

TEST_F(WriterTest, OnlyWhatWasPackedIsRemoved) {
  std::ofstream(At("program")) << "#!/bin/sh\n[ \"$1\" = --version ] && exec '"
                               << ::getenv("SHARDPACK_PACK") << "' --version\nwhile [ ! -e '"
                               << At("go") << "' ]; do sleep 0.01; done\nexec '"
                               << ::getenv("SHARDPACK_PACK") << "' \"$@\"\n";
  fs::permissions(At("program"), fs::perms::owner_all);
  ::setenv("SHARDPACK_PACK", At("program").c_str(), 1);
  Writer one(At("out"));
  one.add("a", {}, images_[0]);
  const WriterOptions late{.worker = 7, .workers = 8};
  std::string message;
  {
    Writer other(At("out"), late);
    EXPECT_EQ(CodeOf([&] { one.finish(); }, &message), Code::kState);
    EXPECT_THAT(message, HasSubstr("worker 7"));
  }
  Job job = one.finish();
  EXPECT_EQ(CodeOf([&] { Writer(At("out"), late); }), Code::kState);
  Writer next(At("out"), {.worker = 8, .workers = 9});  // of which the finish knows nothing
  next.add("b", {}, images_[1]);
  next.flush();
  std::ofstream(At("go")) << "!";
  EXPECT_EQ(job.wait(), 0);
  EXPECT_FALSE(fs::exists(At("out.parts/w00000-000000.tfrecord")));
  EXPECT_FALSE(fs::exists(At("out.parts/manifest.json")));
  next = Writer();
  Writer again(At("out"), {.arguments = {"--overwrite"}, .worker = 8, .workers = 9});
  EXPECT_TRUE(again.has("b"));
  EXPECT_FALSE(again.has("a"));
}

// The process that had begun it was killed, and its program has published.
TEST_F(WriterTest, AFinishThatWasKilledIsEndedByTheNext) {
  Writer writer(At("out"), {.arguments = {"--expect=" + std::string(32, '0')}});
  writer.add("a", {}, images_[0]);
  EXPECT_NE(writer.finish().wait(), 0);
  writer = Writer();
  EXPECT_EQ(Job({"convert", "--out", At("out"), At("out.parts")}).wait(), 0);
  Writer next(At("out"));
  EXPECT_TRUE(next.has("a"));
  Finish(next);
  EXPECT_FALSE(fs::exists(At("out.parts")));
}

// It removed the parts, of which these are left: with a dataset of these alone the next finish
// would replace what it has published.
TEST_F(WriterTest, WhatAKilledFinishHasPublishedIsNoSampleAnyMore) {
  const WriterOptions options{.arguments = {"--overwrite", "--expect=" + std::string(32, '0')}};
  {
    Writer writer(At("out"), options);
    writer.add("a", {}, images_[0]);
    writer.flush();
    writer.add("b", {}, images_[1]);
    EXPECT_NE(writer.finish().wait(), 0);
  }
  EXPECT_EQ(Job({"convert", "--out", At("out"), At("out.parts")}).wait(), 0);
  fs::rename(At("out.parts/manifest.json"), At("out.parts/published"));
  fs::remove(At("out.parts/w00000-000000.json"));
  std::ofstream(At("out.parts/w00000.ended")) << "";
  std::ofstream(At("out.parts/options.json")) << "{}";
  std::ofstream(At("out.parts/labels.json")) << "{}";

  const int held = ::open(At("out.parts/published").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  std::string message;
  EXPECT_EQ(CodeOf([&] { Writer(At("out"), options); }, &message), Code::kState);
  EXPECT_THAT(message, HasSubstr("another process removes them"));
  EXPECT_TRUE(fs::exists(At("out.parts/w00000-000001.json")));
  ::close(held);

  Writer writer(At("out"), options);
  EXPECT_FALSE(writer.has("a") || writer.has("b"));
  EXPECT_THAT(Files(At("out.parts")), ::testing::SizeIs(1));  // its lock
  EXPECT_EQ(CodeOf([&] { writer.finish(); }, &message), Code::kExists);
  EXPECT_THAT(message, HasSubstr("out is published already"));
  EXPECT_EQ(Dataset(At("out")).samples(), 2u);
}

// Which must not make a dataset of what is left.
TEST_F(WriterTest, ADamagedNoteOfWhatIsPublishedIsNamed) {
  fs::create_directories(At("out.parts"));
  std::ofstream(At("out.parts/published")) << "{";
  std::string message;
  EXPECT_EQ(CodeOf([&] { Writer(At("out")); }, &message), Code::kDataLoss);
  EXPECT_THAT(message, HasSubstr("out.parts/published is damaged"));
}

}  // namespace
}  // namespace shardpack_api
