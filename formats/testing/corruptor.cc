#include "formats/testing/corruptor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shardpack::testing {

Damage Corruptor::FlipBit(std::string_view bytes) {
  if (bytes.empty()) return {};
  return FlipBitAt(bytes, random_.Below(bytes.size() * 8));
}

Damage Corruptor::Truncate(std::string_view bytes) {
  if (bytes.empty()) return {};
  return TruncateTo(bytes, random_.Below(bytes.size()));
}

Damage Corruptor::FlipBitAt(std::string_view bytes, uint64_t bit) {
  Damage damage{
      .bytes = std::string(bytes), .what = {}, .offset = bit / 8, .length = 1, .changed = true};
  damage.what = absl::StrCat("bit ", bit % 8, " of byte ", bit / 8, " flipped");
  damage.bytes[bit / 8] = static_cast<char>(damage.bytes[bit / 8] ^ (1 << bit % 8));
  return damage;
}

Damage Corruptor::TruncateTo(std::string_view bytes, uint64_t size) {
  return {.bytes = std::string(bytes.substr(0, size)),
          .what = absl::StrCat("cut from ", bytes.size(), " to ", size, " bytes"),
          .offset = size,
          .length = bytes.size() - size,
          .changed = size < bytes.size()};
}

Damage Corruptor::ZeroPageAt(std::string_view bytes, uint64_t page) {
  Damage damage{.bytes = std::string(bytes), .what = {}, .offset = page * kPageBytes};
  damage.length = std::min<uint64_t>(kPageBytes, bytes.size() - damage.offset);
  damage.what = absl::StrCat(damage.length, " bytes at offset ", damage.offset, " zeroed");
  std::fill_n(damage.bytes.begin() + static_cast<ptrdiff_t>(damage.offset), damage.length, '\0');
  damage.changed = damage.bytes != bytes;
  return damage;
}

}  // namespace shardpack::testing
