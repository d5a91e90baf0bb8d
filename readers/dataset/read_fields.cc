#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "readers/dataset/dataset.h"

namespace shardpack {
namespace {

// A system call costs as much as copying a few pages, so that small fields gain from being read
// together with what lies between them, and large ones do not.
constexpr uint64_t kMaxGapBytes = 4 << 10, kMaxFieldBytes = 64 << 10;
constexpr size_t kMaxGroupFields = 64;

// A field's place; nullptr instead of the index if ReadField would refuse it.
struct Place {
  const ShardIndex* index = nullptr;
  Extent extent;
};

Place PlaceOf(const Dataset& dataset, const FieldRead& read) {
  const absl::StatusOr<const ShardIndex*> index = dataset.BorrowIndex(read.at.shard);
  if (!index.ok() || read.at.record >= (*index)->records() || read.field >= (*index)->fields())
    return {};
  const Extent extent = (*index)->field(read.at.record, read.field);
  if (extent.length != read.into.size() || extent.length > kMaxFieldBytes) return {};
  return {*index, extent};
}

// The places of the first fields that one read can get.
size_t FindGroup(const Dataset& dataset, std::span<const FieldRead> fields,
                 std::span<Place> places) {
  places[0] = PlaceOf(dataset, fields[0]);
  if (places[0].index == nullptr) return 1;
  uint64_t reached = places[0].extent.offset + places[0].extent.length;
  size_t count = 1;
  for (; count < fields.size() && count < places.size(); ++count) {
    if (fields[count].at.shard != fields[0].at.shard) break;
    const Place place = PlaceOf(dataset, fields[count]);
    if (place.index == nullptr || place.extent.offset < reached ||
        place.extent.offset - reached > kMaxGapBytes) {
      break;
    }
    places[count] = place;
    reached = place.extent.offset + place.extent.length;
  }
  return count;
}

bool ReadGroup(const Dataset& dataset, std::span<const FieldRead> fields,
               std::span<const Place> places) {
  const absl::StatusOr<std::shared_ptr<const File>> file = dataset.OpenFile(fields[0].at.shard);
  if (!file.ok()) return false;
  std::array<std::byte, kMaxGapBytes> gap;
  std::array<iovec, 2 * kMaxGroupFields> parts;
  size_t count = 0;
  uint64_t reached = places[0].extent.offset;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Extent& extent = places[i].extent;
    if (extent.offset > reached) parts[count++] = {gap.data(), extent.offset - reached};
    parts[count++] = {fields[i].into.data(), extent.length};
    reached = extent.offset + extent.length;
  }
  return (*file)->ReadExactlyAt(places[0].extent.offset, std::span(parts).first(count)).ok();
}

}  // namespace

std::vector<absl::Status> Dataset::ReadFields(std::span<const FieldRead> fields) const {
  std::vector<absl::Status> statuses(fields.size());
  std::array<Place, kMaxGroupFields> places;
  for (size_t begin = 0; begin < fields.size();) {
    const size_t count = FindGroup(*this, fields.subspan(begin), places);
    const bool read = count > 1 && ReadGroup(*this, fields.subspan(begin, count), places);
    for (size_t i = 0; i < count; ++i, ++begin) {
      const FieldRead& field = fields[begin];
      const bool verified =
          read && Xxh3_64(field.into) == places[i].index->hash(field.at.record, field.field);
      // Reading it alone tries again, and says what is wrong.
      if (!verified) statuses[begin] = ReadField(field.at, field.field, field.into);
    }
  }
  return statuses;
}

}  // namespace shardpack
