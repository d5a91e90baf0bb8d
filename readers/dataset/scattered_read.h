// ScatteredRead: fields that follow each other closely in a shard, read by one system call into
// memory that does not.
//
//   ScatteredRead read(4096);
//   while (read.Add(field.offset, field.into)) ...;   // false: the field begins the next read
//   file.ReadExactlyAt(read.offset(), read.parts());
//
// Lifetime: parts() is valid as long as the object; bytes between fields go to memory of the
// thread, so the thread that adds also reads.
// Thread-safety: one thread.
// Units: bytes.
#ifndef SHARDPACK_READERS_DATASET_SCATTERED_READ_H_
#define SHARDPACK_READERS_DATASET_SCATTERED_READ_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shardpack {

class ScatteredRead {
 public:
  // What lies between two fields is read too, if it is at most `max_gap_bytes`.
  explicit ScatteredRead(uint64_t max_gap_bytes) : max_gap_bytes_(max_gap_bytes) {}

  // Whether the field could be added. The first one always can; the others must follow the one
  // before, and fit what a core's cache keeps until it is hashed.
  bool Add(uint64_t offset, std::span<std::byte> into);

  uint64_t offset() const { return offset_; }
  std::span<const iovec> parts() const { return std::span(parts_).first(count_); }

 private:
  static constexpr size_t kMaxParts = 64;
  static constexpr uint64_t kMaxBytes = 256 << 10;

  uint64_t max_gap_bytes_;
  uint64_t offset_ = 0, end_ = 0;
  std::array<iovec, kMaxParts> parts_;
  size_t count_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_DATASET_SCATTERED_READ_H_
