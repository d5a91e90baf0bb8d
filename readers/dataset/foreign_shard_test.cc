#include "readers/dataset/foreign_shard.h"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/image_info.h"
#include "formats/io/file.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "readers/dataset/dataset.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeTestFolder;
using ::testing::SizeIs;
using testing::WriteTestFile;

using Script = std::function<void(const ScanOptions&, RecordSink&, FindingSink&)>;

// Finds what the test says.
class ScriptedScanner : public ShardScanner {
 public:
  explicit ScriptedScanner(Script script) : script_(std::move(script)) {}
  absl::Status Scan(SequentialReader& in, const ScanOptions& options, RecordSink& records,
                    FindingSink& findings) const override {
    script_(options, records, findings);
    return in.Skip(in.remaining());
  }

 private:
  const Script script_;
};

class ForeignShardTest : public ::testing::Test {
 protected:
  ~ForeignShardTest() override { (void)RemoveTree(folder_); }

  std::string Write(const std::string& name, std::string_view bytes = "any bytes") const {
    WriteTestFile(folder_ + "/" + name, bytes);
    return folder_ + "/" + name;
  }
  ForeignShard ScanWith(const Script& script, const ForeignScanOptions& options = {},
                        std::string_view format_name = "toy",
                        std::string_view bytes = "any bytes") const {
    const ScriptedScanner scanner(script);
    Format format = AnyFormat(scanner);
    format.name = format_name;
    const Format* const formats[] = {&format};
    absl::StatusOr<ForeignShard> shard = ScanForeignShard(Write("x.toy", bytes), formats, options);
    EXPECT_TRUE(shard.ok()) << shard.status();
    return *std::move(shard);
  }
  static Format AnyFormat(const ScriptedScanner& scanner) {
    Format format = testing::ToyFormat();
    format.sniff = [](Bytes, std::string_view) { return true; };
    format.scanner = &scanner;
    return format;
  }
  static std::vector<std::string> TextsOf(const ForeignShard& shard) {
    std::vector<std::string> texts;
    for (const ShardWarning& warning : shard.warnings) texts.push_back(warning.text);
    return texts;
  }

  const std::string folder_ =
      MakeTestFolder(::testing::UnitTest::GetInstance()->current_test_info()->name());
};

Finding At(FindingId id, uint64_t offset, const std::string& detail = "") {
  Finding finding = MakeFinding(id, "x");
  finding.offset = offset;
  finding.detail = detail;
  return finding;
}

// However many of one kind come before.
TEST_F(ForeignShardTest, KeepsAWarningOfEachKindAndCountsTheOthers) {
  const ForeignShard shard = ScanWith([](const auto&, RecordSink&, FindingSink& findings) {
    for (uint64_t i = 1; i <= 4; ++i)
      findings.Report(At(FindingId::kTrailingData, i, "another archive"));
    findings.Report(At(FindingId::kTarNoEnd, 5));
    findings.Report(At(FindingId::kTarNoEnd, 6));
    findings.Report(At(FindingId::kTarNoEnd, 6, "one zero block only"));
    Finding lost = At(FindingId::kTarNoEnd, 7, "left out");
    lost.record = 9;
    findings.Report(lost);
    findings.Report(At(FindingId::kTrailingData, 8));
    findings.Report(At(FindingId::kWdsNoExtension, 10, "50 members"));
  });
  EXPECT_THAT(
      TextsOf(shard),
      ElementsAre(
          AllOf(HasSubstr("trailing-data x at offset 1:"),
                HasSubstr(": another archive; 3 more like this")),
          AllOf(HasSubstr("tar-no-end x at offset 5:"), HasSubstr("; 1 more like this")),
          HasSubstr("tar-no-end x at offset 6:"), HasSubstr("tar-no-end x record 9 at offset 7:"),
          AllOf(HasSubstr("trailing-data x at offset 8:"), Not(HasSubstr("more like this"))),
          HasSubstr("wds-no-extension x at offset 10:")));
}

TEST_F(ForeignShardTest, ManyShardsDoNotHideWhatIsRare) {
  ShardWarnings warnings;
  for (int i = 0; i < 14; ++i) {
    const ShardWarning often = {"often", "often " + std::to_string(i)};
    warnings.Add({&often, 1});
  }
  EXPECT_THAT(warnings.Texts(), SizeIs(11));
  EXPECT_EQ(warnings.Texts().back(), "and 4 more warnings");
  const ShardWarning rare = {"rare", "a lost sample"};
  warnings.Add({&rare, 1});
  ASSERT_THAT(warnings.Texts(), SizeIs(12));
  EXPECT_EQ(warnings.Texts()[10], "a lost sample");
}

