#include "converters/listing/made_fields.h"

#include "formats/io/hash.h"

namespace shardpack {
namespace {

// Appends the values of `added` to each row of `column`.
template <typename T>
std::vector<T> Widened(const std::vector<T>& column, size_t width, const std::vector<T>& added,
                       size_t added_width, uint64_t rows) {
  std::vector<T> wide;
  wide.reserve(rows * (width + added_width));
  for (uint64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < width; ++i)
      wide.push_back(column.empty() ? T{} : column[row * width + i]);
    for (size_t i = 0; i < added_width; ++i)
      wide.push_back(added.empty() ? T{} : added[row * added_width + i]);
  }
  return wide;
}

}  // namespace

void MadeFields::Add(std::string_view bytes) {
  places_.push_back(bytes_.size());
  sizes_.push_back(bytes.size());
  bytes_.append(bytes);
}

void MadeFields::AddMissing() {
  places_.push_back(bytes_.size());
  sizes_.push_back(kNoPart);
}

void MadeFields::AppendTo(Listing& listing) const {
  if (empty()) return;
  const uint64_t rows = listing.rows();
  const size_t fields = listing.fields.size(), made = names_.size();
  listing.field_bytes = Widened(listing.field_bytes.own(), fields, sizes_, made, rows);
  listing.field_mtime_ns = Widened(listing.field_mtime_ns.own(), fields, {}, made, rows);
  listing.places = Widened(listing.places.own(), 1 + fields, places_, made, rows);
  for (const std::string& name : names_) listing.fields.push_back({name, ""});
  listing.content_digest = Xxh3_128(AsBytes(bytes_));
}

std::optional<Bytes> MadeFields::Get(uint64_t place, uint64_t bytes) const {
  if (place > bytes_.size() || bytes > bytes_.size() - place) return std::nullopt;
  return AsBytes(std::string_view(bytes_).substr(place, bytes));
}

}  // namespace shardpack
