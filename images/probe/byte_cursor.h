// ByteCursor: reads big- or little-endian integers from untrusted bytes without ever leaving them.
//
//   ByteCursor cursor(file, ByteCursor::Endian::kLittle, /*offset=*/6);
//   const uint16_t width = cursor.U16(), height = cursor.U16();
//   if (!cursor.ok()) return Truncated(cursor.offset());
//
// Lifetime: borrows the bytes, which must outlive it.
// Thread-safety: as any plain value.
// Errors: the first read or skip past the end clears ok() permanently, does not move, and yields 0,
// as do all later ones. So check once, after a group of reads.
// Units: offsets and sizes are bytes, from the start of the span.
#ifndef SHARDPACK_IMAGES_PROBE_BYTE_CURSOR_H_
#define SHARDPACK_IMAGES_PROBE_BYTE_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardpack {

class ByteCursor {
 public:
  enum class Endian : uint8_t { kBig, kLittle };

  ByteCursor(std::span<const std::byte> bytes, Endian endian, uint64_t offset = 0)
      : bytes_(bytes), offset_(offset), endian_(endian), ok_(offset <= bytes.size()) {}

  bool ok() const { return ok_; }
  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return ok_ ? bytes_.size() - offset_ : 0; }

  uint8_t U8() { return static_cast<uint8_t>(Read<1>()); }
  uint16_t U16() { return static_cast<uint16_t>(Read<2>()); }
  uint32_t U24() { return static_cast<uint32_t>(Read<3>()); }
  uint32_t U32() { return static_cast<uint32_t>(Read<4>()); }
  uint64_t U64() { return Read<8>(); }

  bool Skip(uint64_t size) {
    if (size > remaining()) ok_ = false;
    if (ok_) offset_ += size;
    return ok_;
  }

  // The next `size` bytes; if there are fewer, empty, and ok() is cleared. Valid as long as the
  // bytes that the cursor was made from.
  std::span<const std::byte> Take(uint64_t size) {
    const uint64_t start = offset_;
    return Skip(size) ? bytes_.subspan(start, size) : std::span<const std::byte>();
  }

 private:
  template <size_t kSize>
  uint64_t Read() {
    const uint64_t start = offset_;
    if (!Skip(kSize)) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < kSize; ++i) {  // compilers turn this into one load
      const uint64_t byte = std::to_integer<uint64_t>(bytes_[start + i]);
      value |= byte << (8 * (endian_ == Endian::kLittle ? i : kSize - 1 - i));
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  uint64_t offset_;
  Endian endian_;
  bool ok_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_BYTE_CURSOR_H_
