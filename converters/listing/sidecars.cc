#include "converters/listing/sidecars.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/listing/find_skip.h"
#include "converters/listing/path_filter.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr std::string_view kAnswer =
    "; --missing-part skip leaves such samples out, keep packs them without it, drop writes the "
    "part for none";

// The part for a message. The image of a sample has another name than its file: one that is a jpg
// itself can lack the part jpg.
std::string WhatIsMissing(const std::string& part) {
  const bool image = PathFilter({}, false, {}, {}).HasInputExtension(absl::StrCat("x.", part));
  return image ? absl::StrCat(part, ", a second image") : part;
}

// One part's file, while rows are being paired.
struct Part {
  uint32_t folder;
  std::string_view stem;
  size_t sidecar;
  uint64_t row;
  bool operator<(const Part& other) const {
    return std::tie(folder, stem, sidecar, row) <
           std::tie(other.folder, other.stem, other.sidecar, other.row);
  }
};

// Moves rows from the walked listing to the paired one.
class Pairing {
 public:
  Pairing(std::span<const Sidecar> sidecars, MissingPart missing, Listing walked)
      : sidecars_(sidecars),
        missing_(missing),
        from_(std::move(walked)),
        wanted_(from_.rows(), false) {
    into_.root = from_.root;
    into_.folders = from_.folders;
    into_.ignored = from_.ignored;
    into_.notes = from_.notes;
    into_.warnings = from_.warnings;
    into_.unread_folders = from_.unread_folders;
    for (const Sidecar& sidecar : sidecars) into_.fields.push_back({sidecar.field, sidecar.suffix});
  }

  absl::StatusOr<Listing> Run() {
    for (uint64_t row = 0; row < from_.rows(); ++row) {
      const auto sidecar = SidecarOf(sidecars_, from_.Name(row));
      if (!sidecar) continue;
      const std::string_view name = from_.Name(row);
      parts_.push_back({from_.folder[row],
                        name.substr(0, name.size() - sidecars_[*sidecar].suffix.size() - 1),
                        *sidecar, row});
      is_part_.resize(row + 1, false);
      is_part_[row] = true;
    }
    is_part_.resize(from_.rows(), false);
    std::sort(parts_.begin(), parts_.end());
    for (uint64_t row = 0; row < from_.rows(); ++row) {
      if (!is_part_[row]) FindParts(row);
    }
    for (uint64_t row = 0; row < from_.rows(); ++row) {
      RETURN_IF_ERROR(is_part_[row] ? TakeUnpaired(row) : TakeImage(row));
    }
    DropEmptyFolders();
    return std::move(into_);
  }

 private:
  const Part* Find(uint64_t row, size_t sidecar) const {
    const Part wanted{from_.folder[row], Stem(from_.Name(row)), sidecar, 0};
    const auto found = std::lower_bound(parts_.begin(), parts_.end(), wanted);
    const bool is_it = found != parts_.end() && found->folder == wanted.folder &&
                       found->stem == wanted.stem && found->sidecar == sidecar;
    return is_it ? &*found : nullptr;
  }

  void FindParts(uint64_t row) {
    for (size_t s = 0; s < sidecars_.size(); ++s) {
      if (const Part* part = Find(row, s)) wanted_[part->row] = true;
    }
  }

  // Drops folders that held only parts.
  void DropEmptyFolders() {
    std::vector<bool> used(into_.folders.size(), false);
    for (const uint32_t folder : into_.folder) used[folder] = true;
    std::vector<uint32_t> number(used.size(), 0);
    uint32_t kept = 0;
    for (size_t i = 0; i < used.size(); ++i) {
      number[i] = kept;
      if (!used[i]) continue;
      if (kept != i) into_.folders[kept] = std::move(into_.folders[i]);
      ++kept;
    }
    into_.folders.resize(kept);
    for (uint32_t& folder : into_.folder) folder = number[folder];
  }

  void CopyRow(uint64_t row) {
    into_.names.append(from_.Name(row));
    into_.name_ends.push_back(into_.names.size());
    into_.folder.push_back(from_.folder[row]);
    into_.bytes.push_back(from_.bytes[row]);
    into_.mtime_ns.push_back(from_.mtime_ns[row]);
    if (!from_.places.empty()) into_.places.push_back(from_.places[row]);
    if (const Skip* skip = FindSkip(from_.skips, row)) {
      into_.skips.push_back(*skip);
      into_.skips.back().row = into_.rows() - 1;
    }
  }

