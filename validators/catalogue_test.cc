// Every finding of this layer, provoked by one change to a valid dataset.
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/io/file.h"
#include "formats/io/sequential_reader.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "formats/testing/fault_injection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "validators/validation_scene.h"
#include "validators/validator.h"

namespace shardpack::testing {
namespace {

using ::testing::HasSubstr;

ssize_t FailingPread(int fd, void* into, size_t size, off_t offset) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::error_code error;
  if (std::filesystem::read_symlink(link, error).native().ends_with("train-1.toy")) {
    errno = EIO;
    return -1;
  }
  return ::pread(fd, into, size, offset);
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
      {FindingId::kOtherVersion, After([](Scene& s) {
         std::string json = s.Read("manifest.json");
         json.replace(json.find("\"schema\": 1"), 11, "\"schema\": 2");
         s.Write("manifest.json", ResealedManifest(std::move(json)));
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

}  // namespace
}  // namespace shardpack::testing
