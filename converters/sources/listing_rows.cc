#include "converters/sources/listing_rows.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace shardpack {
namespace {

template <typename T>
std::vector<T> Permuted(const std::vector<T>& column, const std::vector<uint64_t>& from,
                        size_t width) {
  std::vector<T> permuted;
  permuted.reserve(column.empty() ? 0 : from.size() * width);
  for (const uint64_t row : from) {
    for (size_t i = 0; i < width && !column.empty(); ++i)
      permuted.push_back(column[row * width + i]);
  }
  return permuted;
}

void PermuteTexts(std::string& texts, std::vector<uint64_t>& ends,
                  const std::vector<uint64_t>& from) {
  if (ends.empty()) return;
  std::string permuted;
  permuted.reserve(texts.size());
  std::vector<uint64_t> new_ends;
  new_ends.reserve(from.size());
  for (const uint64_t row : from) {
    const uint64_t begin = row == 0 ? 0 : ends[row - 1];
    permuted.append(texts, begin, ends[row] - begin);
    new_ends.push_back(permuted.size());
  }
  texts = std::move(permuted);
  ends = std::move(new_ends);
}

}  // namespace

void TakeRows(const std::vector<uint64_t>& from, Listing& listing) {
  constexpr uint64_t kGone = std::numeric_limits<uint64_t>::max();
  const size_t fields = listing.fields.size(), width = 1 + fields;
  std::vector<uint64_t> row_of(listing.skips.empty() ? 0 : listing.rows(), kGone);
  for (uint64_t row = 0; row < from.size() && !row_of.empty(); ++row) row_of[from[row]] = row;
  std::vector<Skip> skips;
  for (Skip& skip : listing.skips) {
    skip.row = row_of[skip.row];
    if (skip.row != kGone) skips.push_back(std::move(skip));
  }
  std::sort(skips.begin(), skips.end(), [](const Skip& a, const Skip& b) { return a.row < b.row; });
  listing.skips = std::move(skips);
  std::vector<uint64_t> places(from.size() * width, 0);
  for (uint64_t row = 0; row < from.size(); ++row)
    places[row * width] = listing.places.empty() ? from[row] : listing.places[from[row] * width];
  listing.places = std::move(places);
  PermuteTexts(listing.names.own(), listing.name_ends.own(), from);
  PermuteTexts(listing.keys.own(), listing.key_ends.own(), from);
  listing.folder = Permuted(listing.folder.own(), from, 1);
  listing.bytes = Permuted(listing.bytes.own(), from, 1);
  listing.field_bytes = Permuted(listing.field_bytes.own(), from, fields);
  listing.label = Permuted(listing.label.own(), from, 1);
  listing.split = Permuted(listing.split.own(), from, 1);
}

}  // namespace shardpack
