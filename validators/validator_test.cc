#include "validators/validator.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/fault_injection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::IndexTestShard;
using ::testing::IsEmpty;
using testing::MakeTestFolder;
using testing::MakeTestSamples;
using ::testing::Not;
using testing::ReadTestFile;
using testing::ScopedSyscalls;
using testing::TestDatasetOptions;
using testing::TestSample;
using testing::ToyFormat;
using testing::WriteTestDataset;
using testing::WriteTestFile;
using testing::WriteTestShard;

const Format* const kToy[] = {&ToyFormat()};

// One dataset of three shards with six records each, in its own folder.
class Scene {
 public:
  explicit Scene(TestDatasetOptions options = {.shards = 3, .records_per_shard = 6})
      : folder(MakeTestFolder("scene")), made(options) {
    if (made.samples.empty()) made.samples = MakeTestSamples(made);
    manifest = WriteTestDataset(folder, ToyFormat(), made);
  }
  ~Scene() { (void)RemoveTree(folder); }

  std::string Path(const std::string& name) const { return folder + "/" + name; }
  std::string Read(const std::string& name) const { return ReadTestFile(Path(name)); }
  void Write(const std::string& name, std::string_view bytes) const {
    WriteTestFile(Path(name), bytes);
  }
  void Flip(const std::string& name, size_t offset) const {
    std::string bytes = Read(name);
    bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ 4);
    Write(name, bytes);
  }
  void Reseal() { testing::Reseal(folder, manifest); }
  std::vector<TestSample> SamplesOf(size_t shard) const {
    const auto begin =
        made.samples.begin() + static_cast<ptrdiff_t>(shard * made.records_per_shard);
    return {begin, begin + static_cast<ptrdiff_t>(made.records_per_shard)};
  }
  // Writes the index of shard 1 as if these were its samples, and a manifest that matches it.
  void Reindex(const std::vector<TestSample>& samples) {
    Write("train-1.pidx", IndexTestShard(Path("train-1.toy"), ToyFormat(), samples));
    Reseal();
  }
  // The same with arbitrary changes to the rows.
  struct Row {
    ScannedRecord record;
    ScannedField image;
    std::optional<ScannedField> text = std::nullopt;  // a second field
  };
  void EditIndex(const std::function<void(std::vector<Row>&)>& edit);

  ValidationReport Validate(ValidateOptions options = {}) const {
    std::atomic<int> stop{0};
    ValidationProgress progress;
    absl::StatusOr<ValidationReport> report =
        ValidateDataset(folder, kToy, options, progress, stop);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : ValidationReport();
  }

  std::string folder;
  TestDatasetOptions made;
  Manifest manifest;
};

void Scene::EditIndex(const std::function<void(std::vector<Row>&)>& edit) {
  const std::vector<TestSample> samples = SamplesOf(1);
  const uint64_t size = Read("train-1.toy").size();
  const absl::StatusOr<ShardIndex> index =
      ShardIndex::FromBytes(IndexTestShard(Path("train-1.toy"), ToyFormat(), samples), size);
  std::vector<Row> rows;
  for (uint64_t r = 0; r < index->records(); ++r) {
    const Extent whole = index->record(r), image = index->field(r, 0);
    rows.push_back({{.key = samples[r].key,
                     .source_path = samples[r].source_path,
                     .label = samples[r].label,
                     .offset = whole.offset,
                     .length = whole.length,
                     .fields = {}},
                    {kImageField, image.offset, image.length, index->hash(r, 0)}});
  }
  edit(rows);
  ShardIndexBuilder builder;
  for (Row& row : rows) {
    std::vector<ScannedField> fields = {row.image};
    if (row.text) fields.push_back(*row.text);
    row.record.fields = fields;
    builder.Add(row.record, row.record.key, row.record.source_path, row.record.label, {});
  }
  Write("train-1.pidx", builder.Finish(size));
  Reseal();
}

std::string Names(const ValidationReport& report) {
  std::string names;
  for (const FindingSpec& spec : AllFindings()) {
    if (report.findings.count(spec.id) > 0) names += std::string(spec.name) + " ";
  }
  return names;
}

