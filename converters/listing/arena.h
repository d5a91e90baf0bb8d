// Arena: a growing buffer to load samples into; it is reused without returning memory in between.
//
//   Arena arena;
//   std::span<std::byte> room = arena.Allocate(bytes + 1);  // stable until Reset
//   arena.Reset();                                        // all spans die, the memory stays
//
// Lifetime: spans are valid until Reset or the arena's end.
// Thread-safety: one caller at a time.
// Errors: std::bad_alloc.
// Units: bytes; spans are 64-byte aligned.
#ifndef SHARDPACK_CONVERTERS_LISTING_ARENA_H_
#define SHARDPACK_CONVERTERS_LISTING_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace shardpack {

class Arena {
 public:
  std::span<std::byte> Allocate(size_t bytes) {
    if (bytes > size_t{PTRDIFF_MAX} - 63) throw std::bad_alloc();  // rounding up must not overflow
    const size_t padded = (bytes + 63) & ~size_t{63};
    while (current_ < blocks_.size() && blocks_[current_].bytes - used_ < padded) {
      ++current_;
      used_ = 0;
    }
    if (current_ == blocks_.size()) {
      const size_t size = padded > kBlockBytes ? padded : kBlockBytes;
      std::unique_ptr<std::byte[], AlignedDelete> data(new (std::align_val_t{64}) std::byte[size]);
      blocks_.push_back({std::move(data), size});
    }
    std::byte* at = blocks_[current_].data.get() + used_;
    used_ += padded;
    return {at, bytes};
  }
  // Returns the unused end of the most recent allocation.
  void TrimLast(std::span<std::byte> last, size_t keep_bytes) {
    const size_t begin = static_cast<size_t>(last.data() - blocks_[current_].data.get());
    used_ = begin + ((keep_bytes + 63) & ~size_t{63});
  }
  // Keeps at most `keep_bytes` of memory for the next use.
  void Reset(size_t keep_bytes = size_t{4} << 20) {
    size_t kept = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      kept += blocks_[i].bytes;
      if (kept > keep_bytes && i > 0) {
        blocks_.resize(i);
        break;
      }
    }
    if (blocks_.size() == 1 && blocks_[0].bytes > keep_bytes) blocks_.clear();
    current_ = used_ = 0;
  }

 private:
  static constexpr size_t kBlockBytes = size_t{256} << 10;
  struct AlignedDelete {
    void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t{64}); }
  };
  struct Block {
    std::unique_ptr<std::byte[], AlignedDelete> data;
    size_t bytes;
  };
  std::vector<Block> blocks_;
  size_t current_ = 0, used_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_ARENA_H_
