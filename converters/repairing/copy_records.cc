#include "converters/repairing/copy_records.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "converters/planning/record_order.h"
#include "converters/publishing/commit.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxOrderBytes = uint64_t{4} << 32;

}  // namespace

absl::StatusOr<std::vector<RecordPlace>> CopyRecords::InOrder() {
  std::vector<RecordPlace> places;
  const Manifest& manifest = copy_.manifest();
  indexes_.clear();
  for (uint32_t shard = 0; shard < manifest.shards.size(); ++shard) {
    ASSIGN_OR_RETURN(const ShardIndex* index, copy_.index(shard));
    if (index == nullptr) {
      return absl::DataLossError(
          absl::StrCat(EscapeForTerminal(copy_.path()), " has a damaged index itself"));
    }
    indexes_.push_back(index);
    for (uint64_t record = 0; record < manifest.shards[shard].records; ++record)
      places.push_back({shard, record});
  }
  for (const FileEntry& file : manifest.files) {
    if (file.name != kRecordOrderName) continue;
    ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(copy_.PathOf(file.name), kMaxOrderBytes));
    if (Xxh3_128(AsBytes(bytes)) != file.xxh3_128)
      return absl::DataLossError("its order.u32 is damaged");
    ASSIGN_OR_RETURN(std::vector<uint32_t> order, ParseRecordOrder(bytes, places.size()));
    std::vector<RecordPlace> sorted(places.size());
    for (size_t i = 0; i < places.size(); ++i) sorted[order[i]] = places[i];
    return sorted;
  }
  return places;
}

}  // namespace shardpack