// --- Each finding of this layer, provoked.

ssize_t FailingPread(int fd, void* into, size_t size, off_t offset) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::error_code error;
  if (std::filesystem::read_symlink(link, error).native().ends_with("train-1.toy")) {
    errno = EIO;
    return -1;
  }
  return ::pread(fd, into, size, offset);
}

ValidationReport AgainstSources(const std::function<void(const std::string& root)>& change) {
  Scene scene;
  const std::string root = scene.Path("../source");
  std::filesystem::create_directories(root + "/cat");
  std::filesystem::create_directories(root + "/dog");
  for (const TestSample& sample : scene.made.samples)
    WriteTestFile(root + "/" + sample.source_path, sample.image);
  change(root);
  ValidationReport report = scene.Validate({.open_source = FilesBelow(root)});
  (void)RemoveTree(root);
  return report;
}

// A dataset with one sample that has a text, against a source in which these samples have texts.
ValidationReport AgainstTexts(const std::map<size_t, std::string>& texts) {
  Scene scene;
  const std::vector<TestSample> samples = scene.SamplesOf(1);
  scene.EditIndex([&](std::vector<Scene::Row>& rows) {
    rows[2].text = {"txt", rows[2].image.offset, 4,
                    Xxh3_64(AsBytes(samples[2].image.substr(0, 4)))};
  });
  const std::string root = MakeTestFolder("texts");
  for (const std::string_view folder : {"/cat", "/dog"})
    std::filesystem::create_directories(root + std::string(folder));
  for (const TestSample& sample : scene.made.samples)
    WriteTestFile(root + "/" + sample.source_path, sample.image);
  for (const auto& [number, text] : texts) {
    const std::string& path = samples[number].source_path;
    WriteTestFile(root + "/" + path.substr(0, path.rfind('.')) + ".txt", text);
  }
  ValidationReport report =
      scene.Validate({.open_source = FilesBelow(root), .against_parts = {{"txt", "txt"}}});
  (void)RemoveTree(root);
  return report;
}

ValidationReport ForeignReport(const std::vector<std::string>& paths, ValidateOptions options = {},
                               std::span<const Format* const> formats = kToy) {
  std::atomic<int> stop{0};
  ValidationProgress progress;
  absl::StatusOr<ValidationReport> report = ValidateShards(paths, formats, options, progress, stop);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : ValidationReport();
}

using Maker = std::function<ValidationReport()>;
// A change to a valid dataset, and the result of a full validation afterwards.
Maker After(std::function<void(Scene&)> change) {
  return [change] {
    Scene scene;
    change(scene);
    return scene.Validate();
  };
}