TEST_F(ForeignShardTest, PartsAndJoinsKeepTheWarnings) {
  const ScriptedScanner scanner([](const auto&, RecordSink& records, FindingSink& findings) {
    records.OnLeftOut("boxes");
    records.OnRecord({.key = "a", .length = 1});
    findings.Report(At(FindingId::kTrailingData, 5));
  });
  const Format format = AnyFormat(scanner);
  const Format* const formats[] = {&format};
  const std::string paths[] = {Write("a.toy"), Write("b.toy")};
  const ForeignLabels labels = {.classes = {}, .splits = {"train", "val"}};
  const Dataset whole = *Dataset::OpenShards(paths, formats, labels);
  EXPECT_THAT(whole.warnings(), SizeIs(2));
  const uint32_t first = 0;
  for (const Dataset& part : {*whole.Split("val"), *whole.WithShards({&first, 1})}) {
    EXPECT_THAT(part.warnings(), SizeIs(2));
    EXPECT_THAT(part.left_out(), ElementsAre("boxes"));
  }
  const Dataset parts[] = {whole, *Dataset::OpenShards({paths, 1}, formats)};
  const Dataset joined = *Dataset::Join(parts);
  EXPECT_THAT(joined.warnings(), SizeIs(3));
  EXPECT_THAT(joined.left_out(), ElementsAre("boxes"));
}

// Only WebDataset means it as a label.
TEST_F(ForeignShardTest, AFieldCalledClsIsNoLabelElsewhere) {
  const Script script = [](const auto&, RecordSink& records, FindingSink&) {
    const ScannedField text = {.name = "cls", .length = 1};
    records.OnRecord({.key = "a", .length = 1, .fields = {&text, 1}});
  };
  EXPECT_THAT(TextsOf(ScanWith(script, {}, "webdataset")),
              ElementsAre(HasSubstr("1 of 1 samples have one that is not an integer")));
  EXPECT_THAT(TextsOf(ScanWith(script, {}, "tfrecord")), IsEmpty());
}

TEST_F(ForeignShardTest, ShardsThatCountTheirClassesOtherwiseAreNotJoined) {
  std::vector<std::optional<int64_t>> bases = {std::nullopt, 1, std::nullopt, 1};
  size_t next = 0;
  const ScriptedScanner scanner([&](const auto&, RecordSink& records, FindingSink&) {
    records.OnRecord({.key = "a", .label = 0, .length = 1, .label_base = bases[next++]});
  });
  const Format format = AnyFormat(scanner);
  const Format* const formats[] = {&format};
  const std::string paths[] = {Write("a.toy"), Write("b.toy"), Write("c.toy"), Write("d.toy")};
  EXPECT_TRUE(Dataset::OpenShards(paths, formats).ok());
  bases.back() = 0;
  next = 0;
  const absl::Status refused = Dataset::OpenShards(paths, formats).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("b.toy stores 1 for its first class, "),
                    HasSubstr("d.toy stores 0: they are of different layouts")));
}

TEST_F(ForeignShardTest, TheScannerIsToldWhetherClassesHaveNames) {
  std::vector<bool> told;
  const ScriptedScanner scanner([&](const ScanOptions& options, RecordSink&, FindingSink&) {
    told.push_back(options.has_classes);
  });
  const Format format = AnyFormat(scanner);
  const Format* const formats[] = {&format};
  const std::string path = Write("a.toy");
  EXPECT_TRUE(Dataset::OpenShards({&path, 1}, formats).ok());
  EXPECT_TRUE(Dataset::OpenShards({&path, 1}, formats, {.classes = {"cat"}, .splits = {}}).ok());
  EXPECT_THAT(told, ElementsAre(false, true));
}

TEST_F(ForeignShardTest, OfRareFieldsSomeAreLeftOutAndNamed) {
  constexpr int kRecords = 100'000;
  std::vector<std::string> names;
  for (int i = 10; i < 50; ++i) names.push_back("f" + std::to_string(i));
  const ForeignShard shard = ScanWith([&](const auto&, RecordSink& records, FindingSink&) {
    std::vector<ScannedField> all;
    for (const std::string& name : names) all.push_back({.name = name, .length = 1});
    records.OnRecord({.length = 1, .fields = all});
    for (int i = 1; i < kRecords; ++i) records.OnRecord({.length = 1});
  });
  EXPECT_EQ(shard.index.fields(), 27u);
  ASSERT_THAT(shard.left_out, SizeIs(13));
  EXPECT_EQ(shard.left_out.front(), "f37");
}

// Of an image of 1x1 pixels, whatever lies behind it.
TEST_F(ForeignShardTest, HugeImagesAreNotProbed) {
  std::string bmp("BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0", 30);
  bmp.resize(58);
  const std::string path = Write("huge.toy", bmp);
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(kMaxImageFileBytes) + 1), 0);
  const ScriptedScanner scanner([](const auto&, RecordSink& records, FindingSink&) {
    for (const uint64_t more : {0, 1}) {
      const ScannedField image = {.name = kImageField, .length = kMaxImageFileBytes + more};
      records.OnRecord({.length = 1, .fields = {&image, 1}});
    }
  });
  const Format format = AnyFormat(scanner);
  const Format* const formats[] = {&format};
  const absl::StatusOr<ForeignShard> shard = ScanForeignShard(path, formats, {.probe = true});
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_EQ(shard->index.image(0).format, ImageFormat::kBmp);
  EXPECT_EQ(shard->index.image(0).width, 1u);
  EXPECT_EQ(shard->index.image(1), ImageInfo());
}

}  // namespace
}  // namespace shardpack
