#include "converters/listing/class_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr size_t kNamed = 3;

std::string Plain(const std::string& name) {
  std::string plain = absl::AsciiStrToLower(name);
  absl::StripAsciiWhitespace(&plain);
  return plain;
}

}  // namespace

std::vector<std::string> DoubtfulClassNames(std::span<const std::string> classes) {
  std::map<std::string, std::vector<std::string>> alike;
  for (const std::string& name : classes)
    alike[Plain(name)].push_back(absl::StrCat("\"", EscapeForTerminal(name), "\""));
  std::vector<std::string> groups;
  for (const auto& [plain, names] : alike) {
    if (names.size() > 1) groups.push_back(absl::StrJoin(names, " and "));
  }
  if (groups.empty()) return {};
  const size_t count = groups.size();
  groups.resize(std::min(count, kNamed));
  return {absl::StrCat("classes that differ in case or blanks alone: ", absl::StrJoin(groups, ", "),
                       count > kNamed ? absl::StrCat(" and ", count - kNamed, " more") : "",
                       "; where they are meant as one, give them one name in the source")};
}

bool StandsForNoValue(const std::string& text) {
  static constexpr std::array<std::string_view, 9> kWords = {
      "", "nan", "null", "none", "n/a", "na", "nil", "undefined", "<na>"};
  return std::find(kWords.begin(), kWords.end(), Plain(text)) != kWords.end();
}

}  // namespace shardpack
