// Corruptor: damages bytes like disks, networks and killed programs do, reproducibly for a seed.
//
//   Corruptor corruptor(7);
//   Damage damage = corruptor.FlipBit(shard_bytes);
//   EXPECT_TRUE(Noticed(damage.bytes)) << damage.what;
//
// Thread-safety: one caller at a time.
// Errors: none; if nothing can be damaged (no bytes, a page that is already zero), the bytes are
// returned unchanged with `changed` false.
// Units: bytes.
#ifndef SHARDPACK_FORMATS_TESTING_CORRUPTOR_H_
#define SHARDPACK_FORMATS_TESTING_CORRUPTOR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/testing/sample_generator.h"

namespace shardpack::testing {

struct Damage {
  std::string bytes;                // the damaged copy
  std::string what;                 // "bit 3 of byte 512 flipped"
  uint64_t offset = 0, length = 0;  // the range that differs, in the original bytes
  bool changed = false;
};

class Corruptor {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  explicit Corruptor(uint64_t seed) : random_(seed) {}

  Damage FlipBit(std::string_view bytes);   // any bit
  Damage Truncate(std::string_view bytes);  // to any shorter length

  // The same at a given position.
  static Damage FlipBitAt(std::string_view bytes, uint64_t bit);
  static Damage TruncateTo(std::string_view bytes, uint64_t size);
  static Damage ZeroPageAt(std::string_view bytes, uint64_t page);  // an aligned page

 private:
  Random random_;
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_FORMATS_TESTING_CORRUPTOR_H_