  void AddField(uint64_t bytes, int64_t mtime_ns, uint64_t place) {
    into_.field_bytes.push_back(bytes);
    into_.field_mtime_ns.push_back(mtime_ns);
    if (!from_.places.empty()) into_.places.push_back(place);
  }

  absl::Status TakeImage(uint64_t row) {
    CopyRow(row);
    for (size_t s = 0; s < sidecars_.size(); ++s) {
      const Part* part = Find(row, s);
      const Skip* unusable = part == nullptr ? nullptr : FindSkip(from_.skips, part->row);
      // A file that is not an image may well be a caption.
      if (unusable != nullptr && unusable->reason == SkipReason::kEmpty) unusable = nullptr;
      if (part == nullptr || unusable != nullptr) {
        AddField(kNoPart, 0, 0);
      } else {
        AddField(from_.bytes[part->row], from_.mtime_ns[part->row],
                 from_.places.empty() ? 0 : from_.places[part->row]);
      }
      const bool lost = missing_ == MissingPart::kSkip || missing_ == MissingPart::kKeep;
      const bool skip = unusable != nullptr && lost && FindSkip(from_.skips, row) == nullptr &&
                        (into_.skips.empty() || into_.skips.back().row != into_.rows() - 1);
      if (!skip) continue;
      into_.skips.push_back({into_.rows() - 1, unusable->reason,
                             absl::StrCat("its part ", std::string(from_.Name(part->row)),
                                          unusable->detail.empty() ? "" : ": ", unusable->detail)});
    }
    return absl::OkStatus();
  }

  absl::Status TakeUnpaired(uint64_t row) {
    if (wanted_[row]) return absl::OkStatus();
    if (missing_ == MissingPart::kDrop) {
      ++into_.ignored[NameExtension(from_.Name(row))];
      return absl::OkStatus();
    }
    if (missing_ == MissingPart::kError) {
      return absl::InvalidArgumentError(absl::StrCat(
          EscapeForTerminal(from_.Path(row)), " is a part of no image", std::string(kAnswer)));
    }
    CopyRow(row);
    for (size_t s = 0; s < sidecars_.size(); ++s) AddField(0, 0, 0);
    if (FindSkip(from_.skips, row) == nullptr) {
      into_.skips.push_back({into_.rows() - 1, SkipReason::kUnpaired, "no image has its name"});
    }
    return absl::OkStatus();
  }

  const std::span<const Sidecar> sidecars_;
  const MissingPart missing_;
  const Listing from_;
  Listing into_;
  std::vector<Part> parts_;
  std::vector<bool> is_part_, wanted_;
};

// Removes the fields that some sample lacks from all rows.
void DropIncomplete(Listing& listing) {
  std::vector<bool> drop;
  for (const uint64_t rows : CountGaps(listing)) drop.push_back(rows > 0);
  for (size_t f = 0; f < drop.size(); ++f) {
    if (!drop[f]) continue;
    listing.warnings.push_back(
        absl::StrCat("the part ", EscapeForTerminal(listing.fields[f].name),
                     " is written for no sample, because some lack it; --missing-part keep writes "
                     "it for the others, skip leaves those out"));
  }
  DropFields(drop, listing);
}

void WarnOfGaps(Listing& listing) {
  const std::vector<uint64_t> gaps = CountGaps(listing);
  for (size_t f = 0; f < gaps.size(); ++f) {
    if (gaps[f] == 0) continue;
    listing.warnings.push_back(absl::StrCat(gaps[f], " of ", listing.rows() - listing.skips.size(),
                                            " samples are packed without the part ",
                                            EscapeForTerminal(listing.fields[f].name),
                                            "; some readers want the same fields in all samples: "
                                            "--missing-part skip leaves those out"));
  }
}

}  // namespace

std::string_view MissingPartName(MissingPart missing) {
  static constexpr std::string_view kNames[] = {"skip", "error", "drop", "keep"};
  return kNames[static_cast<size_t>(missing)];
}

