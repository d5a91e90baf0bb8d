// Bytes: a borrowed range of raw bytes, and the little-endian loads and stores that all layouts
// here use.
//
//   Bytes head = file_bytes.first(8);
//   uint64_t length = LoadLittle<uint64_t>(head.data());
//   StoreLittle<uint32_t>(out, crc);
//
// Lifetime: a Bytes borrows; its owner must outlive it.
// Thread-safety: plain values and pure functions.
// Errors: none; the caller has checked that sizeof(T) bytes are there.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_IO_BYTES_H_
#define SHARDPACK_FORMATS_IO_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace shardpack {

using Bytes = std::span<const std::byte>;

static_assert(std::endian::native == std::endian::little,
              "the on-disk integers are little-endian and are loaded as they are");

template <typename T>
T LoadLittle(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void StoreLittle(void* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

inline Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_BYTES_H_
