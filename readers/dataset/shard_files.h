// ShardFiles: the open files of a dataset's shards, with a limit on how many are open at once.
//
//   ShardFiles files({"OUT/train-000000.tar"});
//   absl::StatusOr<std::shared_ptr<const File>> file = files.Get(0);
//   absl::Status read = (*file)->ReadExactlyAt(offset, into);
//
// Lifetime: a file stays open while a returned pointer to it exists.
// Thread-safety: any thread.
// Errors: those of opening.
#ifndef SHARDPACK_READERS_DATASET_SHARD_FILES_H_
#define SHARDPACK_READERS_DATASET_SHARD_FILES_H_

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/io/file.h"
#include "formats/io/resources.h"
#include "readers/dataset/per_process.h"

namespace shardpack {

class ShardFiles {
 public:
  // `keep_open` defaults to a quarter of the descriptors that the process may have, at most 256.
  explicit ShardFiles(std::vector<std::string> paths,
                      size_t keep_open = std::clamp<size_t>(OpenFilesLimit() / 4, 1, 256))
      : paths_(std::move(paths)), keep_open_(keep_open) {}

  absl::StatusOr<std::shared_ptr<const File>> Get(uint32_t shard) const;

 private:
  struct Open {
    std::mutex mutex;
    std::vector<std::shared_ptr<const File>> files;  // of each shard; empty before the first
    std::deque<uint32_t> order;                      // in the order of opening
  };

  const std::vector<std::string> paths_;
  const size_t keep_open_;
  PerProcess<Open> open_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_SHARD_FILES_H_
