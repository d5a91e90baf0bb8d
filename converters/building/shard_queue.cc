#include "converters/building/shard_queue.h"

#include <utility>

namespace shardpack {

void ShardQueue::Add(std::unique_ptr<InFlightChunk> chunk) {
  const uint64_t sequence = chunk->sequence;
  ready_.emplace(sequence, std::move(chunk));
}

bool ShardQueue::TryBeginAppending() {
  if (appending_) return false;
  appending_ = true;
  return true;
}

std::unique_ptr<InFlightChunk> ShardQueue::TakeNext() {
  if (ready_.empty() || (in_order_ && ready_.begin()->first != next_)) {
    appending_ = false;
    return nullptr;
  }
  std::unique_ptr<InFlightChunk> chunk = std::move(ready_.begin()->second);
  ready_.erase(ready_.begin());
  ++next_;
  return chunk;
}

}  // namespace shardpack
