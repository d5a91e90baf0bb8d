// Keys: the name of each sample in the dataset, made from its path, or its number on request.
//
//   std::string key = PathKey("cat/a.v2.JPEG");   // "cat/a_v2"
//   MakePortableKey(95, key = "v1.0/jack-o'-lantern");   // "v1_0/jack-o=27-lantern"
//   auto keys = PlanKeys(listing, rows, KeyMode::kAuto, OnDuplicateKey::kAuto, limits);
//
// A key is unique over the dataset, also when upper and lower case of the extension or the Unicode
// form (NFC, NFD) are all that differs. Portable keys: bytes of [A-Za-z0-9_/+=@,-], no empty
// component, none beginning with "." or "__", and short enough that key, dot and longest extension
// fit the 100 bytes of a plain tar header. With kAuto each key is made so by itself: what one file
// is called changes no other key.
//
// Thread-safety: pure functions; PlanKeys uses TBB inside.
// Errors: FailedPrecondition for collisions, with the list of them; InvalidArgument for paths that
// cannot be keys.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_PLANNING_KEYS_H_
#define SHARDPACK_CONVERTERS_PLANNING_KEYS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/listing/skip.h"

namespace shardpack {

enum class KeyMode : uint8_t { kAuto, kPath, kIndex };
// kAuto: kSuffix; but kError where the files look like images and their masks.
enum class OnDuplicateKey : uint8_t { kAuto, kError, kSuffix, kSkip };

constexpr auto WordsOf(KeyMode) {
  return std::to_array<std::string_view>({"auto", "path", "index"});
}
constexpr auto WordsOf(OnDuplicateKey) {
  return std::to_array<std::string_view>({"auto", "error", "suffix", "skip"});
}

inline constexpr size_t kMaxPortableBytes = 100;  // of key, dot and extension

struct KeyLimits {
  size_t max_extension_bytes = 4;  // of all fields of a sample
  size_t max_key_bytes = 0;        // of the format; 0 = any
};

struct KeyPlan {
  bool index_keys = false;
  // Not 0: MakePortableKey of this length, suffix included. 0 where that would change no key.
  size_t portable_bytes = 0;
  std::map<uint32_t, uint32_t> suffixes;  // row -> n: its key is the path's with "_<n>"
  std::vector<Skip> skips;                // duplicate keys, by row
  std::vector<std::string> notes;         // for the user
};

// The path without its last extension, every other dot of the file's name as "_".
std::string PathKey(std::string_view path);
void AppendPathKey(std::string_view folder, std::string_view name, std::string& out);
// The key that the source gives the row, or else that of its path.
void AppendRowKey(const Listing& listing, uint64_t row, std::string& out);
// How much AppendRowKey appends.
size_t RowKeyBytes(const Listing& listing, uint64_t row);
void AppendKeySuffix(uint32_t n, std::string& key);
// At least nine digits.
void AppendIndexKey(uint64_t position, std::string& out);

bool IsPortableKey(std::string_view key);

// Leaves a portable key of at most `max_bytes` as it is. Else a dot becomes "_", any other byte
// that is not portable "=" and two hexadecimal digits, the first "_" of a component's "__" too, an
// empty component "_"; what is then too long is cut, and "-" with the 16 digits of the hash of the
// whole key (XXH3-64) appended. Says whether it changed the key. `max_bytes` is at least
// kMinPortableBytes.
inline constexpr size_t kMinPortableBytes = 32;
bool MakePortableKey(size_t max_bytes, std::string& key);

// Keys that the source gives are kept as they are, unless `mode` is kIndex: they are never replaced
// by numbers. `rows`, ascending, are those to be packed; duplicates are taken out of them with
// OnDuplicateKey::kSkip.
absl::StatusOr<KeyPlan> PlanKeys(const Listing& listing, std::vector<uint32_t>& rows, KeyMode mode,
                                 OnDuplicateKey on_duplicate, const KeyLimits& limits);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_KEYS_H_
