#include "converters/testing/memory_source.h"

#include <cstring>
#include <new>

#include "absl/strings/str_format.h"
#include "formats/testing/sample_generator.h"

namespace shardpack::testing {

MemorySource::MemorySource(size_t images, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < images; ++i) {
    images_.push_back(MakeTinyJpeg(1 + static_cast<uint32_t>(random.Below(24)),
                                   1 + static_cast<uint32_t>(random.Below(24)), random));
  }
}

absl::StatusOr<Listing> MemorySource::List() {
  Listing listing;
  listing.root = "/memory";
  for (int32_t c = 0; c < kClasses; ++c) {
    listing.folders.push_back(absl::StrFormat("class%d", c));
    listing.classes.push_back(listing.folders.back());
  }
  for (size_t row = 0; row < images_.size(); ++row) {
    const auto label = static_cast<int32_t>(row * kClasses / images_.size());
    listing.folder.push_back(static_cast<uint32_t>(label));
    listing.names += absl::StrFormat("%06d.jpg", row);
    listing.name_ends.push_back(listing.names.size());
    listing.bytes.push_back(images_[row].size());
    listing.mtime_ns.push_back(1000);
    listing.label.push_back(label);
  }
  return listing;
}

LoadResult MemorySource::Load(const Listing&, uint64_t row, Arena& arena) const {
  ++loads_;
  if (on_load_) on_load_(row);
  if (const auto failing = failing_.find(row); failing != failing_.end()) return failing->second;
  const std::span<std::byte> copy = arena.Allocate(images_[row].size());
  std::memcpy(copy.data(), images_[row].data(), copy.size());
  auto* field = new (arena.Allocate(sizeof(FieldView)).data()) FieldView{kImageField, copy};
  return LoadedSample{std::span<const FieldView>(field, 1)};
}

}  // namespace shardpack::testing
