// MappedShard: a mapped shard file. Bytes are copied out without a system call, and a file that is
// truncated meanwhile does not kill the process with SIGBUS.
//
//   absl::StatusOr<MappedShard> shard = MappedShard::Open(file, shard_bytes);
//   if (!shard->Copy(offset, into)) ...   // unreadable: ask read() for the reason
//
// A positioned read of 1 KB from the page cache costs four times the copy itself (see
// docs/decisions/0005-mapped-copies.md). The price: Open installs a SIGBUS handler, once per
// process, which handles the faults of these copies and forwards all others to the previous
// handler. If a program later installs its own handler without forwarding, it loses this protection
// and nothing else.
//
// Lifetime: owns the mapping; the File may be closed.
// Thread-safety: const, any thread.
// Errors: Status of mmap; DataLoss if the size is not the expected one.
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
  // Maps the file, with page table entries for all pages that are in memory.
  static absl::StatusOr<MappedShard> Open(const File& file, uint64_t bytes);

  // Returns false if the range can no longer be read or lies past the end; `into` is then
  // unspecified.
  bool Copy(uint64_t offset, std::span<std::byte> into) const;
  // Removes these pages from the mapping, so that the page cache can drop them; a later copy maps
  // them again.
  void Forget(uint64_t offset, uint64_t length) const;
  // Hints that these bytes will be copied soon; never faults.
  void Prefetch(uint64_t offset, uint64_t length) const {
    // The hardware prefetches the rest of a longer run.
    constexpr uint64_t kLine = 64, kMost = 1024;
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
