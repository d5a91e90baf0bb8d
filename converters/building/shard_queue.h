// ShardQueue: the chunks of one shard that are ready to be appended, and whose turn it is. One
// thread at a time appends; the others leave their chunks to it.
//
//   queue.Add(std::move(chunk));
//   if (!queue.TryBeginAppending()) return;       // another thread appends, and takes this one, too
//   while (std::unique_ptr<InFlightChunk> next = queue.TakeNext()) Append(*next->samples);
//
// Thread-safety: the caller locks; the lock is not held while a chunk is appended.
#ifndef SHARDPACK_CONVERTERS_BUILDING_SHARD_QUEUE_H_
#define SHARDPACK_CONVERTERS_BUILDING_SHARD_QUEUE_H_

#include <cstdint>
#include <map>
#include <memory>

#include "converters/building/memory_budget.h"
#include "converters/building/sample_chunk.h"

namespace shardpack {

// A chunk of samples from when its memory is reserved until its shard has it.
struct InFlightChunk {
  std::unique_ptr<SampleChunk> samples;
  uint64_t sequence = 0;          // number among the chunks of its shard
  uint64_t first = 0, count = 0;  // positions in the plan
  uint64_t load_bytes = 0;        // what loading them will take
  bool last = false;              // of its shard
  bool probed = false;
  bool admitted = false;  // `working` is reserved for the next image
  MemoryBudget::Reservation loaded;
  MemoryBudget::Reservation transformed;  // what images have become
  MemoryBudget::Reservation working;      // for the image that is being changed
};

class ShardQueue {
 public:
  void Add(std::unique_ptr<InFlightChunk> chunk);
  // Whether all chunks before this one have been taken.
  bool IsNext(uint64_t sequence) const { return sequence == next_; }
  // Makes the caller the one that appends, unless another thread is.
  bool TryBeginAppending();
  // The next chunk; nullptr if it has not been added yet: the caller has then ended appending.
  std::unique_ptr<InFlightChunk> TakeNext();
  // Ends appending without a look at what was added meanwhile, which waits for the caller's chunk.
  void EndAppending() { appending_ = false; }
  // From now on chunks are taken as they come: the shard has failed.
  void IgnoreOrder() { in_order_ = false; }

 private:
  std::map<uint64_t, std::unique_ptr<InFlightChunk>> ready_;  // by sequence
  uint64_t next_ = 0;                                         // sequence of the next one to take
  bool appending_ = false;
  bool in_order_ = true;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_SHARD_QUEUE_H_
