// Dataset: a packed dataset, or shards of other tools, as numbered samples that are read with their
// hashes checked.
//
//   absl::StatusOr<Dataset> dataset = Dataset::Open("OUT");
//   absl::StatusOr<OwnedSample> sample = dataset->Read(7);   // the eighth, in the manifest's order
//   absl::StatusOr<uint64_t> id = dataset->FindKey("cat/1");
//
// A dataset is opened through its manifest: sizes are checked, an index is verified when it is
// first needed. Foreign shards are scanned whole, by one of the formats given. Shard bytes come by
// positioned reads, never through a mapping: a shard cut short meanwhile is an error, not a signal.
//
// Lifetime: a copy shares everything; the formats must outlive it (they are static).
// Thread-safety: const, any thread.
// Errors: NotFound, InvalidArgument for a path that is no dataset (Open); OutOfRange for an id or
// shard beyond the end; DataLoss for damage, naming shard, key and offset; Unimplemented for a
// container that has no extents; Status of I/O.
// Units: bytes from the start of the shard; an id is a sample's number over all shards, from 0.
#ifndef SHARDPACK_READERS_DATASET_DATASET_H_
#define SHARDPACK_READERS_DATASET_DATASET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/core/format.h"
#include "formats/core/image_info.h"
#include "formats/core/manifest.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"

namespace shardpack {

// A sample that owns its bytes.
struct OwnedSample {
  struct Field {
    std::string name;  // kImageField, or as in the index
    std::string bytes;
  };
  std::string key, source_path;
  int64_t label = -1;  // kNoLabel when there is none
  ImageInfo image;     // unknown for foreign shards
  std::vector<Field> fields;
};

struct DatasetShard {
  std::string name, split;  // a foreign shard has no split
  std::string data_path;    // the file that extents count in
  uint64_t bytes = 0, records = 0;
  uint64_t first_id = 0;
};

struct SampleLocation {
  uint32_t shard = 0;
  uint64_t record = 0;
};

// What is known of foreign shards from elsewhere.
struct ForeignLabels {
  std::vector<std::string> classes;  // names of the labels 0, 1, ...; empty: there are none
  std::vector<std::string> splits;   // one a shard; or empty: they have none
};

class Dataset {
 public:
  // A folder with a manifest; or one foreign shard, in the first of `foreign` that takes it. Cost:
  // one stat a shard, or one read of the foreign shard. DataLoss also for a folder whose build has
  // not finished.
  static absl::StatusOr<Dataset> Open(const std::string& path,
                                      std::span<const Format* const> foreign = {});
  // Foreign shards, in this order.
  static absl::StatusOr<Dataset> OpenShards(std::span<const std::string> paths,
                                            std::span<const Format* const> foreign,
                                            const ForeignLabels& labels = {});

  // The samples of several datasets as one, numbered one dataset after the other in this order:
  // what an Order mixes by its MixtureParts. Indexes are shared. InvalidArgument when their classes
  // differ, for a label would have two meanings.
  static absl::StatusOr<Dataset> Join(std::span<const Dataset> parts);

  // Views and references into this object are valid as long as one copy of it is.
  std::span<const DatasetShard> shards() const;
  uint64_t size() const;                         // samples in all
  uint64_t size(std::string_view split) const;   // 0 for a split that is not there
  std::span<const std::string> classes() const;  // empty for foreign shards
  const std::string& format() const;             // its name; of joined datasets, all of them
  // Of foreign shards and joined datasets: over the shards' names, sizes and hashes, as if they had
  // a manifest.
  Digest identity() const;
  // Names of values in foreign shards that are no field of a sample, such as TFRecord's numbers and
  // lists; the first of many.
  std::span<const std::string> left_out() const;
  // What is odd about the labels of foreign shards, a sentence each; the first of many.
  std::span<const std::string> warnings() const;
  // nullptr for foreign shards and joined datasets.
  const Manifest* manifest() const;

  // The shard's index, verified against the manifest on the first call for it.
  absl::StatusOr<ShardIndex> index(uint32_t shard) const;
  // The same without a copy, cheap after the first call; lives as long as one copy of the dataset.
  absl::StatusOr<const ShardIndex*> BorrowIndex(uint32_t shard) const;
  // The open file that a shard's extents count in.
  absl::StatusOr<std::shared_ptr<const File>> OpenFile(uint32_t shard) const;
  // The samples of one split alone, numbered from 0; NotFound, with the splits there are. The
  // identity is that of its shards alone.
  absl::StatusOr<Dataset> Split(std::string_view name) const;
  // `id` must be below size().
  SampleLocation Locate(uint64_t id) const;
  // A copy of the sample whose every field matches its hash. After a mismatch the page cache is
  // dropped and the field read once more: memory and disk may differ.
  absl::StatusOr<OwnedSample> Read(uint64_t id) const;
  // The bytes of one field of a sample, checked in the same way, into memory of the size that the
  // index says.
  absl::Status ReadField(SampleLocation at, size_t field, std::span<std::byte> into) const;
  // NotFound when no sample has this key. Cost: a walk over the keys of all shards.
  absl::StatusOr<uint64_t> FindKey(std::string_view key) const;

 private:
  struct State;
  explicit Dataset(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_DATASET_H_
