#include "readers/dataset/shard_files.h"

#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

absl::StatusOr<std::shared_ptr<const File>> ShardFiles::Get(uint32_t shard) const {
  Open& open = open_.Get();
  const std::lock_guard lock(open.mutex);
  open.files.resize(paths_.size());
  if (open.files[shard] != nullptr) return open.files[shard];
  ASSIGN_OR_RETURN(File file, File::OpenRead(paths_[shard]));
  if (open.order.size() >= keep_open_) {
    open.files[open.order.front()] = nullptr;
    open.order.pop_front();
  }
  open.files[shard] = std::make_shared<const File>(std::move(file));
  open.order.push_back(shard);
  return open.files[shard];
}

}  // namespace shardpack
