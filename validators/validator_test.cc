// The content of a report; what a full, a partial and a stopped validation check.
#include "validators/validator.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/fault_injection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "validators/validation_scene.h"

namespace shardpack::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Validator, ASoundDatasetHasNoFinding) {
  for (const ValidationLevel level : {ValidationLevel::kQuick, ValidationLevel::kFull}) {
    Scene scene;
    const ValidationReport report =
        scene.Validate({.level = level, .expect = scene.manifest.Identity()});
    EXPECT_EQ(Names(report), "");
    EXPECT_EQ(report.shards_checked, 3u);
    EXPECT_EQ(report.records_checked, level == ValidationLevel::kFull ? 18u : 6u);
    EXPECT_EQ(report.bytes_read == report.bytes, level == ValidationLevel::kFull);
    EXPECT_EQ(report.identity, scene.manifest.Identity());
    EXPECT_FALSE(report.stopped);
  }
}

TEST(Validator, AReportNeverSaysMoreThanWasChecked) {
  Scene scene;
  const std::string text = ToText(scene.Validate({.level = ValidationLevel::kQuick}));
  EXPECT_THAT(text, AllOf(HasSubstr("level quick"), HasSubstr("6 of 18 records"),
                          HasSubstr("not checked: the bytes"), HasSubstr("in what was checked"),
                          Not(HasSubstr("ok")), Not(HasSubstr("valid:"))));
  const auto json = nlohmann::json::parse(ToJson(scene.Validate()));
  EXPECT_EQ(json["schema"], "shardpack.validation/1");
  EXPECT_EQ(json["level"], "full");
  EXPECT_EQ(json["records"]["checked"], 18);
  EXPECT_EQ(json["findings"].size(), 0u);
  EXPECT_THAT(json["not_checked"], Contains("whether the images can be decoded"));
}

TEST(Validator, JsonEscapesWhatIsNotUtf8AndTextWhatDrivesATerminal) {
  Scene scene;
  scene.Write("evil\x1b[31m\xff.txt", "x");
  const ValidationReport report = scene.Validate();
  const auto json = nlohmann::json::parse(ToJson(report));
  EXPECT_EQ(json["findings"][0]["shard"], "evil%1B[31m%FF.txt");
  EXPECT_THAT(ToText(report), AllOf(HasSubstr("evil\\x1b[31m\\xff.txt"), Not(HasSubstr("\x1b"))));
}

TEST(Validator, OneLostRecordIsOneFindingAndTheNextOnesMatch) {
  Scene scene;
  std::vector<TestSample> samples = scene.SamplesOf(1);
  // The same offsets after a removed record: this format cannot have gaps, so the index has one
  // more record.
  scene.EditIndex([](auto& rows) {
    Scene::Row extra = rows[2];
    extra.record.offset += 1;
    rows.insert(rows.begin() + 3, extra);
  });
  const ValidationReport report = scene.Validate();
  EXPECT_EQ(Names(report), "record-missing key-duplicate count-mismatch ");
  EXPECT_EQ(report.findings.count(FindingId::kRecordMissing), 1u);
}

TEST(Validator, AFindingNamesThePlace) {
  Scene scene;
  const absl::StatusOr<ShardIndex> index =
      ShardIndex::Open(scene.Path("train-1.pidx"), scene.Read("train-1.toy").size());
  const Extent image = index->field(4, 0);
  scene.Flip("train-1.toy", image.offset + 11);
  const ValidationReport report = scene.Validate();
  ASSERT_EQ(Names(report), "file-hash record-hash ");
  const Finding& finding = report.findings.kept()[0];
  EXPECT_EQ(finding.shard, "train-1.toy");
  EXPECT_EQ(finding.record, 4u);
  EXPECT_EQ(finding.key, scene.SamplesOf(1)[4].key);
  EXPECT_EQ(finding.field, "image");
  EXPECT_EQ(finding.offset, image.offset);
  EXPECT_EQ(finding.length, image.length);
  EXPECT_EQ(finding.expected.size(), 16u);
  scene.Flip("train-1.toy", image.offset + 11);
  EXPECT_EQ(Names(scene.Validate()), "") << "the byte is back";
}

