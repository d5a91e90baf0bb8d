#include "converters/planning/splits.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "converters/planning/seeded_shuffle.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

constexpr double kSumTolerance = 1e-6;
constexpr size_t kMaxSplits = 1000;

absl::Status CheckFractions(const SplitFractions& fractions) {
  double sum = 0;
  std::vector<std::string> folded;
  for (const auto& [name, fraction] : fractions) {
    if (!IsPortableSplitName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--split: the name ", EscapeForTerminal(name),
                       " is not portable; letters, digits, _ and - are"));
    }
    folded.push_back(absl::AsciiStrToLower(name));
    if (!(fraction > 0) || !(fraction <= 1)) {
      return absl::InvalidArgumentError(absl::StrCat("--split: the fraction of ", name, " is ",
                                                     fraction, ", not between 0 and 1"));
    }
    sum += fraction;
  }
  std::sort(folded.begin(), folded.end());
  const auto twice = std::adjacent_find(folded.begin(), folded.end());
  if (twice != folded.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--split: ", *twice, " occurs twice"));
  }
  if (std::abs(sum - 1) > kSumTolerance) {
    return absl::InvalidArgumentError(
        absl::StrCat("--split: the fractions add up to ", sum, ", not to 1"));
  }
  return absl::OkStatus();
}

uint64_t PathHash(const Listing& listing, uint32_t row, uint64_t seed, std::string& path) {
  path.clear();
  listing.AppendPath(row, path);
  return XXH3_64bits_withSeed(path.data(), path.size(), seed);
}

void AssignByHash(const Listing& listing, std::span<const uint32_t> rows,
                  const std::vector<double>& fractions, uint64_t seed,
                  std::vector<uint16_t>& split_of) {
  std::vector<double> ends(fractions.size());
  std::partial_sum(fractions.begin(), fractions.end(), ends.begin());
  std::string path;
  for (size_t i = 0; i < rows.size(); ++i) {
    // 53 bits: exact in a double.
    const double at =
        std::ldexp(static_cast<double>(PathHash(listing, rows[i], seed, path) >> 11), -53);
    const auto end = std::upper_bound(ends.begin(), ends.end() - 1, at);
    split_of[i] = static_cast<uint16_t>(end - ends.begin());
  }
}

// Shuffles `members` (indexes into the list of rows) and distributes them.
void Deal(std::span<uint32_t> members, const std::vector<double>& fractions, SeededRandom random,
          std::vector<uint16_t>& split_of) {
  random.Shuffle(members);
  const std::vector<uint64_t> counts = DivideExactly(members.size(), fractions);
  size_t at = 0;
  for (size_t split = 0; split < counts.size(); ++split) {
    for (uint64_t i = 0; i < counts[split]; ++i)
      split_of[members[at++]] = static_cast<uint16_t>(split);
  }
}

absl::Status AssignStratified(const Listing& listing, std::span<const uint32_t> rows,
                              const std::vector<double>& fractions, uint64_t seed,
                              std::vector<uint16_t>& split_of) {
  if (listing.classes.empty()) {
    return absl::InvalidArgumentError(
        "--split-by stratified needs classes, and no input has one; --split-by random does "
        "without");
  }
  std::vector<uint32_t> members(rows.size());
  std::iota(members.begin(), members.end(), uint32_t{0});
  const auto label_of = [&](uint32_t member) { return listing.label[rows[member]]; };
  std::stable_sort(members.begin(), members.end(),
                   [&](uint32_t a, uint32_t b) { return label_of(a) < label_of(b); });
  for (size_t begin = 0; begin < members.size();) {
    const int32_t label = label_of(members[begin]);
    size_t end = begin;
    while (end < members.size() && label_of(members[end]) == label) ++end;
    // By the label's name, so that a new class does not change the others.
    const std::string name = label < 0 ? "" : listing.classes[static_cast<size_t>(label)];
    const uint64_t number = XXH3_64bits(name.data(), name.size());
    Deal(std::span(members).subspan(begin, end - begin), fractions,
         SeededRandom(seed, RandomStream::kStratified, number), split_of);
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status AssignByFolder(const Listing& listing, std::span<const uint32_t> rows,
                            std::vector<uint16_t>& split_of, std::vector<std::string>& names) {
  std::map<std::string, uint16_t, std::less<>> splits;
  std::vector<std::string_view> first(listing.folders.size());
  for (size_t i = 0; i < first.size(); ++i) {
    first[i] = std::string_view(listing.folders[i]).substr(0, listing.folders[i].find('/'));
  }
  for (const uint32_t row : rows) {
    const std::string_view name = first[listing.folder[row]];
    if (splits.find(name) != splits.end()) continue;
    if (name.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--split-by dir: ", EscapeForTerminal(listing.Path(row)),
                       " lies beside the folders of the splits; leave it out with --exclude"));
    }
    if (!IsPortableSplitName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--split-by dir: the folder ", EscapeForTerminal(name),
                       " cannot name a split; letters, digits, _ and - can"));
    }
    splits.emplace(name, 0);
    if (splits.size() > kMaxSplits) break;
  }
  if (splits.size() > kMaxSplits) {
    return absl::InvalidArgumentError(
        absl::StrCat("--split-by dir: more than ", kMaxSplits,
                     " folders; are they classes? Then leave the option out"));
  }
  std::map<std::string, std::string_view> folded;
  for (auto& [name, number] : splits) {
    const auto [twin, added] = folded.emplace(absl::AsciiStrToLower(name), name);
    if (!added) {
      return absl::InvalidArgumentError(absl::StrCat("--split-by dir: the folders ",
                                                     std::string(twin->second), " and ", name,
                                                     " differ only in case"));
    }
    number = static_cast<uint16_t>(names.size());
    names.push_back(name);
  }
  for (size_t i = 0; i < rows.size(); ++i)
    split_of[i] = splits.find(first[listing.folder[rows[i]]])->second;
  return absl::OkStatus();
}

