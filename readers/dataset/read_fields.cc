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
#include "readers/dataset/scattered_read.h"

namespace shardpack {
namespace {

// A system call costs as much as copying a few pages, so that small fields gain from being read
// together with the bytes between them, and large ones do not.
constexpr uint64_t kMaxGapBytes = 4 << 10, kMaxFieldBytes = 64 << 10;

// A field's place; nullptr instead of the index if ReadField would refuse it.
struct Place {
  const ShardIndex* index = nullptr;
  uint64_t offset = 0;
};

Place PlaceOf(const Dataset& dataset, const FieldRead& read) {
  const absl::StatusOr<const ShardIndex*> index = dataset.BorrowIndex(read.at.shard);
  if (!index.ok() || read.at.record >= (*index)->records() || read.field >= (*index)->fields())
    return {};
  const Extent extent = (*index)->field(read.at.record, read.field);
  if (extent.length != read.into.size() || extent.length > kMaxFieldBytes) return {};
  return {*index, extent.offset};
}

// Reads the first fields that one call can get, at least one, and returns how many they are. Only
// those whose status becomes true are as they were packed.
size_t ReadNeighbours(const Dataset& dataset, std::span<const FieldRead> fields,
                      std::span<bool> verified) {
  const Place first = PlaceOf(dataset, fields[0]);
  if (first.index == nullptr) return 1;
  ScatteredRead read(kMaxGapBytes);
  size_t count = 0;
  for (Place place = first; place.index != nullptr && read.Add(place.offset, fields[count].into);) {
    if (++count == fields.size() || fields[count].at.shard != fields[0].at.shard) break;
    place = PlaceOf(dataset, fields[count]);
  }
  if (count == 1) return 1;
  const absl::StatusOr<std::shared_ptr<const File>> file = dataset.OpenFile(fields[0].at.shard);
  if (!file.ok() || !(*file)->ReadExactlyAt(read.offset(), read.parts()).ok()) return count;
  for (size_t i = 0; i < count; ++i)
    verified[i] =
        Xxh3_64(fields[i].into) == first.index->hash(fields[i].at.record, fields[i].field);
  return count;
}

}  // namespace

std::vector<absl::Status> Dataset::ReadFields(std::span<const FieldRead> fields) const {
  std::vector<absl::Status> statuses(fields.size());
  const auto verified = std::make_unique<bool[]>(fields.size());
  for (size_t begin = 0; begin < fields.size();) {
    const std::span<const FieldRead> rest = fields.subspan(begin);
    begin += ReadNeighbours(*this, rest, {verified.get() + begin, rest.size()});
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldRead& field = fields[i];
    // Reading it alone tries again, and says what is wrong.
    if (!verified[i]) statuses[i] = ReadField(field.at, field.field, field.into);
  }
  return statuses;
}

}  // namespace shardpack
