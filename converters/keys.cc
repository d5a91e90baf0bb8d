#include "converters/keys.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"

namespace shardpack {
namespace {

constexpr size_t kGrain = 4096;
constexpr size_t kCollisionsShown = 20;

constexpr std::array<bool, 256> kPortableByte = [] {
  std::array<bool, 256> table = {};
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789_/+=@,-")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

// Two keys are the same to a user when their canonical forms are equal: NFC, where they are UTF-8.
void MakeCanonical(std::string& key) {
  if (IsAscii(key)) return;
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(key.data()),
                   static_cast<utf8proc_ssize_t>(key.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&free)> owner(composed, &free);
  if (bytes >= 0) key.assign(reinterpret_cast<const char*>(composed), static_cast<size_t>(bytes));
}

std::string RowKey(const Listing& listing, uint64_t row) {
  std::string key;
  AppendRowKey(listing, row, key);
  return key;
}

void CanonicalKey(const Listing& listing, uint32_t row, std::string& out) {
  out.clear();
  AppendRowKey(listing, row, out);
  MakeCanonical(out);
}

uint64_t HashOf(std::string_view key) { return Xxh3_64(AsBytes(key)); }

// What one pass over all keys tells.
struct KeySurvey {
  std::vector<uint64_t> hashes;  // of the canonical keys, sorted
  uint32_t first_not_portable = std::numeric_limits<uint32_t>::max();  // rows; the maximum = none
  uint32_t first_too_long = std::numeric_limits<uint32_t>::max();      // or empty
};

void LowerTo(std::atomic<uint32_t>& minimum, uint32_t row) {
  uint32_t known = minimum.load(std::memory_order_relaxed);
  while (row < known && !minimum.compare_exchange_weak(known, row, std::memory_order_relaxed)) {
  }
}

KeySurvey Survey(const Listing& listing, const std::vector<uint32_t>& rows,
                 const KeyLimits& limits) {
  KeySurvey survey;
  survey.hashes.resize(rows.size());
  const size_t longest =
      limits.max_key_bytes == 0 ? std::numeric_limits<size_t>::max() : limits.max_key_bytes;
  const size_t longest_portable =
      std::min(longest, kMaxPortableBytes - 1 -
                            std::min(limits.longest_extension_bytes, kMaxPortableBytes - 1));
  std::atomic<uint32_t> not_portable{survey.first_not_portable}, too_long{survey.first_too_long};
  tbb::parallel_for(tbb::blocked_range<size_t>(0, rows.size(), kGrain), [&](const auto& range) {
    std::string key;
    for (size_t i = range.begin(); i < range.end(); ++i) {
      const uint32_t row = rows[i];
      key.clear();
      AppendRowKey(listing, row, key);
      if (key.empty() || key.size() > longest) LowerTo(too_long, row);
      if (key.size() > longest_portable || !IsPortableKey(key)) LowerTo(not_portable, row);
      MakeCanonical(key);
      survey.hashes[i] = HashOf(key);
    }
  });
  survey.first_not_portable = not_portable;
  survey.first_too_long = too_long;
  tbb::parallel_sort(survey.hashes.begin(), survey.hashes.end());
  return survey;
}

using Collisions = std::vector<std::vector<uint32_t>>;  // rows of one key, ascending; by first row

// Equal hashes are only a suspicion: the keys themselves decide.
Collisions FindCollisions(const Listing& listing, const std::vector<uint32_t>& rows,
                          const std::vector<uint64_t>& sorted_hashes) {
  std::vector<uint64_t> suspects;
  for (size_t i = 1; i < sorted_hashes.size(); ++i) {
    if (sorted_hashes[i] == sorted_hashes[i - 1]) suspects.push_back(sorted_hashes[i]);
  }
  if (suspects.empty()) return {};
  suspects.erase(std::unique(suspects.begin(), suspects.end()), suspects.end());
  std::map<std::string, std::vector<uint32_t>> groups;
  std::string key;
  for (const uint32_t row : rows) {
    CanonicalKey(listing, row, key);
    if (std::binary_search(suspects.begin(), suspects.end(), HashOf(key)))
      groups[key].push_back(row);
  }
  Collisions collisions;
  for (auto& [name, members] : groups) {
    if (members.size() > 1) collisions.push_back(std::move(members));
  }
  std::sort(collisions.begin(), collisions.end());
  return collisions;
}

absl::Status CollisionError(const Listing& listing, const Collisions& collisions) {
  std::string text =
      absl::StrCat(collisions.size(), collisions.size() == 1 ? " key is" : " keys are",
                   " wanted by several files each:\n");
  for (size_t i = 0; i < std::min(collisions.size(), kCollisionsShown); ++i) {
    const std::vector<uint32_t>& rows = collisions[i];
    const std::string first = listing.Path(rows[0]);
    absl::StrAppend(&text, "  ", EscapeForTerminal(RowKey(listing, rows[0])), ": ", EscapeForTerminal(first));
    for (size_t j = 1; j < std::min<size_t>(rows.size(), 4); ++j) {
      absl::StrAppend(&text, ", ", EscapeForTerminal(listing.Path(rows[j])));
    }
    if (rows.size() > 4) absl::StrAppend(&text, ", and ", rows.size() - 4, " more");
    text.push_back('\n');
  }
  if (collisions.size() > kCollisionsShown) {
    absl::StrAppend(&text, "  and ", collisions.size() - kCollisionsShown, " more\n");
  }
  text +=
      "--key index numbers all samples; --on-duplicate-key suffix or skip keeps path keys";
  return absl::FailedPreconditionError(text);
}

// The first "_2", "_3", ... that no other key has.
void AddSuffixes(const Listing& listing, const Collisions& collisions,
                 const std::vector<uint64_t>& sorted_hashes, KeyPlan& plan) {
  std::set<uint64_t> added;
  std::string key;
  for (const std::vector<uint32_t>& rows : collisions) {
    uint32_t n = 2;
    for (size_t i = 1; i < rows.size(); ++i, ++n) {
      for (;; ++n) {
        CanonicalKey(listing, rows[i], key);
        AppendKeySuffix(n, key);
        const uint64_t hash = HashOf(key);
        if (std::binary_search(sorted_hashes.begin(), sorted_hashes.end(), hash)) continue;
        if (added.insert(hash).second) break;
      }
      plan.suffixes[rows[i]] = n;
    }
  }
  uint64_t count = 0;
  for (const auto& rows : collisions) count += rows.size() - 1;
  plan.notes.push_back(absl::StrCat(
      count, " files have the key of an earlier one and got a suffix, the first is ",
      EscapeForTerminal(listing.Path(collisions[0][1])), "; --key index numbers all samples"));
}

void SkipDuplicates(const Listing& listing, const Collisions& collisions,
                    std::vector<uint32_t>& rows, KeyPlan& plan) {
  for (const std::vector<uint32_t>& same : collisions) {
    for (size_t i = 1; i < same.size(); ++i) {
      plan.skips.push_back(
          {same[i], SkipReason::kDuplicateKey, absl::StrCat("the key of ", listing.Path(same[0]))});
    }
  }
  std::sort(plan.skips.begin(), plan.skips.end(),
            [](const Skip& a, const Skip& b) { return a.row < b.row; });
  auto next = plan.skips.begin();
  std::erase_if(rows, [&](uint32_t row) {
    if (next == plan.skips.end() || next->row != row) return false;
    ++next;
    return true;
  });
}

std::string WhyNotPortable(const Listing& listing, uint32_t row, const KeyLimits& limits) {
  const std::string key = RowKey(listing, row);
  for (const char c : key) {
    if (kPortableByte[static_cast<unsigned char>(c)]) continue;
    return c == '.' ? "has a folder with a dot"
                    : absl::StrCat("has the byte '", EscapeForTerminal({&c, 1}), "'");
  }
  if (!IsPortableKey(key)) return "has a part that is empty or begins with \"__\"";
  return absl::StrCat("is ", key.size(), " bytes long (with a dot and an extension ",
                      key.size() + 1 + limits.longest_extension_bytes, ")");
}

absl::Status CannotBeKey(const Listing& listing, uint32_t row, const KeyLimits& limits) {
  const std::string key = RowKey(listing, row);
  return absl::InvalidArgumentError(
      absl::StrCat(EscapeForTerminal(listing.Path(row)),
                   key.empty() ? " gives an empty key"
                               : absl::StrCat(" gives a key of ", key.size(),
                                              " bytes, the format takes ", limits.max_key_bytes),
                   "; --key auto or index numbers all samples"));
}

}  // namespace

void AppendPathKey(std::string_view folder, std::string_view name, std::string& out) {
  if (!folder.empty()) out.append(folder).push_back('/');
  const size_t begin = out.size();
  out.append(name.substr(0, std::min(name.rfind('.'), name.size())));
  std::replace(out.begin() + static_cast<ptrdiff_t>(begin), out.end(), '.', '_');
}

std::string PathKey(std::string_view path) {
  const size_t slash = path.rfind('/');
  std::string key;
  if (slash == std::string_view::npos) {
    AppendPathKey("", path, key);
  } else {
    AppendPathKey(path.substr(0, slash), path.substr(slash + 1), key);
  }
  return key;
}

void AppendRowKey(const Listing& listing, uint64_t row, std::string& out) {
  if (listing.has_keys()) {
    out.append(listing.Key(row));
  } else {
    AppendPathKey(listing.folders[listing.folder[row]], listing.Name(row), out);
  }
}

void AppendKeySuffix(uint32_t n, std::string& key) { absl::StrAppend(&key, "_", n); }

void AppendIndexKey(uint64_t position, std::string& out) {
  std::array<char, 20> digits;
  size_t at = digits.size();
  do {
    digits[--at] = static_cast<char>('0' + position % 10);
    position /= 10;
  } while (position > 0);
  while (digits.size() - at < 9) digits[--at] = '0';
  out.append(digits.data() + at, digits.size() - at);
}

bool IsPortableKey(std::string_view key) {
  bool portable = !key.empty();
  for (const char c : key) portable &= kPortableByte[static_cast<unsigned char>(c)];
  if (!portable) return false;
  for (size_t begin = 0;;) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view component = key.substr(begin, end - begin);
    if (component.empty() || component.starts_with("__")) return false;
    if (end == key.size()) return true;
    begin = end + 1;
  }
}

absl::StatusOr<KeyPlan> PlanKeys(const Listing& listing, std::vector<uint32_t>& rows, KeyMode mode,
                                 OnDuplicateKey on_duplicate, const KeyLimits& limits) {
  KeyPlan plan;
  if (mode == KeyMode::kAuto && listing.has_keys()) mode = KeyMode::kPath;
  if (mode == KeyMode::kIndex) {
    plan.index_keys = true;
    return plan;
  }
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  const KeySurvey survey = Survey(listing, rows, limits);
  if (mode == KeyMode::kPath && survey.first_too_long != kNone) {
    return CannotBeKey(listing, survey.first_too_long, limits);
  }
  const Collisions collisions = FindCollisions(listing, rows, survey.hashes);
  if (!collisions.empty()) {
    switch (on_duplicate) {
      case OnDuplicateKey::kError:
        return CollisionError(listing, collisions);
      case OnDuplicateKey::kSuffix:
        AddSuffixes(listing, collisions, survey.hashes, plan);
        break;
      case OnDuplicateKey::kSkip:
        SkipDuplicates(listing, collisions, rows, plan);
        break;
    }
  }
  uint32_t culprit = survey.first_not_portable;
  std::string key;
  for (const auto& [row, n] : plan.suffixes) {
    key = RowKey(listing, row);
    AppendKeySuffix(n, key);
    const bool too_long = limits.max_key_bytes != 0 && key.size() > limits.max_key_bytes;
    if (too_long && mode == KeyMode::kPath) return CannotBeKey(listing, row, limits);
    if (too_long || key.size() + 1 + limits.longest_extension_bytes > kMaxPortableBytes) {
      culprit = std::min(culprit, row);
    }
  }
  if (mode == KeyMode::kAuto && culprit != kNone) {
    plan.index_keys = true;
    plan.suffixes.clear();
    plan.notes.assign(
        1,
        absl::StrCat("keys are numbers, because ", EscapeForTerminal(listing.Path(culprit)), " ",
                     WhyNotPortable(listing, culprit, limits), "; --key path keeps paths as keys"));
  }
  return plan;
}

}  // namespace shardpack
