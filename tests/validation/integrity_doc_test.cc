// docs/integrity.md must show the catalogue of findings as it is in the code. On a difference the
// table to paste is printed.
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "formats/core/finding.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

// A cell: the bar would end it, and names in angle brackets would vanish.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

std::string Table() {
  std::string table = "| finding | severity | meaning | what to do |\n|---|---|---|---|\n";
  for (const FindingSpec& spec : AllFindings()) {
    absl::StrAppend(&table, "| `", std::string(spec.name), "` | ",
                    spec.severity == Severity::kError ? "error" : "warning", " | ",
                    Cell(spec.message), " | ", Cell(spec.hint), " |\n");
  }
  return table;
}

TEST(IntegrityDoc, ShowsTheCatalogueAsItIs) {
  std::ifstream in("docs/integrity.md");
  std::stringstream text;
  text << in.rdbuf();
  const std::string doc = text.str();
  const std::string begin = "integrity_doc_test -->\n", end = "<!-- end of findings -->";
  const size_t from = doc.find(begin), to = doc.find(end);
  ASSERT_NE(from, doc.npos) << "docs/integrity.md has no place for the table";
  ASSERT_NE(to, doc.npos);
  const size_t table = from + begin.size();
  EXPECT_EQ(doc.substr(table, to - table), "\n" + Table() + "\n") << "paste this:\n\n" << Table();
}

TEST(IntegrityDoc, SaysWhatIsSaidOfShardsAlone) {
  std::ifstream in("docs/integrity.md");
  std::stringstream text;
  text << in.rdbuf();
  for (const FindingSpec& spec : AllFindings())
    EXPECT_NE(text.str().find(spec.lone_hint), std::string::npos) << spec.lone_hint;
}

}  // namespace
}  // namespace shardpack
