#include "formats/core/finding.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;

TEST(Catalogue, NamesAreUniqueAndKebabCase) {
  std::set<std::string_view> names;
  for (const FindingSpec& spec : AllFindings()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " comes twice";
    ASSERT_FALSE(spec.name.empty());
    const bool kebab = std::all_of(spec.name.begin(), spec.name.end(), [](unsigned char c) {
      return std::islower(c) || std::isdigit(c) || c == '-';
    });
    EXPECT_TRUE(kebab && std::islower(static_cast<unsigned char>(spec.name[0])) &&
                spec.name.back() != '-' && spec.name.find("--") == spec.name.npos)
        << spec.name;
  }
}

TEST(Catalogue, EveryRowSaysSomething) {
  ASSERT_EQ(AllFindings().size(), static_cast<size_t>(FindingId::kCount));
  for (const FindingSpec& spec : AllFindings()) {
    EXPECT_EQ(&SpecOf(spec.id), &spec);
    EXPECT_GT(spec.message.size(), 10u) << spec.name;
    EXPECT_GT(spec.hint.size(), 10u) << spec.name;
    // A single shard has no dataset to repair.
    EXPECT_EQ(spec.hint.find("`pack repair OUT`") != spec.hint.npos, !spec.lone_hint.empty())
        << spec.name;
    EXPECT_EQ(spec.lone_hint.find("OUT"), spec.lone_hint.npos) << spec.name;
    EXPECT_NE(spec.message.back(), '.') << spec.name << ": the text goes on after it";
    EXPECT_EQ(MakeFinding(spec.id, "s").severity, spec.severity);
  }
}

TEST(ToText, Whole) {
  Finding finding = MakeFinding(FindingId::kTarChecksum, "train-000000.tar");
  finding.record = 3;
  finding.key = "cat/1";
  finding.field = "jpg";
  finding.offset = 512;
  finding.length = 8;
  finding.expected = "006377";
  finding.actual = "006370";
  finding.detail = "of the second header";
  EXPECT_EQ(ToText(finding),
            "error tar-checksum train-000000.tar record 3 key cat/1 field jpg at offset 512 (8 "
            "bytes): a tar "
            "header's checksum is wrong: of the second header (expected 006377, actual 006370)");
}

TEST(ToText, Least) {
  EXPECT_EQ(ToText(MakeFinding(FindingId::kTarNoEnd, "a")),
            "warning tar-no-end a: the two zero blocks at the end are missing");
  EXPECT_THAT(ToText(Finding()), HasSubstr("none")) << "not in the catalogue";
}

TEST(ToText, NothingReachesTheTerminalRaw) {
  Finding finding = MakeFinding(FindingId::kTarName, "a\x1B[31m");
  finding.key = "line\nbreak";
  finding.field = "\x07";
  finding.expected = "\r";
  finding.actual =
      "\xC2\x9B"
      "2J";
  finding.detail = "\x7F\xFF";
  const std::string text = ToText(finding);
  for (const char c : text) {
    EXPECT_TRUE(c >= 0x20 && c < 0x7F) << static_cast<int>(c);
  }
  EXPECT_THAT(text, HasSubstr("a\\x1b[31m"));
  EXPECT_THAT(text, HasSubstr("key line\\x0abreak field \\x07"));
}

TEST(FindingList, KeepsUpToItsBoundAndCountsTheRest) {
  FindingList list(3);
  for (int i = 0; i < 10; ++i) {
    Finding finding = MakeFinding(i % 2 == 0 ? FindingId::kTarChecksum : FindingId::kTarNoEnd, "s");
    finding.record = i;
    list.Report(finding);
  }
  ASSERT_EQ(list.findings().size(), 3u);
  EXPECT_EQ(list.findings()[2].record, 2u) << "the first ones are kept";
  EXPECT_EQ(list.errors(), 5u);
  EXPECT_EQ(list.warnings(), 5u);
}

TEST(FindingList, TheSeverityOfTheFindingCounts) {
  FindingList list;
  Finding finding = MakeFinding(FindingId::kTarNoEnd, "s");
  finding.severity = Severity::kError;
  list.Report(finding);
  EXPECT_EQ(list.errors(), 1u);
  EXPECT_THAT(ToText(list.findings()[0]), ::testing::StartsWith("error "));
}

}  // namespace
}  // namespace shardpack
