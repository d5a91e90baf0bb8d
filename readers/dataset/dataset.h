// Dataset: a packed dataset, or third-party shards, as numbered samples. Every read is checked
// against the sample's hashes.
//
//   absl::StatusOr<Dataset> dataset = Dataset::Open("OUT");
//   absl::StatusOr<OwnedSample> sample = dataset->Read(7);   // the eighth, in the manifest's order
//   absl::StatusOr<uint64_t> id = dataset->FindKey("cat/1");
//   absl::StatusOr<Dataset> few = dataset->Select(std::vector<uint64_t>{9, 3, 3});   // size() == 3
//
// A dataset is opened through its manifest: sizes are checked at once, an index is verified when it
// is first needed. Foreign shards are scanned completely, by one of the given formats. Shard bytes
// come from positioned reads, never from a mapping, so a shard that is truncated while open causes
// an error, not a signal.
//
// Lifetime: a copy shares everything; the formats must outlive it (they are static).
// Thread-safety: const, any thread.
// Errors: Open: NotFound, or InvalidArgument for a path that is not a dataset; OutOfRange for an id
// or shard past the end; DataLoss for damage, naming shard, key and offset; FailedPrecondition for
// what looks like damage because another process has replaced the dataset (--overwrite) since it
// was opened; Unimplemented for a container without extents; I/O errors.
// Units: bytes from the start of the shard; an id is a sample's number over all shards, from 0.
#ifndef SHARDPACK_READERS_DATASET_DATASET_H_
#define SHARDPACK_READERS_DATASET_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
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
#include "formats/io/hash.h"
#include "readers/dataset/shard_warnings.h"

namespace shardpack {

class WarmShard;

// A sample that owns its bytes.
struct OwnedSample {
  struct Field {
    std::string name;  // kImageField, or the name in the index
    std::string bytes;
  };
  std::string key, source_path;
  int64_t label = -1;  // kNoLabel if the sample has none
  ImageInfo image;     // unknown for foreign shards
  std::vector<Field> fields;
};

struct DatasetShard {
  std::string name, split;  // a foreign shard has no split
  std::string data_path;    // the file that extents refer to
  uint64_t bytes = 0, records = 0;
  uint64_t first_id = 0;  // not of a selection, whose ids do not follow the shards
};

struct SampleLocation {
  uint32_t shard = 0;
  uint64_t record = 0;
};

// One field of a sample, to be read into memory of the size given in the index.
struct FieldRead {
  SampleLocation at;
  size_t field = 0;
  std::span<std::byte> into;
};

// Facts about foreign shards that come from elsewhere.
struct ForeignLabels {
  std::vector<std::string> classes;  // names of the labels 0, 1, ...; may be empty
  std::vector<std::string> splits;   // one per shard; empty if the shards have none
};

struct DamagedFile {
  std::string name;  // as the manifest has it
  std::string why;   // one sentence, with the path
};

class Dataset {
 public:
  // Opens a folder with a manifest, or one foreign shard in the first of the `foreign` formats that
  // accepts it. Cost: one stat per shard, or one read of the foreign shard. DataLoss also for a
  // folder whose build has not finished.
  static absl::StatusOr<Dataset> Open(const std::string& path,
                                      std::span<const Format* const> foreign = {});
  // The same for a folder with a manifest, however many of its shards and indexes are missing or
  // have another size: these are named in `damage`, and reading them fails.
  static absl::StatusOr<Dataset> OpenDamaged(const std::string& path,
                                             std::vector<DamagedFile>& damage);
  // Only these shards, ascending, and their samples, numbered from 0, as what is left of a damaged
  // dataset; the identity stays that of the whole. OutOfRange; InvalidArgument of a selection.
  absl::StatusOr<Dataset> WithShards(std::span<const uint32_t> shards) const;
  // Opens foreign shards, in this order.
  static absl::StatusOr<Dataset> OpenShards(std::span<const std::string> paths,
                                            std::span<const Format* const> foreign,
                                            const ForeignLabels& labels = {});

  // Joins several datasets: their samples are numbered one dataset after the other, in this order,
  // as the MixtureParts of an Order expect. Indexes are shared. InvalidArgument if the classes
  // differ, because a label would then have two meanings.
  static absl::StatusOr<Dataset> Join(std::span<const Dataset> parts);

  // The samples with these ids, in this order, numbered from 0: a selection. An id may come twice,
  // and there may be none. Shares everything; its shards are those of this dataset, whole, and its
  // identity is that of this dataset and the ids. OutOfRange for an id past the end. Memory: eight
  // bytes a sample.
  absl::StatusOr<Dataset> Select(std::span<const uint64_t> ids) const;
  bool is_selection() const { return selection_ != nullptr; }

