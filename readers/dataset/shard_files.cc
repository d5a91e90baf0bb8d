#include "readers/dataset/shard_files.h"

#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::shared_ptr<const File>> ShardFiles::Get(uint32_t shard) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (open_[shard] != nullptr) return open_[shard];
  ASSIGN_OR_RETURN(File file, File::OpenRead(paths_[shard]));
  if (order_.size() >= keep_open_) {
    open_[order_.front()] = nullptr;
    order_.pop_front();
  }
  open_[shard] = std::make_shared<const File>(std::move(file));
  order_.push_back(shard);
  return open_[shard];
}

}  // namespace shardpack