bool IsFieldName(std::string_view name) {
  if (name.empty() || name == "image" || name.size() > 64) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

absl::StatusOr<std::vector<Sidecar>> ParseSidecars(std::string_view text) {
  std::vector<Sidecar> sidecars;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
    const size_t colon = item.find(':');
    std::string_view suffix = item.substr(0, colon);
    if (suffix.starts_with('.')) suffix.remove_prefix(1);
    Sidecar sidecar{std::string(suffix),
                    std::string(colon == std::string_view::npos ? suffix : item.substr(colon + 1))};
    if (colon == std::string_view::npos) {
      for (char& c : sidecar.field) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    if (suffix.empty() || suffix.find('/') != std::string_view::npos ||
        suffix.find('\0') != std::string_view::npos || !IsFieldName(sidecar.field)) {
      return absl::InvalidArgumentError(
          "expected extensions, each with the name of its field if that is another one, as in "
          "json,txt,png:mask");
    }
    for (const Sidecar& other : sidecars) {
      if (other.suffix == sidecar.suffix || other.field == sidecar.field) {
        return absl::InvalidArgumentError(
            absl::StrCat("two parts with the extension or field ", sidecar.field));
      }
    }
    sidecars.push_back(std::move(sidecar));
  }
  return sidecars;
}

std::string_view Stem(std::string_view name) {
  return name.substr(0, std::min(name.rfind('.'), name.size()));
}

std::optional<size_t> SidecarOf(std::span<const Sidecar> sidecars, std::string_view name) {
  std::optional<size_t> best;
  for (size_t s = 0; s < sidecars.size(); ++s) {
    const std::string& suffix = sidecars[s].suffix;
    const bool is_it = name.size() > suffix.size() + 1 && name.ends_with(suffix) &&
                       name[name.size() - suffix.size() - 1] == '.';
    if (is_it && (!best || sidecars[*best].suffix.size() < suffix.size())) best = s;
  }
  return best;
}

void DropFields(const std::vector<bool>& drop, Listing& listing) {
  const size_t fields = listing.fields.size();
  const auto keep = [&](auto& column, size_t ahead) {
    size_t at = 0;
    for (size_t i = 0; i < column.size(); ++i) {
      const size_t f = i % (fields + ahead);
      if (f >= ahead && drop[f - ahead]) continue;
      if (at != i) column[at] = std::move(column[i]);
      ++at;
    }
    column.resize(at);
  };
  keep(listing.places, 1);
  keep(listing.field_bytes, 0);
  keep(listing.field_mtime_ns, 0);
  keep(listing.fields, 0);
}

std::vector<uint64_t> CountGaps(const Listing& listing) {
  std::vector<uint64_t> gaps(listing.fields.size(), 0);
  auto skip = listing.skips.begin();
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    if (skip != listing.skips.end() && skip->row == row) {
      ++skip;
      continue;
    }
    for (size_t f = 0; f < gaps.size(); ++f) gaps[f] += listing.HasField(row, f) ? 0 : 1;
  }
  return gaps;
}

absl::Status PairSidecars(std::span<const Sidecar> sidecars, MissingPart missing,
                          Listing& listing) {
  ASSIGN_OR_RETURN(Listing paired, Pairing(sidecars, missing, std::move(listing)).Run());
  listing = std::move(paired);
  return SettleMissingParts(missing, listing);
}

absl::Status SettleMissingParts(MissingPart missing, Listing& listing) {
  const size_t fields = listing.fields.size();
  if (missing == MissingPart::kKeep) {
    WarnOfGaps(listing);
    return absl::OkStatus();
  }
  if (missing == MissingPart::kDrop) DropIncomplete(listing);
  std::vector<std::string> parts;
  for (const ListedField& field : listing.fields) parts.push_back(WhatIsMissing(field.name));
  std::vector<Skip> found;
  auto skip = listing.skips.begin();
  for (uint64_t row = 0; fields > 0 && missing != MissingPart::kDrop && row < listing.rows();
       ++row) {
    if (skip != listing.skips.end() && skip->row == row) {
      ++skip;
      continue;
    }
    const auto begin = listing.field_bytes.begin() + static_cast<ptrdiff_t>(row * fields);
    const auto gap = std::find(begin, begin + static_cast<ptrdiff_t>(fields), kNoPart);
    if (gap == begin + static_cast<ptrdiff_t>(fields)) continue;
    const std::string& part = parts[static_cast<size_t>(gap - begin)];
    if (missing == MissingPart::kError) {
      return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(listing.Path(row)),
                                                     " lacks its part ", EscapeForTerminal(part),
                                                     std::string(kAnswer)));
    }
    found.push_back({row, SkipReason::kUnpaired, absl::StrCat("it lacks its part ", part)});
  }
  listing.skips.insert(listing.skips.end(), found.begin(), found.end());
  std::sort(listing.skips.begin(), listing.skips.end(),
            [](const Skip& a, const Skip& b) { return a.row < b.row; });
  // So that sums over sizes stay correct: skipped rows have no parts.
  std::replace(listing.field_bytes.begin(), listing.field_bytes.end(), kNoPart, uint64_t{0});
  return absl::OkStatus();
}

}  // namespace shardpack
