#include "converters/publishing/pack_names.h"

#include <algorithm>
#include <cctype>

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

// Read from its end, since a host may have any name of these characters.
bool IsRunName(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789", kHex = "0123456789abcdef";
  constexpr size_t kBootDigits = 8;
  const auto last = [&]() {
    const size_t dash = name.rfind('-');
    const std::string_view part = dash == name.npos ? std::string_view() : name.substr(dash + 1);
    name = name.substr(0, dash == name.npos ? 0 : dash);
    return part;
  };
  const auto all_of = [](std::string_view part, std::string_view known) {
    return !part.empty() && part.find_first_not_of(known) == part.npos;
  };
  if (!all_of(last(), kHex) || !all_of(last(), kDigits)) return false;
  const std::string_view boot = last();
  if (boot != "unknown" && (boot.size() != kBootDigits || !all_of(boot, kHex))) return false;
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
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
  // As LeaseName writes it.
  constexpr size_t kShardDigits = 6;
  const std::string_view padded = name.substr(0, dot);
  if (!shard || !generation || name[dot + 1] == '0' || padded.size() < kShardDigits ||
      (padded.size() > kShardDigits && padded.front() == '0'))
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