  // Views and references into this object are valid as long as one copy of it exists.
  std::span<const DatasetShard> shards() const;
  uint64_t size() const;                         // in total
  uint64_t size(std::string_view split) const;   // 0 for an unknown split
  std::span<const std::string> classes() const;  // empty for foreign shards
  const std::string& format() const;             // its name; for joined datasets, all names
  // For foreign shards and joined datasets: a hash of the shards' names, sizes and hashes, as if
  // they had a manifest.
  Digest identity() const;
  // Names of values in foreign shards that are not fields of a sample, such as TFRecord's numbers
  // and lists, and HDF5's further datasets. A long list is cut off. Parts of a dataset have those
  // of the whole.
  std::span<const std::string> left_out() const;
  // Oddities of foreign shards that can be read nevertheless, one sentence each, such as labels
  // that are not integers or data after the end. Of many of one kind the first ones, with the
  // number of the others at the end. Parts of a dataset have those of the whole.
  std::span<const std::string> warnings() const;
  // Samples that foreign shards hold in part: the last one of an archive that was cut off. They
  // have no id. Shards with an index have none: the program that made the index warned.
  std::span<const LostSample> lost_samples() const;
  // nullptr for foreign shards, joined datasets and selections.
  const Manifest* manifest() const;

  // FailedPrecondition if another process has replaced or removed the dataset since it was opened
  // through its manifest. Cost: one stat; if the manifest is another file, reading it.
  absl::Status CheckNotReplaced() const;

  // The shard's index, verified against the manifest on the first call for it.
  absl::StatusOr<ShardIndex> index(uint32_t shard) const;
  // The same without a copy, cheap after the first call. Valid as long as one copy of the dataset
  // exists.
  absl::StatusOr<const ShardIndex*> BorrowIndex(uint32_t shard) const;
  // The file that the shard's extents refer to, open.
  absl::StatusOr<std::shared_ptr<const File>> OpenFile(uint32_t shard) const;
  // The samples of one split, numbered from 0, with an identity over its shards only. NotFound
  // lists the existing splits.
  absl::StatusOr<Dataset> Split(std::string_view name) const;
  // `id` must be below size().
  SampleLocation Locate(uint64_t id) const;
  // Returns a copy of the sample, with the hash of every field verified. After a mismatch, drops
  // the page cache and reads the field again, since memory and disk may differ.
  absl::StatusOr<OwnedSample> Read(uint64_t id) const;
  // Reads one field of a sample into `into`, which must have the size given in the index; verified
  // like Read.
  absl::Status ReadField(SampleLocation at, size_t field, std::span<std::byte> into) const;
  // The shard's mapping; splits, selections and joins have that of the dataset they were made of.
  const WarmShard& Warm(uint32_t shard) const;
  // Reads many fields, each verified like in ReadField; neighbours in a shard that follow each
  // other here cost one read together. One status per field. `map_warm_shards`: small fields are
  // copied from mappings of the shards that are in the page cache (mapped_shard.h).
  std::vector<absl::Status> ReadFields(std::span<const FieldRead> fields,
                                       bool map_warm_shards = false) const;
  // The first sample with this key; NotFound if there is none. Cost: the first call scans the keys,
  // the second one makes a hash table of them, of 12 to 24 bytes a sample, while others wait.
  absl::StatusOr<uint64_t> FindKey(std::string_view key) const;

 private:
  struct State;
  struct KeyTable;
  struct Selection {
    std::vector<uint64_t> ids;  // of the samples of `state_`
    Digest identity;
  };
  explicit Dataset(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  static absl::StatusOr<Dataset> OpenManifest(const std::string& path,
                                              std::vector<DamagedFile>* damage);
  Dataset Unselected() const { return Dataset(state_); }
  uint64_t UnselectedId(uint64_t id) const {
    return selection_ == nullptr ? id : selection_->ids[id];
  }
  Dataset WithSelection(std::vector<uint64_t> unselected_ids) const;
  absl::StatusOr<Dataset> SplitSelection(std::string_view name) const;
  std::shared_ptr<State> StateOf(std::span<const uint32_t> shards) const;
  static std::shared_ptr<const KeyTable> NewKeyTable();
  // The first id of the sample that is there.
  std::optional<int64_t> IdAt(SampleLocation at) const;

  std::shared_ptr<const State> state_;
  std::shared_ptr<const Selection> selection_;  // null: all samples
  std::shared_ptr<const KeyTable> keys_ = NewKeyTable();
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_DATASET_H_
