#include "converters/publishing/pack_names.h"

#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shardpack {
namespace {

constexpr std::string_view kWorkers = ".pack/journal-", kSuffix = ".jsonl";

constexpr uint32_t kShardsPerFolder = 1000;
constexpr size_t kMaxDigits = 9;

std::optional<uint32_t> ParseNumber(std::string_view digits) {
  if (digits.empty() || digits.size() > kMaxDigits) return std::nullopt;
  uint32_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number;
}

}  // namespace

bool IsRunName(std::string_view name) {
  static const auto& pattern =
      *new std::regex("[A-Za-z0-9._-]+-([0-9a-f]{8}|unknown)-[0-9]+-[0-9a-f]+");
  return std::regex_match(name.begin(), name.end(), pattern);
}

std::string WorkersJournal(std::string_view run) {
  return absl::StrCat(std::string(kWorkers), std::string(run), std::string(kSuffix));
}

std::string OwnerName(std::string_view run) {
  return absl::StrCat(std::string(kOwnersFolder), "/", std::string(run));
}

std::string LeaseFolderName(uint32_t shard) {
  return absl::StrFormat("%s/%03d", std::string(kLeaseFolder), shard / kShardsPerFolder);
}

std::string LeaseName(uint32_t shard, uint32_t generation) {
  return absl::StrFormat("%s/%06d.%d", LeaseFolderName(shard), shard, generation);
}

std::optional<std::pair<uint32_t, uint32_t>> ParseLeaseName(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<uint32_t> shard = ParseNumber(name.substr(0, dot)),
                                generation = ParseNumber(name.substr(dot + 1));
  if (!shard || !generation || NameInFolder(LeaseName(*shard, *generation)) != name)
    return std::nullopt;
  return std::pair(*shard, *generation);
}

std::string FailureName(uint32_t shard, std::string_view run) {
  return absl::StrFormat("%s/%06d.%s", std::string(kFailedFolder), shard, std::string(run));
}

std::optional<std::pair<uint32_t, std::string>> ParseFailureName(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<uint32_t> shard = ParseNumber(name.substr(0, dot));
  const std::string_view run = name.substr(dot + 1);
  if (!shard || !IsRunName(run)) return std::nullopt;
  return std::pair(*shard, std::string(run));
}

bool IsOwnJournalName(std::string_view name) {
  if (name == NameInFolder(kJournalName)) return true;
  constexpr std::string_view kPrefix = NameInFolder(kWorkers);
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  name.remove_prefix(kPrefix.size());
  return name.size() > kSuffix.size() && IsRunName(name.substr(0, name.size() - kSuffix.size()));
}

}  // namespace shardpack
