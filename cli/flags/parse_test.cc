#include "cli/flags/parse.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <utility>

#include "cli/flags/flags.h"

namespace shardpack::cli {
namespace {

using Words = std::vector<std::string>;

CommandLine Parsed(Words words) {
  absl::StatusOr<CommandLine> line = ParseCommandLine("pack", std::move(words));
  EXPECT_TRUE(line.ok()) << line.status();
  return line.ok() ? *line : CommandLine{};
}

std::string Refusal(Words words) {
  absl::StatusOr<CommandLine> line = ParseCommandLine("pack", std::move(words));
  EXPECT_TRUE(absl::IsInvalidArgument(line.status())) << line.status();
  return std::string(line.status().message());
}

TEST(Parse, BuildNeedsNoVerb) {
  for (const Words& words : {Words{"photos", "-o", "out"}, Words{"build", "photos", "-o", "out"},
                             Words{"-o", "out", "photos"}, Words{"--out=out", "--", "photos"}}) {
    const CommandLine line = Parsed(words);
    EXPECT_EQ(line.verb, Verb::kBuild);
    EXPECT_EQ(line.arguments, Words{"photos"});
    EXPECT_EQ(line.pack().out, "out");
  }
}

TEST(Parse, EveryVerbIsKnown) {
  for (const VerbSpec& verb : AllVerbs()) {
    EXPECT_EQ(Parsed({std::string(verb.name), "--help"}).verb, verb.verb);
    EXPECT_TRUE(Parsed({"help", std::string(verb.name)}).help);
  }
}

TEST(Parse, ValuesArriveWhereTheyBelong) {
  const CommandLine line = Parsed({"photos",
                                   "-o",
                                   "out",
                                   "-f",
                                   "tfrecord",
                                   "--shard-size",
                                   "1GiB",
                                   "--split",
                                   "train=0.9,val=0.1",
                                   "--no-shuffle",
                                   "--seed=7",
                                   "--label-from",
                                   "dir:1",
                                   "--ext",
                                   "jpg,.PNG",
                                   "--include",
                                   "a*",
                                   "--include",
                                   "b*",
                                   "-j4",
                                   "--memory",
                                   "10%",
                                   "--strict",
                                   "--no-fsync",
                                   "--split-by",
                                   "stratified",
                                   "--key",
                                   "index",
                                   "--shards-range",
                                   "2-5",
                                   "--verify",
                                   "header",
                                   "--expect",
                                   "xxh3:0123456789abcdef0123456789abcdef",
                                   "--sidecar-index",
                                   "dali",
                                   "--progress",
                                   "json"});
  EXPECT_EQ(line.pack().request.format, "tfrecord");
  EXPECT_EQ(line.pack().request.plan.shard_bytes, uint64_t{1} << 30);
  EXPECT_EQ(line.pack().request.plan.splits.size(), 2u);
  EXPECT_FALSE(line.pack().request.plan.shuffle);
  EXPECT_EQ(line.pack().request.plan.seed, 7u);
  EXPECT_TRUE(line.pack().request.source.label_dir_given);
  EXPECT_EQ(line.pack().request.source.label_dir, 1);
  EXPECT_EQ(line.pack().request.source.extensions, (Words{"jpg", "PNG"}));
  EXPECT_EQ(line.pack().request.source.include, (Words{"a*", "b*"}));
  EXPECT_EQ(line.run.jobs, 4);
  EXPECT_DOUBLE_EQ(line.run.memory_share, 0.1);
  EXPECT_DOUBLE_EQ(line.pack().max_skip, 0);
  EXPECT_FALSE(line.run.fsync);
  EXPECT_EQ(line.pack().request.plan.split_by, SplitBy::kStratified);
  EXPECT_EQ(line.pack().request.plan.key, KeyMode::kIndex);
  EXPECT_EQ(line.pack().worker.range, std::pair(size_t{2}, size_t{6}));  // both ends included
  EXPECT_EQ(line.pack().request.plan.verify, ProbeLevel::kHeader);
  ASSERT_TRUE(line.run.expect.has_value());
  EXPECT_EQ(line.pack().request.plan.sidecar_indexes, Words{"dali"});
  EXPECT_EQ(line.progress, ProgressMode::kJson);
}

TEST(Parse, TheDefaultsAreThoseOfTheTable) {
  // The defaults documented in the table must match those of a run without flags.
  const CommandLine bare = Parsed({"photos"});
  for (const Flag* flag : FlagsOf(Verb::kBuild)) {
    if (flag->fallback.empty() || flag->kind != FlagKind::kValue) continue;
    CommandLine line;
    const absl::Status stored = StoreFlag(*flag, DefaultWord(*flag), line);
    if (!stored.ok()) continue;  // a default described in words: "the cores"
    EXPECT_EQ(line.pack().request.plan.ToMap(), bare.pack().request.plan.ToMap()) << flag->name;
    EXPECT_EQ(line.pack().request.source.ToMap(), bare.pack().request.source.ToMap()) << flag->name;
    EXPECT_EQ(line.run.memory_share, bare.run.memory_share);
    EXPECT_EQ(line.pack().max_skip, bare.pack().max_skip);
    EXPECT_EQ(line.run.io_depth, bare.run.io_depth);
    EXPECT_EQ(line.progress, bare.progress);
  }
}

TEST(Parse, TheLastOfSeveralCounts) {
  EXPECT_EQ(Parsed({"photos", "--seed", "1", "--seed", "2"}).pack().request.plan.seed, 2u);
  EXPECT_TRUE(Parsed({"photos", "--no-shuffle", "--shuffle"}).pack().request.plan.shuffle);
}

TEST(Parse, AnEmptyValueDoesNotTakeTheNextWord) {
  const CommandLine line =
      Parsed({"build", "--exclude=", "--seed", "2", "--exclude=a", "--", "--exclude="});
  EXPECT_EQ(line.pack().request.plan.seed, 2u);
  EXPECT_EQ(line.arguments, Words{"--exclude="});
  EXPECT_NE(Refusal({"photos", "--seed=", "7"}), "");
}

TEST(Parse, AnOptionalValueMayBeMissing) {
  EXPECT_FALSE(Parsed({"photos"}).pack().report.has_value());
  for (const Words& words :
       {Words{"photos", "--report"}, Words{"photos", "--report", "--seed", "2"},
        Words{"photos", "--report="}, Words{"--report", "--", "photos"}}) {
    const CommandLine line = Parsed(words);
    EXPECT_EQ(line.pack().report, "");
    EXPECT_EQ(line.arguments, Words{"photos"});
  }
  for (const Words& words :
       {Words{"photos", "--report", "a.html"}, Words{"--report=a.html", "photos"},
        Words{"--report", "--report", "a.html", "photos"}}) {
    EXPECT_EQ(Parsed(words).pack().report, "a.html");
  }
  for (const char* flag : {"--report", "--report=", "--report=a.html"})
    EXPECT_EQ(Parsed({flag, "--", "-photos"}).arguments, Words{"-photos"}) << flag;
  EXPECT_NE(Refusal({"--report", "photos"}).find("ends in .html"), std::string::npos);
  EXPECT_NE(Refusal({"photos", "--report", "s3://a/b.html"}), "");
}

TEST(Parse, AnOldNameIsStillAccepted) {
  for (const char* name : {"--fields", "--sidecars"}) {
    const CommandLine line = Parsed({"photos", name, "json,png:mask"});
    EXPECT_EQ(line.pack().request.source.sidecars.size(), 2u) << name;
    EXPECT_TRUE(line.Given("fields")) << name;
  }
}

TEST(Parse, TypingErrorsAreMet) {
  EXPECT_NE(Refusal({"valdate", "x"}).find("did you mean pack validate?"), std::string::npos);
  EXPECT_NE(Refusal({"photos", "--shard-sise", "1GB"}).find("did you mean --shard-size?"),
            std::string::npos);
  EXPECT_NE(Refusal({"photos", "-f", "webdatset"}).find("did you mean webdataset?"),
            std::string::npos);
  EXPECT_NE(Refusal({"photos", "--split-by", "hsah"}).find("did you mean hash?"),
            std::string::npos);
  EXPECT_NE(Refusal({"photos", "-shard-size", "1GB"}).find("--shard-size"), std::string::npos);
  EXPECT_NE(Refusal({"photos", "--slurm", "d"}).find("belongs to pack plan, not to pack build"),
            std::string::npos);
  EXPECT_NE(
      Refusal({"photos", "--write", "f"}).find("to pack plan and pack list, not to pack build"),
      std::string::npos);
  EXPECT_NE(Refusal({"photos", "-o"}).find("--out needs a value"), std::string::npos);
  EXPECT_NE(Refusal({"validate"}).find("pack validate shards/"), std::string::npos);
  EXPECT_NE(Refusal({"info"}).find("needs"), std::string::npos);
  EXPECT_NE(Refusal({"commit", "a", "b"}).find("unexpected argument b"), std::string::npos);
  EXPECT_EQ(Refusal({"commit", "a", "b"}).find("-o"), std::string::npos);
  EXPECT_NE(Refusal({"build", "a", "b c"}).find("-o 'b c'"), std::string::npos);
  EXPECT_EQ(Refusal({"build", "a", "b", "-o", "c"}).find("-o b"), std::string::npos);
  EXPECT_NE(Refusal({"photos", "--resise", "shortest"}).find("--resize"), std::string::npos);
  EXPECT_NE(Refusal({"photos", "--resize", "256"}).find("as in --resize shortest --size 256"),
            std::string::npos);
  EXPECT_NE(Refusal({"photos", "--resize", "9x8"}).find("as in --resize crop --size 9x8"),
            std::string::npos);
  EXPECT_EQ(Parsed({"photos", "--encode", "jpeg"}).pack().request.plan.pixels.encode,
            Parsed({"photos", "--encode", "jpg"}).pack().request.plan.pixels.encode);
}

TEST(Parse, PixelsAreStored) {
  const TransformOptions pixels = Parsed({"photos",
                                          "--resize",
                                          "pad",
                                          "--size",
                                          "224x160",
                                          "--interpolation",
                                          "lanczos",
                                          "--encode",
                                          "webp",
                                          "--quality",
                                          "80",
                                          "--color",
                                          "gray",
                                          "--depth",
                                          "8",
                                          "--alpha",
                                          "#0a0B0c",
                                          "--orient",
                                          "keep",
                                          "--icc",
                                          "srgb",
                                          "--exact",
                                          "--only-if-bigger"})
                                      .pack()
                                      .request.plan.pixels;
  TransformOptions expected{.resize = ResizeMode::kPad, .width = 224, .height = 160};
  expected.only_if_bigger = expected.exact = expected.depth8 = true;
  expected.interpolation = Interpolation::kLanczos;
  expected.encode = EncodeAs::kWebp;
  expected.quality = 80;
  expected.color = ColorChange::kGray;
  expected.alpha = AlphaChange::kBlend;
  expected.background = 0x0A0B0C;
  expected.orient = OrientChange::kKeep;
  expected.profile = ProfileChange::kSrgb;
  EXPECT_EQ(pixels, expected);
  EXPECT_TRUE(Parsed({"photos", "--encode", "keep", "--color", "keep"})
                  .pack()
                  .request.plan.pixels.identity());
  EXPECT_NE(Refusal({"photos", "--size", "12y8"}).find("224x160"), std::string::npos);
  EXPECT_NE(Refusal({"photos", "--alpha", "#12345"}).find("#ffffff"), std::string::npos);
}

TEST(Parse, ValuesAreChecked) {
  const Words bad[] = {{"--shard-size", "0"},
                       {"--shards", "x"},
                       {"--worker", "0/4"},
                       {"--worker", "5/4"},
                       {"--worker", "2"},
                       {"--stale-after", "0"},
                       {"--takeover", "later"},
                       {"-j", "0"},
                       {"-j", "x"},
                       {"--memory", "0%"},
                       {"--memory", "101%"},
                       {"--max-skip", "2"},
                       {"--expect", "abc"},
                       {"--split", "a=1,b=1"},
                       {"--label-from", "dir:x"},
                       {"--label-from", "folder"},
                       {"--max-aspect", "0.5"},
                       {"--min-size", "-1"},
                       {"--sidecar-index", "dali,foo"},
                       {"--out", ""},
                       {"--ext", ","},
                       {"--shards-range", "5-2"}};
  for (Words words : bad) {
    const std::string flag = words[0];
    words.insert(words.begin(), "photos");
    EXPECT_NE(Refusal(words).find(flag.substr(0, 2)), std::string::npos) << flag;
  }
}

TEST(Parse, MessagesAreSafeForATerminal) {
  EXPECT_EQ(Refusal({"photos", "-f", "a\033[31mb"}).find('\033'), std::string::npos);
  EXPECT_EQ(Refusal({"photos", "--x\033[31m"}).find('\033'), std::string::npos);
}

class ConfigFile : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    const std::string path = testing::TempDir() + "/config.toml";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(ConfigFile, GivesWhatTheCommandLineDoesNot) {
  const std::string path = Write(
      "shard-size = \"1MB\"\nseed = 4\nshuffle = false\ninclude = [\"a*\", \"b*\"]\n"
      "[plan]\nseed = 5\n[validate]\nlevel = \"quick\"\n");
  const CommandLine line = Parsed({"photos", "--config", path, "--shard-size", "2MB"});
  EXPECT_EQ(line.pack().request.plan.shard_bytes, 2'000'000u);
  EXPECT_EQ(line.pack().request.plan.seed, 4u);
  EXPECT_FALSE(line.pack().request.plan.shuffle);
  EXPECT_EQ(line.pack().request.source.include, (Words{"a*", "b*"}));
  EXPECT_EQ(Parsed({"plan", "photos", "--config", path}).pack().request.plan.seed, 5u);
}

TEST_F(ConfigFile, IsCheckedToo) {
  EXPECT_NE(
      Refusal({"photos", "--config", Write("shard-sise = 3\n")}).find("did you mean shard-size?"),
      std::string::npos);
  EXPECT_NE(Refusal({"photos", "--config", Write("format = \"webdatset\"\n")}).find("did you mean"),
            std::string::npos);
  EXPECT_NE(
      Refusal({"photos", "--config", Write("[biuld]\nseed = 3\n")}).find("did you mean build?"),
      std::string::npos);
  EXPECT_NE(Refusal({"photos", "--config", "/no/such/file"}).find("/no/such/file"),
            std::string::npos);
}

}  // namespace
}  // namespace shardpack::cli
