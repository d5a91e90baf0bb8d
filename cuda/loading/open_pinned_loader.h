// OpenPinnedLoader: a Loader in page-locked memory, or in less of it, or in pageable memory.
//
//   PinnedMemory memory(device);
//   absl::StatusOr<Loader> loader = OpenPinnedLoader(dataset, order, rank, options, memory);
//
// Tried in this order: options.memory_bytes (at most the memory's budget) page-locked; half of
// that; all of it pageable, if the memory's options allow that. The memory's log tells of every
// step down.
//
// Lifetime: as Loader::Open.
// Thread-safety: as Loader::Open; nothing else uses the memory meanwhile.
// Errors: those of Loader::Open; the first one's if all tries fail for lack of memory.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_OPEN_PINNED_LOADER_H_
#define SHARDPACK_CUDA_LOADING_OPEN_PINNED_LOADER_H_

#include <optional>

#include "absl/status/statusor.h"
#include "cuda/loading/pinned_memory.h"
#include "readers/loading/loader.h"

namespace shardpack {

absl::StatusOr<Loader> OpenPinnedLoader(const Dataset& dataset, const Order& order, Rank rank,
                                        LoaderOptions options, PinnedMemory& memory,
                                        std::optional<Cursor> cursor = std::nullopt);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_OPEN_PINNED_LOADER_H_
