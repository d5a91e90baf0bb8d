#include "converters/publishing/journal.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "converters/publishing/pack_names.h"
#include "formats/io/file.h"
#include "formats/testing/scratch_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::shardpack::testing::ScratchFolder;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ShardResult Example(uint32_t shard) {
  ShardResult result;
  result.shard = shard;
  result.file = {"train-000000.tar", 10240, Digest{1, 2}};
  result.index = {"train-000000.tar.pidx", 400, Digest{3, 4}};
  result.records = 7;
  result.sha256 = "ab";
  result.skips = {{11, SkipReason::kTruncated, "no EOI \"marker\"\n"},
                  {12, SkipReason::kChanged, ""}};
  result.facts = {
      100, 90, 500, 1, 2, 3, 4, {{"jpg", 6}, {"png", 1}}, {{"kept", 7}}, {{"sum_0", 1ull << 63}},
      {}};
  result.plan = Digest{5, 6};
  result.times = Digest{7, 8};
  return result;
}

std::string Append(const std::string& path, const std::string& text) {
  FILE* file = std::fopen(path.c_str(), "a");
  std::fputs(text.c_str(), file);
  std::fclose(file);
  return path;
}

TEST(JournalTest, ALineComesBackAsItWas) {
  const ShardResult result = Example(3);
  const std::string line = ToJournalLine(result);
  ASSERT_EQ(line.back(), '\n');
  ShardResult parsed;
  ASSERT_TRUE(ParseJournalLine(line.substr(0, line.size() - 1), &parsed));
  EXPECT_EQ(parsed.shard, 3u);
  EXPECT_EQ(parsed.file, result.file);
  EXPECT_EQ(parsed.index, result.index);
  EXPECT_EQ(parsed.records, 7u);
  EXPECT_EQ(parsed.plan, result.plan);
  EXPECT_EQ(parsed.times, result.times);
  EXPECT_EQ(parsed.sha256, "ab");
  EXPECT_EQ(parsed.skips, result.skips);
  EXPECT_EQ(parsed.facts.image_formats, result.facts.image_formats);
  EXPECT_EQ(parsed.facts.pixels, result.facts.pixels);
  EXPECT_EQ(parsed.facts.pixel_sums, result.facts.pixel_sums);
  EXPECT_EQ(ToJournalLine(parsed), line);
}

TEST(JournalTest, WhatIsAboutToBePublishedIsNotFinished) {
  const ScratchFolder scratch;
  auto journal = Journal::Open(scratch.File("journal.jsonl"), false);
  ASSERT_TRUE(journal.ok());
  const ShardResult result = Example(3);
  ASSERT_TRUE((*journal)->AppendPending(result).ok());
  EXPECT_TRUE(IsJournalText(*ReadWholeFile(scratch.File("journal.jsonl"), 1 << 20)));
  EXPECT_THAT(*ReadJournals(scratch.path()), IsEmpty());
  JournalReader reader(scratch.path());
  EXPECT_THAT(*reader.ReadNew(), IsEmpty());
  ASSERT_THAT(reader.pending(), SizeIs(1));
  EXPECT_EQ(reader.pending()[0].file, result.file);
  EXPECT_EQ(reader.pending()[0].index, result.index);
  EXPECT_EQ(reader.pending()[0].plan, result.plan);
  ASSERT_TRUE((*journal)->Append(result).ok());
  EXPECT_THAT(*reader.ReadNew(), SizeIs(1));
  EXPECT_THAT(reader.pending(), SizeIs(1));
}

TEST(JournalTest, OnlyNamesThatPackGivesAreOfItsJournals) {
  const std::string run = "node1-0a1b2c3d-4711-9f3a00c2";
  EXPECT_EQ(NameInFolder(WorkersJournal(run)), "journal-" + run + ".jsonl");
  for (const std::string& ours :
       {std::string(NameInFolder(kJournalName)), std::string(NameInFolder(WorkersJournal(run)))})
    EXPECT_TRUE(IsOwnJournalName(ours)) << ours;
  for (const std::string theirs : {"journal", "journal.jsonl.bak", "journal-.jsonl",
                                   "journal-backup.jsonl", "journal-0-2.jsonl", "old-journal.jsonl",
                                   "journal-node1-0a1b2c3d-4711-9f3a00c2.jsonl.jsonl",
                                   "journal-node1-0a1b2c3d-4711-9f3a00c2 (copy).jsonl"})
    EXPECT_FALSE(IsOwnJournalName(theirs)) << theirs;
}

TEST(JournalTest, EveryFlippedBitAndEveryCutIsRefused) {
  std::string line = ToJournalLine(Example(3));
  line.pop_back();
  ShardResult parsed;
  for (size_t bit = 0; bit < line.size() * 8; ++bit) {
    std::string damaged = line;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(ParseJournalLine(damaged, &parsed)) << bit;
  }
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(ParseJournalLine(line.substr(0, size), &parsed)) << size;
  }
}