// Splits without a row are left out: their samples were skipped or filtered.
void AssignAsListed(const Listing& listing, std::span<const uint32_t> rows,
                    std::vector<uint16_t>& split_of, std::vector<std::string>& names) {
  constexpr uint16_t kNone = std::numeric_limits<uint16_t>::max();
  std::vector<uint16_t> number(listing.splits.size(), kNone);
  for (const uint32_t row : rows) number[listing.split[row]] = 0;
  for (size_t i = 0; i < number.size(); ++i) {
    if (number[i] == kNone) continue;
    number[i] = static_cast<uint16_t>(names.size());
    names.push_back(listing.splits[i]);
  }
  for (size_t i = 0; i < rows.size(); ++i) split_of[i] = number[listing.split[rows[i]]];
}

absl::StatusOr<SplitPlan> Group(std::span<const uint32_t> rows, std::span<const uint16_t> split_of,
                                std::vector<std::string> names) {
  SplitPlan plan;
  std::vector<uint64_t> next(names.size(), 0);
  for (const uint16_t split : split_of) ++next[split];
  uint64_t end = 0;
  for (size_t split = 0; split < names.size(); ++split) {
    if (next[split] == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the split ", names[split], " would be empty: ", rows.size(),
          rows.size() == 1 ? " input is" : " inputs are",
          " too few for its fraction; raise it, leave the split out, or use --split-by random"));
    }
    const uint64_t count = next[split];
    next[split] = end;
    end += count;
    plan.ends.push_back(end);
  }
  plan.rows.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) plan.rows[next[split_of[i]]++] = rows[i];
  plan.names = std::move(names);
  return plan;
}

}  // namespace

bool IsPortableSplitName(std::string_view name) {
  if (name.empty() || name.size() > 64 || !absl::ascii_isalnum(static_cast<unsigned char>(name[0])))
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  });
}

std::vector<uint64_t> DivideExactly(uint64_t total, std::span<const double> fractions) {
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.0);
  std::vector<uint64_t> parts;
  std::vector<std::pair<double, size_t>>
      remainders;  // negated, so that a plain sort puts the largest first
  uint64_t given = 0;
  for (size_t i = 0; i < fractions.size(); ++i) {
    const double exact = static_cast<double>(total) * (fractions[i] / sum);
    // 0.3 * 10 must be 3 despite binary rounding.
    const double whole = std::floor(exact + 1e-9 * std::max(1.0, exact));
    parts.push_back(std::min(static_cast<uint64_t>(whole), total - given));
    given += parts.back();
    // Rounded, so that equal fractions tie.
    remainders.emplace_back(-std::round((exact - whole) * 1e6), i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; given < total; i = (i + 1) % remainders.size()) {
    ++parts[remainders[i].second];
    ++given;
  }
  return parts;
}

absl::StatusOr<SplitPlan> PlanSplits(const Listing& listing, std::vector<uint32_t> rows,
                                     const SplitFractions& fractions, SplitBy by, uint64_t seed) {
  if (by == SplitBy::kDir && !fractions.empty()) {
    return absl::InvalidArgumentError(
        "--split-by dir takes the splits from the folders; leave --split out");
  }
  if (by != SplitBy::kDir && fractions.empty() && !listing.splits.empty()) {
    std::vector<uint16_t> split_of(rows.size());
    std::vector<std::string> names;
    AssignAsListed(listing, rows, split_of, names);
    return Group(rows, split_of, std::move(names));
  }
  if (by != SplitBy::kDir && fractions.empty()) {
    const uint64_t end = rows.size();
    return SplitPlan{{"train"}, std::move(rows), {end}};
  }
  if (fractions.size() > kMaxSplits) {
    return absl::InvalidArgumentError(absl::StrCat("--split: more than ", kMaxSplits, " splits"));
  }
  absl::Status checked = CheckFractions(fractions);
  if (by != SplitBy::kDir && !checked.ok()) return checked;

  std::vector<std::string> names;
  std::vector<double> parts;
  for (const auto& [name, fraction] : fractions) {
    names.push_back(name);
    parts.push_back(fraction);
  }
  std::vector<uint16_t> split_of(rows.size());
  absl::Status assigned;
  switch (by) {
    case SplitBy::kHash:
      AssignByHash(listing, rows, parts, seed, split_of);
      break;
    case SplitBy::kRandom: {
      std::vector<uint32_t> members(rows.size());
      std::iota(members.begin(), members.end(), uint32_t{0});
      Deal(members, parts, SeededRandom(seed, RandomStream::kSplit), split_of);
      break;
    }
    case SplitBy::kStratified:
      assigned = AssignStratified(listing, rows, parts, seed, split_of);
      break;
    case SplitBy::kDir:
      assigned = AssignByFolder(listing, rows, split_of, names);
      break;
  }
  if (!assigned.ok()) return assigned;
  return Group(rows, split_of, std::move(names));
}

}  // namespace shardpack
