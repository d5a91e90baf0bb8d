// Inputs made to mislead a validator or to use it up: findings or a usage error, never a crash,
// memory flat.
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/core/index_name.h"
#include "formats/formats.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/fault_injection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/dataset/foreign_shard.h"
#include "validators/validator.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using testing::MakeTestFolder;
using testing::ReadTestFile;
using testing::TestDatasetOptions;
using testing::WriteTestDataset;
using testing::WriteTestFile;

ValidationReport Validate(const std::string& folder,
                          ValidationLevel level = ValidationLevel::kFull) {
  ValidationProgress progress;
  std::atomic<int> stop{0};
  absl::StatusOr<ValidationReport> report =
      ValidateDataset(folder, AllFormats(), {.level = level}, progress, stop);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : ValidationReport();
}

absl::StatusOr<ValidationReport> ValidateFiles(const std::vector<std::string>& paths) {
  ValidationProgress progress;
  std::atomic<int> stop{0};
  return ValidateShards(paths, AllFormats(), {}, progress, stop);
}

uint64_t PeakBytes() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

class EachFormat : public ::testing::TestWithParam<const Format*> {
 protected:
  EachFormat() : folder_(MakeTestFolder("hostile")) {
    manifest_ = WriteTestDataset(folder_, *GetParam(), TestDatasetOptions{});
  }
  ~EachFormat() override { (void)RemoveTree(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // The file of the shard at `path`: itself, or one in the folder that it is.
  static std::string DataOf(const std::string& path) {
    const std::string_view data_file = GetParam()->traits.data_file;
    if (data_file.empty()) return path;
    std::filesystem::create_directories(path);
    return absl::StrCat(path, "/", std::string(data_file));
  }

  const std::string folder_;
  Manifest manifest_;
};

TEST_P(EachFormat, ASoundDatasetHasNoFinding) {
  for (const ValidationLevel level : {ValidationLevel::kQuick, ValidationLevel::kFull}) {
    const ValidationReport report = Validate(folder_, level);
    EXPECT_EQ(report.errors() + report.warnings(), 0u) << ToText(report);
    EXPECT_EQ(report.shards_checked, 2u);
  }
  EXPECT_EQ(Validate(folder_).records_checked, 10u);
}

// Each read fails once: a read error, never damage, and never passed over.
TEST_P(EachFormat, AReadThatFailsIsSaidToBeOne) {
  std::vector<std::string> paths;
  for (const ManifestShard& shard : manifest_.shards) paths.push_back(Path(shard.name));
  ValidationProgress progress;
  std::atomic<int> stop{0};
  const auto validate = [&](bool foreign) {
    const ValidateOptions options{.level = ValidationLevel::kDeep, .jobs = 1};
    return foreign ? ValidateShards(paths, AllFormats(), options, progress, stop)
                   : ValidateDataset(folder_, AllFormats(), options, progress, stop);
  };
  for (const bool foreign : {false, true}) {
    testing::FaultInjection faults;
    const uint64_t other = validate(foreign)->errors();  // images made up of random bytes
    const uint64_t reads = faults.reads();
    EXPECT_GE(reads, 3u);
    for (uint64_t number = 0; number < reads; ++number) {
      faults.FailOneRead(faults.reads() + number, EIO);
      const absl::StatusOr<ValidationReport> report = validate(foreign);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_GT(report->findings.count(FindingId::kReadError), 0u)
          << (foreign ? "foreign, " : "") << "read " << number << " of " << reads << "\n"
          << ToText(*report);
      EXPECT_LE(report->errors() - report->findings.count(FindingId::kReadError), other)
          << (foreign ? "foreign, " : "") << "read " << number << " of " << reads << "\n"
          << ToText(*report);
    }
  }
}

TEST_P(EachFormat, AReadThatFailsEndsAScanOfForeignShards) {
  const std::string path = Path(manifest_.shards[0].name);
  testing::FaultInjection faults;
  ASSERT_TRUE(ScanForeignShard(path, AllFormats(), {.probe = true}).ok());
  const uint64_t reads = faults.reads();
  for (uint64_t number = 0; number < reads; ++number) {
    faults.FailOneRead(faults.reads() + number, EIO);
    const absl::Status scanned = ScanForeignShard(path, AllFormats(), {.probe = true}).status();
    EXPECT_TRUE(absl::IsUnavailable(scanned))
        << "read " << number << " of " << reads << ": " << scanned;
  }
}

TEST_P(EachFormat, ItsShardsAreSoundAsForeignOnes) {
  std::vector<std::string> paths;
  for (const ManifestShard& shard : manifest_.shards) paths.push_back(Path(shard.name));
  const absl::StatusOr<ValidationReport> report = ValidateFiles(paths);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->errors(), 0u) << ToText(*report);
  EXPECT_EQ(report->records_checked, 10u);
}

TEST_P(EachFormat, ASameSizeShardOfAnotherDatasetIsFoundAtBothLevels) {
  const std::string other = MakeTestFolder("other");
  TestDatasetOptions options;
  options.seed = 2;
  const Manifest theirs = WriteTestDataset(other, *GetParam(), options);
  for (size_t i = 0; i < manifest_.shards.size(); ++i) {
    ASSERT_EQ(theirs.shards[i].bytes, manifest_.shards[i].bytes);
    const std::string name = manifest_.shards[i].name;
    const std::string ours = ReadTestFile(DataOf(Path(name)));
    const std::string index = ReadTestFile(Path(IndexName(name)));
    WriteTestFile(DataOf(Path(name)), ReadTestFile(DataOf(other + "/" + name)));
    const ValidationReport quick = Validate(folder_, ValidationLevel::kQuick);
    EXPECT_GT(quick.findings.count(FindingId::kIndexShardMismatch), 0u) << ToText(quick);
    EXPECT_GT(Validate(folder_).findings.count(FindingId::kFileHash), 0u);
    WriteTestFile(Path(IndexName(name)), ReadTestFile(other + "/" + IndexName(name)));
    EXPECT_GT(
        Validate(folder_, ValidationLevel::kQuick).findings.count(FindingId::kIndexShardMismatch),
        0u);
    WriteTestFile(DataOf(Path(name)), ours);
    WriteTestFile(Path(IndexName(name)), index);
  }
  EXPECT_EQ(Validate(folder_).errors(), 0u) << "all is back";
  (void)RemoveTree(other);
}

TEST_P(EachFormat, AForeignShardCutAnywhereIsNoCrash) {
  const std::string shard = ReadTestFile(DataOf(Path(manifest_.shards[0].name)));
  const std::string path = Path(absl::StrCat("cut-", manifest_.shards[0].name));
  for (size_t size = 0; size < shard.size(); size += size < 2048 ? 37 : 512) {
    WriteTestFile(DataOf(path), shard.substr(0, size));
    const absl::StatusOr<ValidationReport> report = ValidateFiles({path});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(size > 0 || report->errors() > 0);
  }
}

// It is read as what it is, and findings name what would mislead others.
TEST_P(EachFormat, AnotherFormatsExtensionMisleadsNobody) {
  std::vector<std::string> paths;
  for (const std::string ending : {".tar", ".tfrecord", ".jpg", ""}) {
    paths.push_back(Path("renamed" + ending));
    WriteTestFile(DataOf(paths.back()), ReadTestFile(DataOf(Path(manifest_.shards[0].name))));
    const absl::StatusOr<ValidationReport> report = ValidateFiles({paths.back()});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->format, GetParam()->name) << ending;
    const Format* named = nullptr;
    for (const Format* format : AllFormats()) {
      if (format->sniff({}, paths.back())) named = format;
    }
    const bool misleads = named != nullptr && named != GetParam();
    EXPECT_EQ(report->errors(), misleads ? 1u : 0u) << ToText(*report);
    EXPECT_EQ(ToText(*report).find("wrong-extension") != std::string::npos, misleads) << ending;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EachFormat,
                         ::testing::ValuesIn(AllFormats().begin(), AllFormats().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(HostileFiles, RandomAndTinyFilesUnderAnyName) {
  const std::string folder = MakeTestFolder("odd");
  std::mt19937_64 random(5);
  std::string noise(1 << 20, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  for (const std::string ending : {".tar", ".tfrecord", ".h5", ".bin", ""}) {
    for (const std::string& bytes :
         {std::string(), std::string("x"), noise, std::string(1 << 20, '\0')}) {
      const std::string path = folder + "/file" + ending;
      WriteTestFile(path, bytes);
      const absl::StatusOr<ValidationReport> report = ValidateFiles({path});
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_GT(report->errors(), 0u) << ending << " of " << bytes.size() << " bytes\n"
                                      << ToText(*report);
    }
  }
  (void)RemoveTree(folder);
}

// --- The manifest as an attack.

class HostileManifest : public ::testing::Test {
 protected:
  HostileManifest() : folder_(MakeTestFolder("manifest")) {
    manifest_ = WriteTestDataset(folder_, *AllFormats()[0], TestDatasetOptions{});
    json_ = manifest_.ToJson();
  }
  ~HostileManifest() override { (void)RemoveTree(folder_); }

  // What a validation of this text says; the memory must not grow by more than the text's own
  // parts.
  ValidationReport With(const std::string& json) {
    WriteTestFile(folder_ + "/manifest.json", json);
    return Validate(folder_);
  }
  std::string Replaced(const std::string& from, const std::string& to) const {
    std::string json = json_;
    const size_t at = json.find(from);
    EXPECT_NE(at, json.npos) << from;
    return at == json.npos ? json : json.replace(at, from.size(), to);
  }
  void ExpectRefused(const std::string& json, FindingId id = FindingId::kManifestInvalid) {
    const ValidationReport report = With(json);
    EXPECT_GT(report.findings.count(id), 0u) << ToText(report);
    EXPECT_EQ(report.records_checked, 0u);
    EXPECT_THAT(ToText(report), HasSubstr("not checked: all files beside manifest.json"));
  }

  const std::string folder_;
  Manifest manifest_;
  std::string json_;
};

TEST_F(HostileManifest, NamesThatLeaveTheFolder) {
  for (const char* name :
       {"../../etc/passwd", "/etc/passwd", "a/b/c", ".hidden", "train%2F..", ""}) {
    Manifest evil = manifest_;
    evil.files[0].name = name;
    ExpectRefused(evil.ToJson());
    evil = manifest_;
    evil.shards[0].name = name;
    ExpectRefused(evil.ToJson());
    evil = manifest_;
    evil.shards[0].index.name = name;
    ExpectRefused(evil.ToJson());
  }
}

TEST_F(HostileManifest, NumbersBeyondEveryBound) {
  ExpectRefused(Replaced("\"packed\": 10", "\"packed\": 18446744073709551616"));
  ExpectRefused(Replaced("\"packed\": 10", "\"packed\": 1e400"));
  ExpectRefused(Replaced("\"packed\": 10", "\"packed\": -1"));
  // All of 64 bits, and a sum that wraps to the right one.
  Manifest evil = manifest_;
  evil.shards[0].records = ~uint64_t{0};
  evil.shards[1].records = 11;
  ExpectRefused(evil.ToJson(), FindingId::kAccounting);
}

TEST_F(HostileManifest, ARecordCountNobodyCanHold) {
  // A manifest in order as far as it can tell; the index knows better, and nothing is allocated for
  // the claim.
  Manifest evil = manifest_;
  const uint64_t claim = uint64_t{1} << 60;
  evil.counts.packed += claim;
  evil.counts.seen += claim;
  evil.shards[0].records += claim;
  evil.splits["train"] += claim;
  const uint64_t before = PeakBytes();
  const ValidationReport report = With(evil.ToJson());
  EXPECT_GT(report.findings.count(FindingId::kCountMismatch), 0u) << ToText(report);
  EXPECT_LT(PeakBytes() - before, uint64_t{64} << 20);
}

TEST_F(HostileManifest, DepthAndSize) {
  const uint64_t before = PeakBytes();
  ExpectRefused(std::string(10000, '[') + std::string(10000, ']'));
  std::string nested;
  for (int i = 0; i < 10000; ++i) nested += "{\"counts\":";
  ExpectRefused(nested);
  // 1 GB that takes no disk.
  WriteTestFile(folder_ + "/manifest.json", json_);
  ASSERT_EQ(::truncate((folder_ + "/manifest.json").c_str(), 1 << 30), 0);
  EXPECT_GT(Validate(folder_).findings.count(FindingId::kManifestInvalid), 0u);
  EXPECT_LT(PeakBytes() - before, uint64_t{64} << 20);
}

TEST_F(HostileManifest, OtherSpellingsOfTheSameJson) {
  ExpectRefused(Replaced("\"packed\": 10", "\"packed\":10"));
  ExpectRefused(Replaced("\"packed\": 10", "\"packed\": 10.0"));
  ExpectRefused(Replaced("\"cat\"", "\"\\u0063at\""));
  ExpectRefused(Replaced("\"cat\"", "\"%63at\""));
  ExpectRefused(json_ + "\n");
  ExpectRefused("\xEF\xBB\xBF" + json_);
  ExpectRefused(Replaced("{\n \"classes\"", "{\n \"x\": 1,\n \"classes\""));
  ExpectRefused("");
}

TEST_F(HostileManifest, NotAFile) {
  const std::string path = folder_ + "/manifest.json";
  ASSERT_EQ(::unlink(path.c_str()), 0);
  std::filesystem::create_directory(path);
  EXPECT_GT(Validate(folder_).errors(), 0u) << "a folder";
  std::filesystem::remove(path);
  std::filesystem::create_symlink("nowhere", path);
  EXPECT_GT(Validate(folder_).findings.count(FindingId::kManifestMissing), 0u) << "a dangling link";
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_GT(Validate(folder_).errors(), 0u) << "a pipe: must not block";
}

}  // namespace
}  // namespace shardpack
