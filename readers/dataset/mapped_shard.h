// MappedShard: a shard's file in memory, from which bytes are copied without a system call, and
// without the signal that ends a process when the file is cut short meanwhile.
//
//   absl::StatusOr<MappedShard> shard = MappedShard::Open(file, shard_bytes);
//   if (!shard->Copy(offset, into)) ...   // unreadable: ask read() what is wrong
//
// A positioned read of 1 KB out of the page cache costs four times the copy itself (see
// docs/decisions/0005-mapped-copies.md). The price: Open installs a handler for SIGBUS, once a
// process, which takes the faults of these copies and hands all others to the handler that was
// there before. A program that installs its own handler later must hand on in the same way, or it
// loses this protection and nothing else.
//
// Lifetime: owns the mapping; the File may be closed.
// Thread-safety: const, any thread.
// Errors: Status of mmap; DataLoss for another size than expected.
// Units: bytes from the start of the file.
#ifndef SHARDPACK_READERS_DATASET_MAPPED_SHARD_H_
#define SHARDPACK_READERS_DATASET_MAPPED_SHARD_H_

#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "formats/io/file.h"
#include "formats/io/mapped_file.h"

namespace shardpack {

class MappedShard {
 public:
  // Maps the file with all its pages that are in memory.
  static absl::StatusOr<MappedShard> Open(const File& file, uint64_t bytes);

  // False where the file cannot be read any more, or does not reach so far; `into` holds anything
  // then.
  bool Copy(uint64_t offset, std::span<std::byte> into) const;
  // Takes these pages out of the mapping, so that the page cache may drop them; a later copy maps
  // them again.
  void Forget(uint64_t offset, uint64_t length) const;
  // A hint that these bytes will be copied soon; never a fault.
  void Prefetch(uint64_t offset, uint64_t length) const {
    constexpr uint64_t kLine = 64, kMost = 1024;  // the rest of a longer run comes by itself
    if (offset >= file_.bytes().size()) return;
    const std::byte* const from = file_.bytes().data() + offset;
    for (uint64_t at = 0; at < length && at < kMost; at += kLine) __builtin_prefetch(from + at);
  }

 private:
  explicit MappedShard(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_MAPPED_SHARD_H_
