// ShardTable: maps a sample's id to the extents of the fields that a reader wants.
//
//   ShardTable table(dataset, {"image", "json"});
//   SampleLocation at = table.dataset().Locate(id);
//   absl::StatusOr<const ShardTable::Shard*> shard = table.Get(at.shard);   // opens the index once
//
// Lifetime: keeps a copy of the dataset.
// Thread-safety: const, any thread.
// Errors: those of Dataset::BorrowIndex.
// Units: ids over all shards, from 0.
#ifndef SHARDPACK_READERS_DATASET_SHARD_TABLE_H_
#define SHARDPACK_READERS_DATASET_SHARD_TABLE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/io/error_facts.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

class ShardTable {
 public:
  static constexpr size_t kNoColumn = ~size_t{0};
  struct Shard {
    const ShardIndex* index = nullptr;
    std::vector<size_t> columns;  // the index column of each wanted field, or kNoColumn
  };

  ShardTable(Dataset dataset, std::vector<std::string> fields);

  const Dataset& dataset() const { return dataset_; }
  const std::vector<std::string>& fields() const { return fields_; }
  // Valid as long as this object.
  absl::StatusOr<const Shard*> Get(uint32_t shard) const;
  // "train-000000.tar record 7 key cat/1", for messages.
  std::string Describe(uint64_t id) const;
  // The same as values, with the path of the shard's file.
  ErrorFacts Facts(uint64_t id) const;
  // InvalidArgument for a field that no shard has. Cost: opens shards until all fields are found.
  absl::Status CheckFields() const;

 private:
  const Dataset dataset_;
  const std::vector<std::string> fields_;
  mutable std::vector<std::atomic<const Shard*>> open_;
  mutable std::mutex mutex_;
  mutable std::deque<Shard> shards_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_SHARD_TABLE_H_
