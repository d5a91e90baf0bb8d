// CopyRecords: the records of the dataset, as a copy lists them.
//
//   CopyRecords copy(*source.copy);
//   ASSIGN_OR_RETURN(std::vector<RecordPlace> order, copy.InOrder());   // of the plan
//   std::optional<RepairRow> row = copy.Row(order[0]);
//
// Used only by repair*.cc.
//
// Lifetime: borrows the copy.
// Thread-safety: const from any thread.
// Errors: DataLoss if an index of the copy is missing or damaged; I/O.
#ifndef SHARDPACK_CONVERTERS_REPAIRING_COPY_RECORDS_H_
#define SHARDPACK_CONVERTERS_REPAIRING_COPY_RECORDS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/repairing/dataset_copy.h"
#include "converters/repairing/repair_rows.h"

namespace shardpack {

struct RecordPlace {
  uint32_t shard = 0;
  uint64_t record = 0;
};

class CopyRecords {
 public:
  explicit CopyRecords(const DatasetCopy& copy)
      : copy_(copy), made_json_(copy.manifest().options.contains("with-json")) {}

  // All records, in the order of the copy's plan. The other methods take positions from this one.
  absl::StatusOr<std::vector<RecordPlace>> InOrder();

  const ShardIndex& index(RecordPlace at) const { return *indexes_[at.shard]; }
  std::string_view key(RecordPlace at) const { return index(at).key(at.record); }
  // nullopt if the record has no image.
  std::optional<RepairRow> Row(RecordPlace at) const {
    return RowOf(index(at), at.record, made_json_);
  }

 private:
  const DatasetCopy& copy_;
  const bool made_json_;
  std::vector<const ShardIndex*> indexes_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_COPY_RECORDS_H_
