#include "converters/listing/class_names.h"

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

// `composed` in lower case, without blanks around it.
std::string Plain(std::string composed) {
  absl::AsciiStrToLower(&composed);
  absl::StripAsciiWhitespace(&composed);
  return composed;
}

}  // namespace

std::vector<std::string> DoubtfulClassNames(std::span<const std::string> classes) {
  std::map<std::string, size_t> composed;  // how many names have this form
  for (const std::string& name : classes) ++composed[Composed(name)];
  std::map<std::string, std::vector<std::string>> alike;
  std::vector<std::string> groups, forms;
  for (const std::string& name : classes) {
    const auto found = composed.find(Composed(name));
    if (found == composed.end()) continue;  // another form of one before
    const std::string quoted = absl::StrCat("\"", found->first, "\"");
    if (found->second > 1) forms.push_back(quoted);
    alike[Plain(found->first)].push_back(quoted);
    composed.erase(found);
  }
  for (const auto& [plain, names] : alike) {
    if (names.size() > 1) groups.push_back(absl::StrJoin(names, " and "));
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
  const std::string composed = Composed(name), plain = Plain(composed);
  for (const std::string& each : classes) {
    const std::string other = Composed(each);
    if (other == composed) return " (there is one of another Unicode form that looks the same)";
    if (Plain(other) == plain) return absl::StrCat(" (there is \"", EscapeForTerminal(each), "\")");
  }
  return "";
}

bool StandsForNoValue(const std::string& text) {
  static constexpr std::array<std::string_view, 9> kWords = {
      "", "nan", "null", "none", "n/a", "na", "nil", "undefined", "<na>"};
  return std::find(kWords.begin(), kWords.end(), Plain(text)) != kWords.end();
}

}  // namespace shardpack
