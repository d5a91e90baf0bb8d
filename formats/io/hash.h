// The hashes of a dataset: XXH3-64 of each field, XXH3-128 of each file, CRC-32C inside TFRecord.
// Those that other tools ask for are in crypto_hash.h.
//
//   uint64_t field_hash = Xxh3_64(payload);
//   DigestStream stream;  stream.Update(block);  Digest file_digest = stream.Finish();
//   uint32_t crc = Crc32c(payload);
//
// Thread-safety: pure functions; a stream has one caller at a time.
// Errors: none (ParseDigest returns nullopt).
// Units: bytes in, integers out; hex is lower case, most significant digit first (the canonical
// form of xxhash, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
#ifndef SHARDPACK_FORMATS_IO_HASH_H_
#define SHARDPACK_FORMATS_IO_HASH_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/io/bytes.h"

namespace shardpack {

// An XXH3-128 value.
struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;

  std::string ToHex() const;  // 32 digits
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// Parses exactly 32 hexadecimal digits; nullopt for anything else.
std::optional<Digest> ParseDigest(std::string_view hex);

uint64_t Xxh3_64(Bytes bytes);
Digest Xxh3_128(Bytes bytes);

// CRC-32C (Castagnoli), check value of "123456789" = 0xE3069283. `crc` is the value for the
// preceding bytes.
uint32_t Crc32c(Bytes bytes, uint32_t crc = 0);

// XXH3-64 of bytes that arrive in pieces. Movable.
class FieldHashStream {
 public:
  FieldHashStream();
  ~FieldHashStream();
  FieldHashStream(FieldHashStream&&) noexcept;
  FieldHashStream& operator=(FieldHashStream&&) noexcept;

  void Reset();
  void Update(Bytes bytes);
  uint64_t Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// XXH3-128 of bytes that arrive in pieces. Movable.
class DigestStream {
 public:
  DigestStream();
  ~DigestStream();
  DigestStream(DigestStream&&) noexcept;
  DigestStream& operator=(DigestStream&&) noexcept;

  void Update(Bytes bytes);
  Digest Finish() const;  // of the bytes so far; Update may continue

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_HASH_H_
