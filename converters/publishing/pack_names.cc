#include "converters/publishing/pack_names.h"

#include <regex>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

constexpr std::string_view kWorkers = ".pack/journal-", kSuffix = ".jsonl";

}  // namespace

bool IsRunName(std::string_view name) {
  static const auto& pattern =
      *new std::regex("[A-Za-z0-9._-]+-([0-9a-f]{8}|unknown)-[0-9]+-[0-9a-f]+");
  return std::regex_match(name.begin(), name.end(), pattern);
}

std::string WorkersJournal(std::string_view run) {
  return absl::StrCat(std::string(kWorkers), std::string(run), std::string(kSuffix));
}

bool IsOwnJournalName(std::string_view name) {
  if (name == NameInFolder(kJournalName)) return true;
  constexpr std::string_view kPrefix = NameInFolder(kWorkers);
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  name.remove_prefix(kPrefix.size());
  return name.size() > kSuffix.size() && IsRunName(name.substr(0, name.size() - kSuffix.size()));
}

}  // namespace shardpack