TEST(JournalTest, ATornLineDoesNotSwallowTheNextOne) {
  const ScratchFolder scratch;
  const std::string path = scratch.File("journal.jsonl");
  {
    auto journal = Journal::Open(path, true);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Append(Example(1)).ok());
  }
  Append(path, ToJournalLine(Example(2)).substr(0, 50));
  {
    auto journal = Journal::Open(path, false);
    ASSERT_TRUE((*journal)->Append(Example(3)).ok());
  }
  auto results = ReadJournals(scratch.path());
  ASSERT_TRUE(results.ok());
  ASSERT_THAT(*results, SizeIs(2));
  EXPECT_EQ((*results)[0].shard, 1u);
  EXPECT_EQ((*results)[1].shard, 3u);
}

TEST(JournalTest, PartsOfSeveralWorkersAreOne) {
  const ScratchFolder scratch;
  EXPECT_THAT(*ReadJournals(scratch.path()), IsEmpty());
  Append(scratch.File("journal-0-2.jsonl"), ToJournalLine(Example(1)));
  Append(scratch.File("journal-2-4.jsonl"), ToJournalLine(Example(2)) + ToJournalLine(Example(0)));
  Append(scratch.File("plan"), "not a journal");
  auto results = ReadJournals(scratch.path());
  ASSERT_TRUE(results.ok());
  ASSERT_THAT(*results, SizeIs(3));
  for (uint32_t n = 0; n < 3; ++n) EXPECT_EQ((*results)[n].shard, n);
}

TEST(JournalTest, TextIsTheirsUnlessALineIsOfAJournal) {
  const std::string line = ToJournalLine(Example(1));
  for (const std::string& ours :
       {std::string(), std::string("\n"), line, "\n" + line, "\n" + line.substr(0, 40),
        "\n" + line.substr(0, 5), std::string(9, '\0'), "torn\n" + line})
    EXPECT_TRUE(IsJournalText(ours)) << ours;
  for (const std::string theirs : {"precious", "{\n  \"notes\": 1\n}\n", "{\"mine\": 1}\n", "{",
                                   "\n{\n\"a\": 1}\n", "\n{\"fa\nmore\n"})
    EXPECT_FALSE(IsJournalText(theirs)) << theirs;
}

TEST(MergeFactsTest, TakesExtremesAndSums) {
  DatasetFacts all;
  MergeFacts({100, 90, 500, 10, 20, 30, 40, {{"jpg", 6}}}, all);
  MergeFacts({}, all);  // a shard without an image says nothing about sizes
  MergeFacts({50, 95, 1, 5, 25, 35, 35, {{"png", 1}, {"jpg", 1}}}, all);
  EXPECT_EQ(all.largest_record_bytes, 100u);
  EXPECT_EQ(all.max_image_bytes, 95u);
  EXPECT_EQ(all.image_bytes, 501u);
  EXPECT_EQ(all.min_width, 5u);
  EXPECT_EQ(all.max_width, 25u);
  EXPECT_EQ(all.min_height, 30u);
  EXPECT_EQ(all.max_height, 40u);
  EXPECT_EQ(all.image_formats["jpg"], 7u);
}

// As a disk that is full for a while does.
TEST(JournalTest, ALineThatWasCutDoesNotSwallowTheNextOne) {
  const ScratchFolder scratch;
  const std::string path = scratch.File("journal.jsonl");
  auto journal = Journal::Open(path, /*sync=*/false);
  ASSERT_TRUE(journal.ok());
  ASSERT_TRUE((*journal)->Append(Example(1)).ok());
  const uint64_t bytes = std::filesystem::file_size(path);
  struct rlimit was;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &was), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit cut = {bytes + 100, was.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &cut), 0);
  EXPECT_FALSE((*journal)->Append(Example(2)).ok());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &was), 0);
  EXPECT_EQ(std::filesystem::file_size(path), bytes + 100);
  ASSERT_TRUE((*journal)->Append(Example(3)).ok());
  const auto lines = ReadJournals(scratch.path());
  ASSERT_TRUE(lines.ok());
  ASSERT_THAT(*lines, SizeIs(2));
  EXPECT_EQ((*lines)[0].shard, 1u);
  EXPECT_EQ((*lines)[1].shard, 3u);
}

// Shards whose images no prober knows, before and after others.
TEST(MergeFactsTest, ImagesOfUnknownSizeSayNothingAboutSizes) {
  const DatasetFacts unknown{100, 90, 500, 0, 0, 0, 0, {{"bin", 6}}};
  DatasetFacts all;
  const DatasetFacts known{50, 95, 1, 5, 25, 35, 45, {{"png", 1}}};
  for (const DatasetFacts& shard : {unknown, known, unknown}) MergeFacts(shard, all);
  EXPECT_EQ(all.min_width, 5u);
  EXPECT_EQ(all.max_width, 25u);
  EXPECT_EQ(all.min_height, 35u);
  EXPECT_EQ(all.max_height, 45u);
  EXPECT_EQ(all.image_formats["bin"], 12u);
}

}  // namespace
}  // namespace shardpack