const std::map<FindingId, Maker>& Makers() {
  static const auto& makers = *new std::map<FindingId, Maker>{
      {FindingId::kManifestMissing,
       After([](Scene& s) { ::unlink(s.Path("manifest.json").c_str()); })},
      {FindingId::kManifestInvalid, After([](Scene& s) { s.Write("manifest.json", "{}"); })},
      {FindingId::kManifestSelfHash, After([](Scene& s) {
         std::string json = s.Read("manifest.json");
         json.replace(json.find("/source"), 7, "/sourcf");
         s.Write("manifest.json", json);
       })},
      {FindingId::kLeftoverPackFolder,
       After([](Scene& s) { std::filesystem::create_directory(s.Path(".pack")); })},
      {FindingId::kFileMissing, After([](Scene& s) { ::unlink(s.Path("skipped.jsonl").c_str()); })},
      {FindingId::kFileExtra, After([](Scene& s) { s.Write("notes.txt", "x"); })},
      {FindingId::kFileSize,
       After([](Scene& s) { s.Write("train-1.toy", s.Read("train-1.toy") + "x"); })},
      {FindingId::kFileHash, After([](Scene& s) { s.Flip("skipped.jsonl", 3); })},
      {FindingId::kIndexInvalid, After([](Scene& s) {
         s.Write("train-1.pidx", "not an index");
         s.Reseal();
       })},
      {FindingId::kIndexShardMismatch, After([](Scene& s) {
         std::vector<TestSample> samples = s.SamplesOf(1);
         samples[2].label ^= 1;
         s.Write("train-1.pidx", IndexTestShard(s.Path("train-1.toy"), ToyFormat(), samples));
       })},
      {FindingId::kRecordHash,
       After([](Scene& s) { s.Flip("train-1.toy", s.Read("train-1.toy").size() - 20); })},
      {FindingId::kRecordMissing, After([](Scene& s) {
         s.EditIndex([](auto& rows) {
           rows.push_back(rows.back());
           rows.back().record.offset += 1;
         });
       })},
      {FindingId::kRecordExtra,
       After([](Scene& s) { s.EditIndex([](auto& rows) { rows.erase(rows.begin() + 2); }); })},
      {FindingId::kRecordExtent,
       After([](Scene& s) { s.EditIndex([](auto& rows) { --rows[2].image.length; }); })},
      {FindingId::kKeyMismatch, After([](Scene& s) {
         std::vector<TestSample> samples = s.SamplesOf(1);
         samples[2].key = "cat/other";
         s.Reindex(samples);
       })},
      {FindingId::kLabelMismatch, After([](Scene& s) {
         std::vector<TestSample> samples = s.SamplesOf(1);
         samples[2].label ^= 1;
         s.Reindex(samples);
       })},
      {FindingId::kKeyDuplicate,
       [] {
         Scene scene;
         scene.made.samples[9].key = scene.made.samples[2].key;
         WriteTestDataset(scene.folder, ToyFormat(), scene.made);
         return scene.Validate();
       }},
      {FindingId::kCountMismatch, After([](Scene& s) {
         ++s.manifest.shards[1].records;
         ++s.manifest.splits["train"];
         ++s.manifest.counts.packed;
         ++s.manifest.counts.seen;
         s.Reseal();
       })},
      {FindingId::kLabelRange,
       [] {
         Scene scene;
         scene.made.samples[9].label = 2;
         WriteTestDataset(scene.folder, ToyFormat(), scene.made);
         return scene.Validate();
       }},
      {FindingId::kAccounting, After([](Scene& s) {
         ++s.manifest.counts.seen;
         s.Reseal();
       })},
      {FindingId::kClassDuplicate, After([](Scene& s) {
         s.manifest.classes.back() = s.manifest.classes.front();
         s.Reseal();
       })},
      {FindingId::kSplitMismatch, After([](Scene& s) {
         ManifestShard& moved = s.manifest.shards[1];
         moved.split = "val";
         s.manifest.splits["train"] -= moved.records;
         s.manifest.splits["val"] += moved.records;
         s.Reseal();
       })},
      {FindingId::kUnknownFormat, After([](Scene& s) {
         s.manifest.format = "other";
         s.Reseal();
       })},
      {FindingId::kWrongExtension,
       [] {
         Format other = ToyFormat();
         other.name = "other";
         other.sniff = [](Bytes head, std::string_view name) {
           return head.empty() && name.ends_with(".other");
         };
         const Format* const formats[] = {&ToyFormat(), &other};
         Scene scene;
         scene.Write("train.other", scene.Read("train-0.toy"));
         return ForeignReport({scene.Path("train.other")}, {}, formats);
       }},
      {FindingId::kShardEmpty,
       [] {
         Scene scene;
         scene.made.shards = 4;
         scene.made.samples.resize(12);  // 3 + 3 + 3 + 3
         scene.made.samples.resize(9);
         scene.made.samples.resize(3);  // 1 + 1 + 1 + 0
         WriteTestDataset(scene.folder, ToyFormat(), scene.made);
         return scene.Validate();
       }},
      {FindingId::kIdentity,
       [] {
         return Scene().Validate({.expect = Digest{1, 2}});
       }},
      {FindingId::kReadError,
       [] {
         Scene scene;
         const ScopedSyscalls restored;
         SyscallsForTesting().pread = FailingPread;
         ValidationReport report = scene.Validate();
         EXPECT_EQ(report.shards_checked, 2u) << "the others are still checked";
         EXPECT_EQ(report.records_checked, 12u);
         return report;
       }},
      {FindingId::kSourceMissing,
       [] {
         return AgainstSources(
             [](const std::string& root) { ::unlink((root + "/cat/000004.JPEG").c_str()); });
       }},
      {FindingId::kSourceBytesMismatch,
       [] {
         return AgainstSources([](const std::string& root) {
           const std::string path = root + "/cat/000004.JPEG";
           WriteTestFile(path, ReadTestFile(path) + "x");
         });
       }},
      {FindingId::kSourceUnreadable,
       [] {
         ValidateOptions options;
         options.open_source = [](const std::string&) {
           return absl::PermissionDeniedError("may not be read");
         };
         return Scene().Validate(options);
       }},
      {FindingId::kSourceMoved,
       [] {
         Scene scene;
         ValidateOptions options;
         options.open_source = [&](const std::string& path) -> absl::StatusOr<SourceFile> {
           if (path != "cat/moved/000004.JPEG") return absl::NotFoundError("gone");
           WriteTestFile(scene.Path("../moved"), scene.made.samples[4].image);
           return FilesBelow(scene.Path(".."))("moved");
         };
         options.visit_source = [](const SourceSeen& see) { see("cat/moved/000004.JPEG", "cat"); };
         ValidationReport report = scene.Validate(options);
         (void)RemoveTree(scene.Path("../moved"));
         return report;
       }},
      {FindingId::kSourceFieldMissing, [] { return AgainstTexts({}); }},
      {FindingId::kSourceFieldMismatch,
       [] {
         return AgainstTexts({{2, "else"}});
       }},
      {FindingId::kSourceFieldExtra,
       [] {
         return AgainstTexts({{3, "more"}});
       }},
      {FindingId::kSourceExtra,
       [] {
         ValidateOptions options;
         options.visit_source = [](const SourceSeen& see) { see("cat/new.JPEG", "cat"); };
         return Scene().Validate(options);
       }},
      {FindingId::kSourceClassMismatch,
       [] {
         ValidateOptions options;
         options.visit_source = [](const SourceSeen& see) { see("cat/000004.JPEG", "dog"); };
         return Scene().Validate(options);
       }},
      {FindingId::kNotAnImage,
       [] {
         Scene scene;
         std::vector<TestSample> samples = scene.SamplesOf(0);
         samples[3].image = "<html>no such page</html>";
         WriteTestShard(scene.Path("foreign.toy"), ToyFormat(), samples);
         return ForeignReport({scene.Path("foreign.toy")});
       }},
  };
  return makers;
}

