#include "formats/io/hash.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstdio>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

// Uses the library's functions that select AVX2 or AVX-512 at run time: twice as fast as the SSE2
// code that could be inlined here (this project is not compiled for a specific processor). The
// hashes are the same.
#define XXH_STATIC_LINKING_ONLY  // for the size of its state
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace shardpack {
namespace {

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx"))) void ClearUpperHalves() { _mm256_zeroupper(); }
#endif

}  // namespace

std::string Digest::ToHex() const {
  std::array<char, 33> text;
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return std::string(text.data(), 32);
}

namespace {

constexpr uint8_t kNoDigit = 0x80;
constexpr std::array<uint8_t, 256> kHexDigits = [] {
  std::array<uint8_t, 256> digits = {};
  for (uint8_t& digit : digits) digit = kNoDigit;
  for (uint8_t i = 0; i < 16; ++i) digits[static_cast<uint8_t>("0123456789abcdef"[i])] = i;
  return digits;
}();

}  // namespace

// Journals have many: no branch for each digit.
std::optional<Digest> ParseDigest(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  std::array<uint64_t, 2> words = {0, 0};
  uint8_t any = 0;
  for (size_t i = 0; i < 32; ++i) {
    const uint8_t digit = kHexDigits[static_cast<uint8_t>(hex[i])];
    any |= digit;
    words[i / 16] = words[i / 16] << 4 | digit;
  }
  if ((any & kNoDigit) != 0) return std::nullopt;
  return Digest{words[0], words[1]};
}

uint64_t Xxh3_64(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Digest Xxh3_128(Bytes bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

uint32_t Crc32c(Bytes bytes, uint32_t crc) {
  // crc32_iscsi takes an int length and inverts neither its input nor its output.
  constexpr size_t kMaxPiece = size_t{1} << 30;
  uint32_t state = ~crc;
  while (!bytes.empty()) {
    const Bytes piece = bytes.first(std::min(bytes.size(), kMaxPiece));
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
#if defined(__x86_64__) && defined(__GNUC__)
  // ISA-L 2.30 returns from its AVX-512 code with the upper halves of the vector registers in use,
  // which makes all SSE code of this thread, including the hashes here, three times slower
  // (measured).
  if (__builtin_cpu_supports("avx")) ClearUpperHalves();
#endif
  return ~state;
}

struct FieldHashStream::State {
  XXH3_state_t xxh;
};
FieldHashStream::FieldHashStream() : state_(std::make_unique<State>()) { Reset(); }
FieldHashStream::~FieldHashStream() = default;
FieldHashStream::FieldHashStream(FieldHashStream&&) noexcept = default;
FieldHashStream& FieldHashStream::operator=(FieldHashStream&&) noexcept = default;
void FieldHashStream::Reset() { XXH3_64bits_reset(&state_->xxh); }
void FieldHashStream::Update(Bytes bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}
uint64_t FieldHashStream::Finish() const { return XXH3_64bits_digest(&state_->xxh); }

struct DigestStream::State {
  XXH3_state_t xxh;
};
DigestStream::DigestStream() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}
DigestStream::~DigestStream() = default;
DigestStream::DigestStream(DigestStream&&) noexcept = default;
DigestStream& DigestStream::operator=(DigestStream&&) noexcept = default;
void DigestStream::Update(Bytes bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}
Digest DigestStream::Finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.high64, hash.low64};
}

}  // namespace shardpack
