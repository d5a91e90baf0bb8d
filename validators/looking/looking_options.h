// The choices of diff and dups, without what carries them out: a command line stores them.
//
//   DiffOptions options{.by = DiffBy::kKey};
//
// Units: bits of the perceptual hash.
#ifndef SHARDPACK_VALIDATORS_LOOKING_LOOKING_OPTIONS_H_
#define SHARDPACK_VALIDATORS_LOOKING_LOOKING_OPTIONS_H_

#include <cstdint>

namespace shardpack {

// What makes two samples the same one.
enum class DiffBy : uint8_t { kKey, kPath, kHash };

inline constexpr int kNearDistance = 6;  // the default
inline constexpr int kMaxNearDistance = 16;

}  // namespace shardpack

#endif  // SHARDPACK_VALIDATORS_LOOKING_LOOKING_OPTIONS_H_
