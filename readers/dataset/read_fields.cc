#include <algorithm>
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
#include "readers/dataset/mapped_shard.h"
#include "readers/dataset/scattered_read.h"
#include "readers/dataset/warm_shards.h"

namespace shardpack {
namespace {

// A system call costs as much as copying a few pages, so that small fields gain from being read
// together with the bytes between them, and large ones do not.
constexpr uint64_t kMaxGapBytes = 4 << 10, kMaxFieldBytes = 64 << 10;
// That are copied from a mapping between two looks at the clock.
constexpr size_t kMaxCopied = 64;
constexpr uint64_t kMaxCopiedBytes = 128 << 10;

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

// Copies the first fields, at least one, out of a mapped shard, and returns how many they are; all
// are of this shard. Only those whose status becomes true are as they were packed.
size_t CopyMapped(const Dataset& dataset, const WarmShard& warm, const MappedShard& shard,
                  std::span<const FieldRead> fields, std::span<bool> verified) {
  std::array<MappedField, kMaxCopied> copies;
  uint64_t bytes = 0;
  size_t count = 0;
  for (; count < std::min(fields.size(), copies.size()) && bytes < kMaxCopiedBytes; ++count) {
    const FieldRead& field = fields[count];
    const Place place = PlaceOf(dataset, field);
    if (place.index == nullptr) break;
    copies[count] = {place.offset, field.into, place.index->hash(field.at.record, field.field)};
    bytes += field.into.size();
    verified[count] = true;
  }
  if (count == 0) return 1;
  const bool slow = CopyFields(
      shard, count, true, [&](size_t i) { return copies[i]; },
      [&](size_t i) { verified[i] = false; });
  if (!slow) return count;
  const absl::StatusOr<std::shared_ptr<const File>> file = dataset.OpenFile(fields[0].at.shard);
  if (file.ok()) warm.LookAgain(**file);
  return count;
}

// Reads the first fields that one call can get, at least one, and returns how many they are; all
// are of one shard. Only those whose status becomes true are as they were packed.
size_t ReadNeighbours(const Dataset& dataset, const WarmShard* warm,
                      std::span<const FieldRead> fields, std::span<bool> verified) {
  const Place first = PlaceOf(dataset, fields[0]);
  if (first.index == nullptr) return 1;
  ScatteredRead read(kMaxGapBytes);
  size_t count = 0;
  for (Place place = first; place.index != nullptr && read.Add(place.offset, fields[count].into);) {
    if (++count == fields.size()) break;
    place = PlaceOf(dataset, fields[count]);
  }
  if (count == 1 && warm == nullptr) return 1;
  const absl::StatusOr<std::shared_ptr<const File>> file = dataset.OpenFile(fields[0].at.shard);
  if (!file.ok()) return count;
  bool done = false;
  if (warm != nullptr) {
    done = (*file)->ReadCachedAt(read.offset(), read.parts());
    warm->RecordRead(**file, done);
  }
  if (!done && !(*file)->ReadExactlyAt(read.offset(), read.parts()).ok()) return count;
  for (size_t i = 0; i < count; ++i)
    verified[i] =
        Xxh3_64(fields[i].into) == first.index->hash(fields[i].at.record, fields[i].field);
  return count;
}

}  // namespace

std::vector<absl::Status> Dataset::ReadFields(std::span<const FieldRead> fields,
                                              bool map_warm_shards) const {
  std::vector<absl::Status> statuses(fields.size());
  const auto verified = std::make_unique<bool[]>(fields.size());
  for (size_t begin = 0, end = 0; begin < fields.size();) {
    const uint32_t shard = fields[begin].at.shard;
    while (end < fields.size() && fields[end].at.shard == shard) ++end;
    const std::span<const FieldRead> rest = fields.subspan(begin, end - begin);
    const std::span<bool> of_rest(verified.get() + begin, rest.size());
    const WarmShard* const warm =
        map_warm_shards && shard < shards().size() ? &Warm(shard) : nullptr;
    const std::shared_ptr<const MappedShard> mapped = warm == nullptr ? nullptr : warm->Get();
    begin += mapped == nullptr ? ReadNeighbours(*this, warm, rest, of_rest)
                               : CopyMapped(*this, *warm, *mapped, rest, of_rest);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldRead& field = fields[i];
    // Reading it alone tries again, and says what is wrong.
    if (!verified[i]) statuses[i] = ReadField(field.at, field.field, field.into);
  }
  return statuses;
}

}  // namespace shardpack
