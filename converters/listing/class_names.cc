#include "converters/listing/class_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/composed_text.h"
#include "converters/listing/first_few.h"

namespace shardpack {
namespace {

constexpr size_t kNamed = 3;

std::string Composed(std::string name) {
  MakeComposed(name);
  return name;
}

std::string Plain(const std::string& name) {
  std::string plain = Composed(name);
  absl::AsciiStrToLower(&plain);
  absl::StripAsciiWhitespace(&plain);
  return plain;
}

}  // namespace

std::vector<std::string> DoubtfulClassNames(std::span<const std::string> classes) {
  std::map<std::string, std::vector<std::string>> alike;
  for (const std::string& name : classes)
    alike[Plain(name)].push_back(absl::StrCat("\"", name, "\""));
  std::vector<std::string> groups, forms;
  for (const auto& [plain, names] : alike) {
    if (names.size() < 2) continue;
    const std::string first = Composed(names[0]);
    const bool same = std::all_of(names.begin(), names.end(),
                                  [&](const std::string& name) { return Composed(name) == first; });
    if (same) forms.push_back(first);
    if (!same) groups.push_back(absl::StrJoin(names, " and "));
  }
  std::vector<std::string> lines;
  if (!forms.empty()) {
    lines.push_back(absl::StrCat(
        "classes that look the same and differ in their Unicode form alone (NFC, NFD): ",
        FirstFew(forms, kNamed),
        "; where they are meant as one, give them one name in the source"));
  }
  if (!groups.empty()) {
    lines.push_back(
        absl::StrCat("classes that differ in case or blanks alone: ", FirstFew(groups, kNamed),
                     "; where they are meant as one, give them one name in the source"));
  }
  std::vector<std::string> blanks;
  for (const std::string& name : classes) {
    if (name != absl::StripAsciiWhitespace(name)) blanks.push_back(absl::StrCat("\"", name, "\""));
  }
  // If there are groups, the line above already reports names with blanks.
  if (!blanks.empty() && groups.empty()) {
    lines.push_back(
        absl::StrCat("names of classes begin or end with a blank: ", FirstFew(blanks, kNamed),
                     "; where it is not meant, take it out in the source"));
  }
  return lines;
}

std::string AlikeClass(std::span<const std::string> classes, const std::string& name) {
  const std::string plain = Plain(name);
  for (const std::string& each : classes) {
    if (Plain(each) == plain) return absl::StrCat(" (there is \"", EscapeForTerminal(each), "\")");
  }
  return "";
}

bool StandsForNoValue(const std::string& text) {
  static constexpr std::array<std::string_view, 9> kWords = {
      "", "nan", "null", "none", "n/a", "na", "nil", "undefined", "<na>"};
  return std::find(kWords.begin(), kWords.end(), Plain(text)) != kWords.end();
}

}  // namespace shardpack