TEST(Validator, ASwappedShardOfTheSameSizeIsFoundAtEachLevel) {
  Scene ours;
  const std::string other = MakeTestFolder("other");
  TestDatasetOptions options{.shards = 3, .records_per_shard = 6, .seed = 2};
  WriteTestDataset(other, ToyFormat(), options);
  const std::string shard = ReadTestFile(other + "/train-1.toy");
  ASSERT_EQ(shard.size(), ours.Read("train-1.toy").size());
  ours.Write("train-1.toy", shard);
  EXPECT_THAT(Names(ours.Validate({.level = ValidationLevel::kQuick})),
              AllOf(HasSubstr("index-shard-mismatch"), HasSubstr("record-hash")));
  EXPECT_THAT(Names(ours.Validate()), HasSubstr("file-hash"));
  // Even with its own index, it is not the shard that the manifest names.
  ours.Write("train-1.pidx", ReadTestFile(other + "/train-1.pidx"));
  EXPECT_THAT(Names(ours.Validate({.level = ValidationLevel::kQuick})),
              HasSubstr("index-shard-mismatch"));
  (void)RemoveTree(other);
}

TEST(Validator, SubsetsTogetherCheckEverything) {
  Scene scene;
  uint64_t records = 0;
  for (uint32_t part = 0; part < 2; ++part) {
    const ValidationReport report = scene.Validate({.subset_index = part, .subset_count = 2});
    EXPECT_EQ(report.shards_checked, part == 0 ? 2u : 1u);
    EXPECT_THAT(ToText(report), HasSubstr("not checked: shards outside part"));
    records += report.records_checked;
  }
  EXPECT_EQ(records, 18u);
}

TEST(Validator, ASampleIsTheSameEachTimeAndPartOfALargerOne) {
  Scene scene({.shards = 1, .records_per_shard = 400, .max_image_bytes = 100});
  const uint64_t few = scene.Validate({.sample_percent = 10}).records_checked;
  EXPECT_EQ(scene.Validate({.sample_percent = 10}).records_checked, few);
  EXPECT_GT(few, 20u);
  EXPECT_LT(few, 65u);
  const ValidationReport more = scene.Validate({.sample_percent = 50});
  EXPECT_GT(more.records_checked, 150u);
  EXPECT_LT(more.records_checked, 250u);
  EXPECT_THAT(ToText(more), HasSubstr("not checked: records outside a sample of 50 %"));
}

TEST(Validator, StopAndTimeLimitAreSaid) {
  Scene scene;
  std::atomic<int> stop{2};
  ValidationProgress progress;
  const absl::StatusOr<ValidationReport> stopped =
      ValidateDataset(scene.folder, kToy, {}, progress, stop);
  ASSERT_TRUE(stopped.ok());
  EXPECT_TRUE(stopped->stopped);
  EXPECT_EQ(stopped->shards_checked, 0u);
  EXPECT_THAT(ToText(*stopped),
              HasSubstr("stopped by signal 2: 3 of 3 shards are not or not wholly checked"));
  const ValidationReport late = scene.Validate({.max_seconds = 1e-9});
  EXPECT_TRUE(late.stopped);
  EXPECT_EQ(late.errors(), 0u);
}

