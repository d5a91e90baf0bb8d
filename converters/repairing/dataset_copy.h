// DatasetCopy: a dataset that may be damaged, as a store of bytes to repair another one, or itself,
// from. FieldFinder: finds bytes by their hash, in copies and in folders.
//
//   absl::StatusOr<DatasetCopy> copy = DatasetCopy::Open("OTHER");       // its manifest alone must be whole
//   FieldFinder finder(copies, folders, sidecars);
//   finder.Want(hash); ...  finder.Locate();
//   auto from = finder.Read({hash, length, "cat/1.jpg", "image"}, into, unread);
//
// What is handed out always has the hash that was asked for, wherever it lies.
//
// Lifetime: a copy owns its files; a finder borrows the copies.
// Thread-safety: const from any thread.
// Errors: Open answers those of Manifest::Read. That something is not there, or not what it should
// be, is an answer, not an error. A finder goes on where one place cannot be read, and says so; a
// lack of descriptors or memory ends its calls.
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
  // nullptr where it is missing or damaged. Opened and verified when it is first asked for.
  absl::StatusOr<const ShardIndex*> index(uint32_t shard) const;
  // A file of the dataset that has been put right since.
  void Forget(uint32_t shard);
  // NotFound where the shard is not there, OutOfRange where it is too short.
  absl::Status Read(uint32_t shard, uint64_t offset, std::span<std::byte> into) const;

 private:
  struct Cache {
    std::mutex mutex;
    std::map<uint32_t, std::optional<ShardIndex>> indexes;  // nullopt: there is none
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
  // `folders`: files lie there under their source paths; `sidecars` says which files further fields
  // are.
  FieldFinder(std::vector<const DatasetCopy*> copies, std::vector<std::string> folders,
              std::vector<Sidecar> sidecars)
      : copies_(std::move(copies)), folders_(std::move(folders)), sidecars_(std::move(sidecars)) {}

  // Fields of this hash will be asked for.
  void Want(uint64_t hash) { places_.try_emplace(hash); }
  // Walks the copies' indexes once for all that is wanted.
  absl::Status Locate();
  // Where the bytes were found, which are then in `into`; nullopt: nowhere, or in a place that
  // cannot be read, of which `unread` then tells. `into` has the wanted length.
  absl::StatusOr<std::optional<std::string>> Read(const WantedField& wanted,
                                                  std::span<std::byte> into,
                                                  std::string& unread) const;

 private:
  struct Place {
    uint32_t copy, shard;
    uint64_t record, field;
  };
  // As DatasetCopy::Read; the bytes may be others.
  absl::Status ReadFile(const std::string& folder, const WantedField& wanted,
                        std::span<std::byte> into) const;

  const std::vector<const DatasetCopy*> copies_;
  const std::vector<std::string> folders_;
  const std::vector<Sidecar> sidecars_;
  absl::flat_hash_map<uint64_t, std::vector<Place>> places_;
  std::string unread_index_;  // the first that could not be looked through; "" = none
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_DATASET_COPY_H_
