// DatasetCopy: a possibly damaged dataset, used as a store of bytes to repair another dataset or
// itself. FieldFinder: finds bytes by hash, in copies and in folders.
//
//   absl::StatusOr<DatasetCopy> copy = DatasetCopy::Open("OTHER");  // needs an intact manifest
//   FieldFinder finder(copies, folders, sidecars);
//   finder.Want(hash); ...  finder.Locate();
//   auto from = finder.Read({hash, length, "cat/1.jpg", "image"}, into, unread);
//
// Returned bytes always have the requested hash, wherever they come from.
//
// Lifetime: a copy owns its files; a finder borrows the copies.
// Thread-safety: const from any thread.
// Errors: Open returns those of Manifest::Read. Missing or wrong content is a result, not an error.
// A finder skips a location that cannot be read, and reports it; running out of descriptors or
// memory fails the call.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_REPAIRING_DATASET_COPY_H_
#define SHARDPACK_CONVERTERS_REPAIRING_DATASET_COPY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/sidecars.h"
#include "formats/core/manifest.h"
#include "formats/core/shard_index.h"
#include "formats/io/file.h"

namespace shardpack {

class DatasetCopy {
 public:
  static absl::StatusOr<DatasetCopy> Open(const std::string& path);
  DatasetCopy(std::string path, Manifest manifest);
  DatasetCopy(DatasetCopy&&) = default;

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  std::string PathOf(const std::string& name) const { return PathInDataset(path_, name); }
  std::string DataPath(uint32_t shard) const {
    return PathOf(manifest_.DataFileOf(manifest_.shards[shard]));
  }
  // nullptr if it is missing or damaged. Opened and verified on first use.
  absl::StatusOr<const ShardIndex*> index(uint32_t shard) const;
  // Call after a file of the dataset has been repaired.
  void Forget(uint32_t shard);
  // NotFound if the shard is missing, OutOfRange if it is too short.
  absl::Status Read(uint32_t shard, uint64_t offset, std::span<std::byte> into) const;

 private:
  struct Cache {
    std::mutex mutex;
    std::map<uint32_t, std::optional<ShardIndex>> indexes;  // nullopt: missing or damaged
    std::map<uint32_t, std::shared_ptr<const File>> files;
  };

  std::string path_;
  Manifest manifest_;
  std::unique_ptr<Cache> cache_;
};

struct WantedField {
  uint64_t hash = 0, length = 0;
  std::string_view source_path, name;
};

class FieldFinder {
 public:
  // `folders` hold files under their source paths; `sidecars` says which files are further fields.
  FieldFinder(std::vector<const DatasetCopy*> copies, std::vector<std::string> folders,
              std::vector<Sidecar> sidecars)
      : copies_(std::move(copies)), folders_(std::move(folders)), sidecars_(std::move(sidecars)) {}

  // Announces that fields with this hash will be read.
  void Want(uint64_t hash) { places_.try_emplace(hash); }
  // Scans the copies' indexes once for all wanted hashes.
  absl::Status Locate();
  // Reads the bytes into `into`, which has the wanted length, and returns where they were found;
  // nullopt if nowhere, or in a location that cannot be read, which `unread` then describes.
  absl::StatusOr<std::optional<std::string>> Read(const WantedField& wanted,
                                                  std::span<std::byte> into,
                                                  std::string& unread) const;

 private:
  struct Place {
    uint32_t copy, shard;
    uint64_t record, field;
  };
  // As DatasetCopy::Read; the bytes may not match the hash.
  absl::Status ReadFile(const std::string& folder, const WantedField& wanted,
                        std::span<std::byte> into) const;

  const std::vector<const DatasetCopy*> copies_;
  const std::vector<std::string> folders_;
  const std::vector<Sidecar> sidecars_;
  absl::flat_hash_map<uint64_t, std::vector<Place>> places_;
  std::string unread_index_;  // the first one that could not be searched; "" = none
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_DATASET_COPY_H_
