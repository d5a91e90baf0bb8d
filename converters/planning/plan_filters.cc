#include "converters/planning/plan_filters.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/planning/seeded_shuffle.h"
#include "formats/io/file.h"

namespace shardpack {

FilteredRows UsableRows(const Listing& listing) {
  FilteredRows result;
  result.rows.reserve(listing.rows() - listing.skips.size());
  auto skip = listing.skips.begin();
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    if (skip != listing.skips.end() && skip->row == row) {
      ++skip;
    } else {
      result.rows.push_back(static_cast<uint32_t>(row));
    }
  }
  return result;
}

void FilterByImage(const Listing& listing, const PlanOptions& options, FilteredRows& rows) {
  if (options.min_side == 0 && options.max_aspect == 0) return;
  rows.filtered += std::erase_if(rows.rows, [&](uint32_t row) {
    const ImageInfo& image = listing.images[row];
    const auto [shorter, longer] = std::minmax(image.width, image.height);
    return shorter < options.min_side ||
           (options.max_aspect > 0 && longer > options.max_aspect * shorter);
  });
}

namespace {

constexpr size_t kNamedConflicts = 20;

// Equal size and equal 64-bit hash; the first row in the listing is the original.
std::vector<Copy> FindCopies(const Listing& listing, std::vector<uint32_t> rows) {
  const auto content = [&](uint32_t row) {
    return std::pair(listing.content_hash[row], listing.bytes[row]);
  };
  tbb::parallel_sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(content(a), a) < std::pair(content(b), b);
  });
  std::vector<Copy> copies;
  uint32_t original = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || content(rows[i]) != content(original)) {
      original = rows[i];
    } else {
      copies.push_back({rows[i], original});
    }
  }
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.row < b.row; });
  return copies;
}

std::string Labelled(const Listing& listing, uint32_t row) {
  const int32_t label = listing.label[row];
  return absl::StrCat(
      EscapeForTerminal(listing.Path(row)), " (",
      label < 0 ? "no label" : EscapeForTerminal(listing.classes[static_cast<size_t>(label)]), ")");
}

// The same image under two labels: one of them is wrong.
std::string DescribeConflicts(const Listing& listing, const std::vector<Copy>& copies) {
  std::string named;
  uint64_t conflicts = 0;
  for (const Copy& copy : copies) {
    if (listing.label[copy.row] == listing.label[copy.original]) continue;
    if (++conflicts <= kNamedConflicts) {
      absl::StrAppend(&named, "\n  ", Labelled(listing, copy.row), " is ",
                      Labelled(listing, copy.original));
    }
  }
  if (conflicts == 0) return "";
  return absl::StrCat("; ", conflicts, conflicts == 1 ? " has" : " have", " another label:", named,
                      conflicts > kNamedConflicts ? "\n  ..." : "");
}

// "; 2 lie in another split, the first is val/1.jpg of train/1.jpg", for the copies that differ.
template <typename Differ>
std::string DescribeOthers(const Listing& listing, const std::vector<Copy>& copies,
                           std::string_view one, std::string_view many, Differ differ) {
  uint64_t count = 0;
  const Copy* first = nullptr;
  for (const Copy& copy : copies) {
    if (differ(copy.row, copy.original) && count++ == 0) first = &copy;
  }
  if (count == 0) return "";
  return absl::StrCat("; ", count, " ", std::string(count == 1 ? one : many), ", the first is ",
                      EscapeForTerminal(listing.Path(first->row)), " of ",
                      EscapeForTerminal(listing.Path(first->original)));
}

// The same image in two splits, as far as the source defines them, spoils the test data.
std::string DescribeLeaks(const Listing& listing, const PlanOptions& options,
                          const std::vector<Copy>& copies) {
  const bool by_folder = listing.split_by_folder || options.split_by == SplitBy::kDir;
  if (listing.splits.empty() && !by_folder) return "";
  const auto top = [&](uint32_t row) {
    const std::string_view folder = listing.folders[listing.folder[row]];
    return folder.substr(0, folder.find('/'));
  };
  return DescribeOthers(
      listing, copies, "lies in another split", "lie in other splits", [&](uint32_t a, uint32_t b) {
        return listing.splits.empty() ? top(a) != top(b) : listing.split[a] != listing.split[b];
      });
}

std::string DescribeOtherFields(const Listing& listing, const std::vector<Copy>& copies) {
  if (listing.fields_hash.empty()) return "";
  return DescribeOthers(
      listing, copies, "has other fields", "have other fields",
      [&](uint32_t a, uint32_t b) { return listing.fields_hash[a] != listing.fields_hash[b]; });
}

}  // namespace

void FilterCopies(const Listing& listing, const PlanOptions& options, FilteredRows& rows) {
  if (options.dedupe == Dedupe::kOff) return;
  const std::vector<Copy> copies = FindCopies(listing, rows.rows);
  if (copies.empty()) return;
  const bool drop = options.dedupe == Dedupe::kDrop;
  rows.notes.push_back(absl::StrCat(
      copies.size(), copies.size() == 1 ? " input is a copy" : " inputs are copies",
      " of earlier ones, the first is ", EscapeForTerminal(listing.Path(copies[0].row)), " of ",
      EscapeForTerminal(listing.Path(copies[0].original)),
      drop ? "; left out and listed in skipped.jsonl, --dedupe report packs them"
           : "; --dedupe drop leaves them out",
      DescribeLeaks(listing, options, copies), DescribeOtherFields(listing, copies),
      DescribeConflicts(listing, copies)));
  if (!drop) return;
  auto next = copies.begin();
  rows.filtered += std::erase_if(rows.rows, [&](uint32_t row) {
    if (next == copies.end() || next->row != row) return false;
    ++next;
    return true;
  });
}

std::vector<Copy> Plan::DroppedCopies() const {
  if (slices_) return copies_;
  if (options_.dedupe != Dedupe::kDrop) return {};
  FilteredRows rows = UsableRows(listing_);
  auto skip = skips_.begin();
  std::erase_if(rows.rows, [&](uint32_t row) {
    while (skip != skips_.end() && skip->row < row) ++skip;
    const bool skipped = skip != skips_.end() && skip->row == row;
    return skipped &&
           skip->reason == SkipReason::kTooLarge;  // known before copies are searched for
  });
  FilterByImage(listing_, options_, rows);
  return FindCopies(listing_, std::move(rows.rows));
}

void FilterByLimit(const PlanOptions& options, FilteredRows& rows) {
  if (options.limit == 0 || rows.rows.size() <= options.limit) return;
  rows.filtered += rows.rows.size() - options.limit;
  if (options.shuffle) {
    // The first rows of a listing would all belong to one class.
    SeededRandom(options.seed, RandomStream::kLimit).Shuffle(std::span(rows.rows));
    rows.rows.resize(options.limit);
    std::sort(rows.rows.begin(), rows.rows.end());
  }
  rows.rows.resize(options.limit);
}

}  // namespace shardpack
