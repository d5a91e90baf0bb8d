// DatasetView: every sample of a dataset as a view of its bytes in the mapped shards: no copy, no
// system call, no check of hashes.
//
//   absl::StatusOr<DatasetView> view = DatasetView::Open(dataset, "image");
//   Bytes jpeg = view->bytes(id);
//
// For programs that look at more samples than they use, or hash themselves (hash()). Sizes of the
// shards are checked when they are mapped; a shard that another program cuts short afterwards ends
// this process with SIGBUS, which Fetcher and Loader do not risk for shards.
//
// Lifetime: views live as long as one copy of this object.
// Thread-safety: const, any thread.
// Errors: those of opening; DataLoss for a shard that has not the size of its index;
// InvalidArgument for an unknown field.
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
  Bytes bytes(uint64_t id) const;    // data() == nullptr where the sample has no such field
  uint64_t hash(uint64_t id) const;  // XXH3-64 that bytes(id) should have
  int64_t label(uint64_t id) const;
  std::string_view key(uint64_t id) const;

 private:
  struct State;
  explicit DatasetView(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_DATASET_VIEW_H_
