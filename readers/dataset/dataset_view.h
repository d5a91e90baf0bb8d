// DatasetView: every sample of a dataset as a view of its bytes in the mapped shards: no copies, no
// system calls, no hash checks.
//
//   absl::StatusOr<DatasetView> view = DatasetView::Open(dataset, "image");
//   Bytes jpeg = view->bytes(id);
//
// For programs that look at more samples than they use, or that check hash() themselves. Shard
// sizes are checked when the shards are mapped; if another program truncates a shard later, this
// process dies of SIGBUS. Fetcher and Loader avoid that risk.
//
// Lifetime: views are valid as long as one copy of this object exists.
// Thread-safety: const, any thread.
// Errors: those of opening; DataLoss for a shard whose size differs from its index; InvalidArgument
// for an unknown field.
// Units: bytes.
#ifndef SHARDPACK_READERS_DATASET_DATASET_VIEW_H_
#define SHARDPACK_READERS_DATASET_DATASET_VIEW_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

class DatasetView {
 public:
  // Maps all shards and verifies all indexes.
  static absl::StatusOr<DatasetView> Open(Dataset dataset, std::string field);

  uint64_t size() const;
  // Ids must be below size().
  Bytes bytes(uint64_t id) const;    // data() == nullptr if the sample lacks the field
  uint64_t hash(uint64_t id) const;  // the expected XXH3-64 of bytes(id)
  int64_t label(uint64_t id) const;
  std::string_view key(uint64_t id) const;

 private:
  struct State;
  explicit DatasetView(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_DATASET_VIEW_H_