class FindingFires : public ::testing::TestWithParam<FindingId> {};

TEST_P(FindingFires, AndAlone) {
  const ValidationReport report = Makers().at(GetParam())();
  EXPECT_GT(report.findings.count(GetParam()), 0u) << "found: " << Names(report);
  const FindingSpec& spec = SpecOf(GetParam());
  EXPECT_EQ(report.errors() > 0, spec.severity == Severity::kError);
  EXPECT_THAT(ToText(report), HasSubstr(std::string(spec.name)));
  EXPECT_EQ(nlohmann::json::parse(ToJson(report))["finding_counts"][std::string(spec.name)],
            report.findings.count(GetParam()));
}

std::vector<FindingId> MadeFindings() {
  std::vector<FindingId> ids;
  for (const auto& [id, maker] : Makers()) ids.push_back(id);
  return ids;
}
INSTANTIATE_TEST_SUITE_P(Catalogue, FindingFires, ::testing::ValuesIn(MadeFindings()),
                         [](const auto& info) {
                           std::string name(SpecOf(info.param).name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Each format tests its own rows; all others are tested here.
TEST(Catalogue, EveryFindingOfThisLayerHasATest) {
  for (const FindingSpec& spec : AllFindings()) {
    const bool ours = spec.id < FindingId::kContainerTruncated || spec.id == FindingId::kNotAnImage;
    EXPECT_EQ(Makers().contains(spec.id), ours) << spec.name;
  }
}

// --- The content of a report.

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
}  // namespace shardpack
