#include "converters/plan_filters.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/seeded_shuffle.h"
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

void FilterCopies(const Listing& listing, const PlanOptions& options, FilteredRows& rows) {
  if (options.dedupe == Dedupe::kOff) return;
  // Equal size and equal 64-bit hash; the first of the listing is the original.
  std::vector<uint32_t> by_content = rows.rows;
  const auto content = [&](uint32_t row) {
    return std::pair(listing.content_hash[row], listing.bytes[row]);
  };
  tbb::parallel_sort(by_content.begin(), by_content.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(content(a), a) < std::pair(content(b), b);
  });
  std::vector<std::pair<uint32_t, uint32_t>> copies;  // copy, original
  uint64_t labels_differ = 0;
  uint32_t original = 0;
  for (size_t i = 0; i < by_content.size(); ++i) {
    if (i == 0 || content(by_content[i]) != content(original)) {
      original = by_content[i];
      continue;
    }
    copies.emplace_back(by_content[i], original);
    labels_differ += listing.label[by_content[i]] != listing.label[original];
  }
  if (copies.empty()) return;
  std::sort(copies.begin(), copies.end());
  const bool drop = options.dedupe == Dedupe::kDrop;
  rows.notes.push_back(absl::StrCat(
      copies.size(), copies.size() == 1 ? " input is a copy" : " inputs are copies",
      " of earlier ones",
      labels_differ == 0 ? "" : absl::StrCat(" (", labels_differ, " with another label)"),
      ", the first is ", EscapeForTerminal(listing.Path(copies[0].first)), " of ",
      EscapeForTerminal(listing.Path(copies[0].second)),
      drop ? "; left out, --dedupe report packs them" : "; --dedupe drop leaves them out"));
  if (!drop) return;
  auto next = copies.begin();
  rows.filtered += std::erase_if(rows.rows, [&](uint32_t row) {
    if (next == copies.end() || next->first != row) return false;
    ++next;
    return true;
  });
}

void FilterByLimit(const PlanOptions& options, FilteredRows& rows) {
  if (options.limit == 0 || rows.rows.size() <= options.limit) return;
  rows.filtered += rows.rows.size() - options.limit;
  if (options.shuffle) {
    // The first rows of a listing would all be of one class.
    SeededRandom(options.seed, RandomStream::kLimit).Shuffle(std::span(rows.rows));
    rows.rows.resize(options.limit);
    std::sort(rows.rows.begin(), rows.rows.end());
  }
  rows.rows.resize(options.limit);
}

}  // namespace shardpack