TEST(Validator, UsageErrorsAreStatus) {
  Scene scene;
  std::atomic<int> stop{0};
  ValidationProgress progress;
  const auto fails = [&](const std::string& path, ValidateOptions options) {
    return ValidateDataset(path, kToy, options, progress, stop).status();
  };
  EXPECT_TRUE(absl::IsNotFound(fails(scene.Path("none"), {})));
  EXPECT_TRUE(absl::IsInvalidArgument(fails(scene.Path("train-1.toy"), {})));
  std::filesystem::create_directory(scene.Path("empty"));
  EXPECT_TRUE(absl::IsInvalidArgument(fails(scene.Path("empty"), {})));
  EXPECT_TRUE(absl::IsInvalidArgument(fails(scene.folder, {.subset_index = 2, .subset_count = 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(fails(scene.folder, {.sample_percent = 0})));
  const std::string missing[] = {scene.Path("none.toy")};
  EXPECT_TRUE(absl::IsNotFound(ValidateShards(missing, kToy, {}, progress, stop).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateShards({}, kToy, {}, progress, stop).status()));
}

TEST(Validator, ADamagedShardCannotFillTheMemory) {
  Scene scene({.shards = 1, .records_per_shard = 3000, .max_image_bytes = 60});
  std::vector<TestSample> samples = scene.made.samples;
  for (TestSample& sample : samples) sample.key += "x";
  scene.Write("train-0.pidx", IndexTestShard(scene.Path("train-0.toy"), ToyFormat(), samples));
  scene.Reseal();
  const ValidationReport report = scene.Validate();
  EXPECT_EQ(report.findings.count(FindingId::kKeyMismatch), 3000u);
  EXPECT_LE(report.findings.kept().size(), 100u);
  EXPECT_THAT(ToText(report), HasSubstr("and 2900 more findings like these"));
}

TEST(Validator, SourcesThatMatchAreCounted) {
  const ValidationReport report = AgainstSources([](const std::string&) {});
  EXPECT_EQ(Names(report), "");
  EXPECT_EQ(report.sources_compared, 18u);
}

TEST(Validator, ASourcePathThatLeavesTheFolderIsNotFollowed) {
  Scene scene;
  std::vector<TestSample> samples = scene.SamplesOf(1);
  samples[0].source_path = "../scene/secret";
  samples[1].source_path = "/etc/passwd";
  scene.Reindex(samples);
  const ValidationReport report = scene.Validate({.open_source = FilesBelow(scene.folder)});
  EXPECT_EQ(report.findings.count(FindingId::kSourceMissing), 18u);
  EXPECT_THAT(ToText(report), HasSubstr("/etc/passwd: leads out of the folder"));
}

TEST(Validator, FilesThatTheDatasetLacks) {
  Scene scene;
  ValidateOptions options;
  options.visit_source = [](const SourceSeen& see) {
    for (int i = 0; i < 100; ++i) see("cat/new.JPEG", "cat");
    see("cat/000004.JPEG", "dog");
  };
  const ValidationReport report = scene.Validate(options);
  EXPECT_EQ(report.findings.count(FindingId::kSourceExtra), 100u);
  EXPECT_EQ(report.findings.count(FindingId::kSourceClassMismatch), 1u);
  EXPECT_THAT(ToText(report), HasSubstr("not in the dataset: cat/new.JPEG"));
  EXPECT_THAT(ToText(report), HasSubstr("cat/000004.JPEG: packed as cat, now dog"));
}

int source_reads = 0;

ssize_t CountingPread(int fd, void* into, size_t size, off_t offset) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::error_code error;
  if (std::filesystem::read_symlink(link, error).native().ends_with("rgb.jpg")) ++source_reads;
  return ::pread(fd, into, size, offset);
}

// One folder per sample with the same file name in each; the folder above was renamed.
TEST(Validator, AFileThatNoRecordHasIsReadOnce) {
  constexpr int kFiles = 60;
  TestDatasetOptions options{.shards = 1, .records_per_shard = kFiles};
  options.samples = MakeTestSamples(options);
  for (int i = 0; i < kFiles; ++i) {
    options.samples[i].source_path = "was/" + std::to_string(i) + "/rgb.jpg";
    options.samples[i].image.resize(40);
    options.samples[i].image[20] = static_cast<char>(i);  // all of them are different
  }
  Scene scene(options);
  const std::string source = MakeTestFolder("moved");
  for (int i = 0; i < kFiles; ++i) {
    std::filesystem::create_directories(source + "/is/" + std::to_string(i));
    WriteTestFile(source + "/is/" + std::to_string(i) + "/rgb.jpg", options.samples[i].image);
  }
  WriteTestFile(source + "/new.jpg", options.samples[0].image);
  ValidateOptions against{.open_source = FilesBelow(source)};
  against.visit_source = [](const SourceSeen& see) {
    for (int i = kFiles; i-- > 0;) see("is/" + std::to_string(i) + "/rgb.jpg", "cat");
    see("new.jpg", "cat");
  };
  source_reads = 0;
  const ScopedSyscalls restored;
  SyscallsForTesting().pread = CountingPread;
  const ValidationReport report = scene.Validate(against);
  EXPECT_EQ(report.findings.count(FindingId::kSourceMoved) +
                report.findings.count(FindingId::kSourceClassMismatch),
            static_cast<uint64_t>(kFiles));
  EXPECT_EQ(report.findings.count(FindingId::kSourceExtra), 1u);
  std::vector<std::string> details;
  for (const Finding& finding : report.findings.kept()) details.push_back(finding.detail);
  for (int i = 0; i < kFiles; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_THAT(details, Contains(AllOf(HasSubstr("is/" + number + "/rgb.jpg: packed from "),
                                        HasSubstr("was/" + number + "/rgb.jpg"))));
  }
  EXPECT_THAT(details, Contains("new.jpg"));
  EXPECT_GE(source_reads, kFiles);
  EXPECT_LE(source_reads, 3 * kFiles);
  (void)RemoveTree(source);
}

TEST(Validator, AStopEndsTheLookForMovedFiles) {
  Scene scene;
  std::atomic<int> stop{0};
  ValidateOptions options;
  options.visit_source = [&](const SourceSeen& see) {
    see("new.jpg", "cat");
    stop = 2;
    see("newer.jpg", "cat");
  };
  ValidationProgress progress;
  const auto report = ValidateDataset(scene.folder, kToy, options, progress, stop);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->findings.count(FindingId::kSourceExtra), 0u);
  EXPECT_THAT(report->not_checked,
              Contains("which files of the source are not in the dataset: stopped"));
}

// --- Datasets indexed in place.

// The scene's shards are in one folder, manifest and indexes in another.
class IndexedScene : public Scene {
 public:
  IndexedScene() {
    ::unlink(Path("skipped.jsonl").c_str());
    std::filesystem::create_directory(Path("in"));
    manifest.origin = "adopted";
    for (ManifestShard& shard : manifest.shards) {
      shard.location = "in/" + shard.name;
      std::filesystem::rename(Path(shard.name), Path(shard.location));
    }
    std::erase_if(manifest.files,
                  [](const FileEntry& file) { return !file.name.ends_with(".pidx"); });
    manifest.counts = {.seen = 18, .packed = 18};
    Write("manifest.json", manifest.ToJson());
  }
};

TEST(IndexedDatasets, ShardsElsewhereAreCheckedAsThoseOfTheFolder) {
  IndexedScene scene;
  ValidationReport report = scene.Validate();
  EXPECT_EQ(Names(report), "");
  EXPECT_EQ(report.records_checked, 18u);
  EXPECT_EQ(report.bytes_read, report.bytes);
  EXPECT_EQ(Names(scene.Validate({.level = ValidationLevel::kQuick})), "");
  const std::string shard = scene.Read("in/train-1.toy");
  scene.Flip("in/train-1.toy", shard.size() / 2);
  report = scene.Validate();
  EXPECT_EQ(report.findings.count(FindingId::kFileHash), 1u);
  EXPECT_EQ(report.findings.count(FindingId::kRecordHash), 1u);
  scene.Write("in/train-1.toy", shard + "more");
  EXPECT_EQ(scene.Validate().findings.count(FindingId::kFileSize), 1u);
  ::unlink(scene.Path("in/train-1.toy").c_str());
  report = scene.Validate();
  EXPECT_EQ(Names(report), "file-missing ");
  EXPECT_EQ(report.findings.kept()[0].shard, "in/train-1.toy");
  ASSERT_EQ(::mkfifo(scene.Path("in/train-1.toy").c_str(), 0600), 0);
  EXPECT_EQ(Names(scene.Validate()), "file-missing ") << "and nothing waits for it";
}

TEST(IndexedDatasets, OtherFilesMayLieThereButNoStaleIndexes) {
  IndexedScene scene;
  scene.Write("README", "of the other tool");
  EXPECT_EQ(Names(scene.Validate()), "");
  scene.Write("old.toy.pidx", "x");
  EXPECT_EQ(Names(scene.Validate()), "file-extra ");
}

// --- Foreign shards.

TEST(ForeignShards, SoundOnesHaveNoFinding) {
  Scene scene;
  const ValidationReport report =
      ForeignReport({scene.Path("train-0.toy"), scene.Path("train-2.toy")});
  EXPECT_EQ(Names(report), "");
  EXPECT_EQ(report.records_checked, 12u);
  EXPECT_EQ(report.format, "toy");
  const ValidationReport quick =
      ForeignReport({scene.Path("train-0.toy")}, {.level = ValidationLevel::kQuick});
  EXPECT_EQ(quick.records_checked, 0u);
  EXPECT_THAT(ToText(quick), HasSubstr("not checked: everything but the first bytes"));
}

TEST(ForeignShards, AManifestBesideThemTellsWhatTheirBytesMustBe) {
  Scene scene;
  const std::string path = scene.Path("train-1.toy");
  std::string bytes = scene.Read("train-1.toy");
  std::string image(scene.SamplesOf(1)[2].image);
  // Within the pixels, where no rule of the container looks.
  scene.Flip("train-1.toy", bytes.find(image) + image.size() - 1);
  for (const ValidationLevel level : {ValidationLevel::kFull, ValidationLevel::kDeep}) {
    const ValidationReport report =
        ForeignReport({scene.Path("train-0.toy"), path}, {.level = level});
    EXPECT_EQ(report.findings.count(FindingId::kFileHash), 1u) << LevelName(level);
    EXPECT_THAT(ToText(report), HasSubstr(scene.folder));
    EXPECT_THAT(ToText(report), HasSubstr(" repair "));
  }
  EXPECT_EQ(Names(ForeignReport({path}, {.level = ValidationLevel::kQuick})), "");
  scene.Write("train-1.toy", bytes.substr(0, bytes.size() - 1));
  EXPECT_THAT(Names(ForeignReport({path}, {.level = ValidationLevel::kQuick})),
              HasSubstr("file-size "));
  // Without a manifest that lists it, nothing says what it must be.
  scene.Write("other.toy", bytes);
  EXPECT_THAT(ToText(ForeignReport({scene.Path("other.toy")})),
              HasSubstr("not checked: sizes and hashes of 1 of 1 files"));
  EXPECT_THAT(ToText(ForeignReport({scene.Path("train-0.toy")})), Not(HasSubstr("hashes of")));
  // A damaged manifest is no reason to pass.
  scene.Flip("manifest.json", scene.Read("manifest.json").find("train-0"));
  EXPECT_GT(ForeignReport({scene.Path("train-0.toy")}).errors(), 0u);
}

TEST(ForeignShards, RecordsWithoutALabelAreCounted) {
  Scene scene;
  std::vector<TestSample> samples = scene.SamplesOf(0);
  samples[1].label = -1;
  WriteTestShard(scene.Path("foreign.toy"), ToyFormat(), samples);
  EXPECT_THAT(ToText(ForeignReport({scene.Path("foreign.toy")})),
              HasSubstr("not checked: the labels of 1 of 6 records"));
}

TEST(ForeignShards, TheSameKeyInTwoShardsIsNamed) {
  Scene scene;
  std::vector<TestSample> samples = scene.SamplesOf(0);
  WriteTestShard(scene.Path("again.toy"), ToyFormat(), {samples[4]});
  const ValidationReport report =
      ForeignReport({scene.Path("train-0.toy"), scene.Path("again.toy")});
  ASSERT_EQ(Names(report), "key-duplicate ");
  EXPECT_EQ(report.findings.kept()[0].key, samples[4].key);
  EXPECT_THAT(report.findings.kept()[0].detail, HasSubstr("as record 4 of "));
}

// Bytes 8 to 11 of an index are its version.
TEST(Validator, AnIndexOfAnotherVersionIsNoDamage) {
  Scene scene;
  std::string index = scene.Read("train-1.pidx");
  index[8] = 9;
  scene.Write("train-1.pidx", ResealedIndex(index));
  scene.Reseal();
  const ValidationReport report = scene.Validate();
  EXPECT_EQ(report.findings.count(FindingId::kOtherVersion), 1u);
  EXPECT_EQ(report.findings.count(FindingId::kIndexInvalid), 0u);
  EXPECT_THAT(report.findings.kept()[0].detail, HasSubstr("index version 9, expected 1"));
}

TEST(ForeignShards, OddFilesAreFindingsAndTheOthersAreChecked) {
  Scene scene;
  scene.Write("empty.toy", "");
  scene.Write("one.toy", "T");
  scene.Write("random.toy", std::string(1 << 20, 'r'));
  std::filesystem::create_directory(scene.Path("folder.toy"));
  ASSERT_EQ(::mkfifo(scene.Path("pipe.toy").c_str(), 0600), 0);
  scene.Write("cut.toy", scene.Read("train-1.toy").substr(0, 900));
  const ValidationReport report =
      ForeignReport({scene.Path("empty.toy"), scene.Path("one.toy"), scene.Path("random.toy"),
                     scene.Path("folder.toy"), scene.Path("pipe.toy"), scene.Path("cut.toy"),
                     scene.Path("train-0.toy")});
  EXPECT_EQ(report.findings.count(FindingId::kUnknownFormat), 5u);
  EXPECT_EQ(report.findings.count(FindingId::kContainerTruncated), 1u);
  EXPECT_EQ(report.shards_checked, 2u);
}

}  // namespace
}  // namespace shardpack::testing
