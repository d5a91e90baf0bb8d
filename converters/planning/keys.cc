#include "converters/planning/keys.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/listing/composed_text.h"
#include "converters/listing/path_filter.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"

namespace shardpack {
namespace {

constexpr size_t kGrain = 4096;
constexpr size_t kCollisionsShown = 20;
constexpr uint32_t kNoRow = std::numeric_limits<uint32_t>::max();
constexpr size_t kHashDigits = 16;

constexpr std::array<bool, 256> kPortableByte = [] {
  std::array<bool, 256> table = {};
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789_/+=@,-")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();

// Makes the key that a row gets in the dataset.
struct KeyMaker {
  const Listing& listing;
  size_t portable_bytes = 0;  // as in KeyPlan

  void Make(uint32_t row, uint32_t suffix, std::string& out) const {
    out.clear();
    AppendRowKey(listing, row, out);
    if (suffix > 0) AppendKeySuffix(suffix, out);
    if (portable_bytes > 0) MakePortableKey(portable_bytes, out);
  }
  std::string Make(uint32_t row, uint32_t suffix = 0) const {
    std::string key;
    Make(row, suffix, key);
    return key;
  }
  // Users consider two keys equal if these are.
  void MakeCanonicalKey(uint32_t row, uint32_t suffix, std::string& out) const {
    Make(row, suffix, out);
    MakeComposed(out);
  }
};

uint64_t HashOf(std::string_view key) { return Xxh3_64(AsBytes(key)); }

// Results of one pass over all keys.
struct KeySurvey {
  std::vector<uint64_t> hashes;      // of the canonical keys, sorted
  uint32_t first_changed = kNoRow;   // made portable
  uint32_t first_too_long = kNoRow;  // or empty
  uint64_t changed = 0;
};

void LowerTo(std::atomic<uint32_t>& minimum, uint32_t row) {
  uint32_t known = minimum.load(std::memory_order_relaxed);
  while (row < known && !minimum.compare_exchange_weak(known, row, std::memory_order_relaxed)) {
  }
}

KeySurvey Survey(const KeyMaker& keys, const std::vector<uint32_t>& rows, size_t max_key_bytes) {
  KeySurvey survey;
  survey.hashes.resize(rows.size());
  const size_t longest = max_key_bytes == 0 ? std::numeric_limits<size_t>::max() : max_key_bytes;
  std::atomic<uint32_t> changed{kNoRow}, too_long{kNoRow};
  std::atomic<uint64_t> count{0};
  tbb::parallel_for(tbb::blocked_range<size_t>(0, rows.size(), kGrain), [&](const auto& range) {
    std::string key;
    for (size_t i = range.begin(); i < range.end(); ++i) {
      const uint32_t row = rows[i];
      key.clear();
      AppendRowKey(keys.listing, row, key);
      if (key.empty() || key.size() > longest) LowerTo(too_long, row);
      if (keys.portable_bytes > 0 && MakePortableKey(keys.portable_bytes, key)) {
        LowerTo(changed, row);
        count.fetch_add(1, std::memory_order_relaxed);
      }
      MakeComposed(key);
      survey.hashes[i] = HashOf(key);
    }
  });
  survey.first_changed = changed;
  survey.first_too_long = too_long;
  survey.changed = count;
  tbb::parallel_sort(survey.hashes.begin(), survey.hashes.end());
  return survey;
}

using Collisions =
    std::vector<std::vector<uint32_t>>;  // rows with the same key, sorted; by first row

// Equal hashes only suggest a collision: the keys themselves decide.
Collisions FindCollisions(const KeyMaker& keys, const std::vector<uint32_t>& rows,
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
    keys.MakeCanonicalKey(row, 0, key);
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

// A photograph and a lossless picture with the same name may be an image and its mask.
bool IsPhoto(std::string_view extension) {
  return extension == "jpg" || extension == "jpeg" || extension == "webp";
}
bool IsMask(std::string_view extension) {
  return extension == "png" || extension == "bmp" || extension == "gif" || extension == "tif" ||
         extension == "tiff";
}

// What kind of files collide.
struct Pairs {
  uint64_t count = 0;
  std::string extension;  // of the first mask
};

Pairs FindPairs(const Listing& listing, const Collisions& collisions) {
  Pairs pairs;
  for (const std::vector<uint32_t>& rows : collisions) {
    std::string mask;
    bool photo = false;
    for (const uint32_t row : rows) {
      const std::string extension = NameExtension(listing.Name(row));
      if (listing.folder[row] != listing.folder[rows[0]]) continue;
      photo = photo || IsPhoto(extension);
      if (IsMask(extension)) mask = extension;
    }
    if (!photo || mask.empty()) continue;
    if (pairs.count++ == 0) pairs.extension = mask;
  }
  return pairs;
}

std::string MaskHint(const Pairs& pairs) {
  if (pairs.count == 0) return "";
  return absl::StrCat("--fields ", pairs.extension, ":mask takes the ", pairs.extension,
                      " files as masks of the images beside them; ");
}

absl::Status CollisionError(const KeyMaker& keys, const Collisions& collisions,
                            const Pairs& pairs) {
  const Listing& listing = keys.listing;
  std::string text =
      absl::StrCat(collisions.size(), collisions.size() == 1 ? " key is" : " keys are",
                   " shared by more than one file:\n");
  for (size_t i = 0; i < std::min(collisions.size(), kCollisionsShown); ++i) {
    const std::vector<uint32_t>& rows = collisions[i];
    absl::StrAppend(&text, "  ", EscapeForTerminal(keys.Make(rows[0])), ": ",
                    EscapeForTerminal(listing.Path(rows[0])));
    for (size_t j = 1; j < std::min<size_t>(rows.size(), 4); ++j) {
      absl::StrAppend(&text, ", ", EscapeForTerminal(listing.Path(rows[j])));
    }
    if (rows.size() > 4) absl::StrAppend(&text, ", and ", rows.size() - 4, " more");
    text.push_back('\n');
  }
  if (collisions.size() > kCollisionsShown) {
    absl::StrAppend(&text, "  and ", collisions.size() - kCollisionsShown, " more\n");
  }
  absl::StrAppend(&text, MaskHint(pairs),
                  "--on-duplicate-key suffix packs all of them as images, skip the first of each; "
                  "--key index numbers all samples");
  return absl::FailedPreconditionError(text);
}

// The first "_2", "_3", ... that no other key has.
void AddSuffixes(const KeyMaker& keys, const Collisions& collisions, const Pairs& pairs,
                 const std::vector<uint64_t>& sorted_hashes, KeyPlan& plan) {
  std::set<uint64_t> added;
  std::string key;
  uint64_t count = 0;
  for (const std::vector<uint32_t>& rows : collisions) {
    uint32_t n = 2;
    for (size_t i = 1; i < rows.size(); ++i, ++n) {
      for (;; ++n) {
        keys.MakeCanonicalKey(rows[i], n, key);
        const uint64_t hash = HashOf(key);
        if (std::binary_search(sorted_hashes.begin(), sorted_hashes.end(), hash)) continue;
        if (added.insert(hash).second) break;
      }
      plan.suffixes[rows[i]] = n;
    }
    count += rows.size() - 1;
  }
  const uint32_t first = collisions[0][1];
  plan.notes.push_back(absl::StrCat(
      count, count == 1 ? " file has" : " files have",
      " the key of another one and got a suffix: ", EscapeForTerminal(keys.listing.Path(first)),
      " is ", EscapeForTerminal(keys.Make(first, plan.suffixes[first])), count > 1 ? ", ..." : "",
      "; ", MaskHint(pairs), "--on-duplicate-key error or skip packs no two of one key"));
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

absl::Status CannotBeKey(const Listing& listing, uint32_t row, const KeyLimits& limits) {
  const std::string key = KeyMaker{listing}.Make(row);
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

size_t RowKeyBytes(const Listing& listing, uint64_t row) {
  if (listing.has_keys()) return listing.Key(row).size();
  const std::string_view folder = listing.folders[listing.folder[row]], name = listing.Name(row);
  return folder.size() + (folder.empty() ? 0 : 1) + std::min(name.rfind('.'), name.size());
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

bool MakePortableKey(size_t max_bytes, std::string& key) {
  if (key.size() <= max_bytes && IsPortableKey(key)) return false;
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string made;
  const auto escape = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    made.append({'=', kHex[byte >> 4], kHex[byte & 15]});
  };
  for (size_t begin = 0;;) {
    const size_t end = std::min(key.find('/', begin), key.size());
    std::string component = key.substr(begin, end - begin);
    std::replace(component.begin(), component.end(), '.', '_');
    if (component.empty()) component = "_";
    size_t next = 0;
    if (component.starts_with("__")) escape(component[next++]);
    for (; next < component.size(); ++next) {
      if (kPortableByte[static_cast<unsigned char>(component[next])]) {
        made.push_back(component[next]);
      } else {
        escape(component[next]);
      }
    }
    if (end == key.size()) break;
    made.push_back('/');
    begin = end + 1;
  }
  if (made.size() > max_bytes) {
    made.resize(max_bytes - 1 - kHashDigits);
    absl::StrAppend(&made, "-", absl::Hex(HashOf(key), absl::kZeroPad16));
  }
  key = std::move(made);
  return true;
}

absl::StatusOr<KeyPlan> PlanKeys(const Listing& listing, std::vector<uint32_t>& rows, KeyMode mode,
                                 OnDuplicateKey on_duplicate, const KeyLimits& limits) {
  KeyPlan plan;
  if (mode == KeyMode::kAuto && listing.has_keys()) mode = KeyMode::kPath;
  size_t portable_bytes =
      kMaxPortableBytes - 1 - std::min(limits.max_extension_bytes, kMaxPortableBytes - 1);
  if (limits.max_key_bytes > 0) portable_bytes = std::min(portable_bytes, limits.max_key_bytes);
  // Field names are so long that the keys beside them could not distinguish samples.
  if (mode == KeyMode::kAuto && portable_bytes < kMinPortableBytes) mode = KeyMode::kIndex;
  if (mode == KeyMode::kIndex) {
    plan.index_keys = true;
    return plan;
  }
  if (mode == KeyMode::kAuto) plan.portable_bytes = portable_bytes;
  const KeyMaker keys{listing, plan.portable_bytes};
  const KeySurvey survey = Survey(keys, rows, limits.max_key_bytes);
  if (mode == KeyMode::kPath && survey.first_too_long != kNoRow) {
    return CannotBeKey(listing, survey.first_too_long, limits);
  }
  if (survey.changed > 0) {
    const uint32_t first = survey.first_changed;
    plan.notes.push_back(
        absl::StrCat(survey.changed, survey.changed == 1 ? " key is" : " keys are",
                     " not as the path, which has bytes that not every reader takes, or too many: ",
                     EscapeForTerminal(listing.Path(first)), " is ", keys.Make(first),
                     survey.changed > 1 ? ", ..." : "", "; --key path keeps paths as keys"));
  }
  const Collisions collisions = FindCollisions(keys, rows, survey.hashes);
  if (collisions.empty()) {
    if (survey.changed == 0) plan.portable_bytes = 0;
    return plan;
  }
  const Pairs pairs = FindPairs(listing, collisions);
  // Half of the samples or more: not a coincidence.
  const bool masks = pairs.count >= 2 && 2 * pairs.count >= rows.size() - pairs.count;
  if (on_duplicate == OnDuplicateKey::kAuto)
    on_duplicate = masks ? OnDuplicateKey::kError : OnDuplicateKey::kSuffix;
  if (on_duplicate == OnDuplicateKey::kError) return CollisionError(keys, collisions, pairs);
  if (on_duplicate == OnDuplicateKey::kSkip) {
    SkipDuplicates(listing, collisions, rows, plan);
    return plan;
  }
  AddSuffixes(keys, collisions, pairs, survey.hashes, plan);
  for (const auto& [row, n] : plan.suffixes) {
    const bool too_long =
        limits.max_key_bytes != 0 && keys.Make(row, n).size() > limits.max_key_bytes;
    if (too_long) return CannotBeKey(listing, row, limits);
  }
  return plan;
}

}  // namespace shardpack
