// Keys: the name of each sample in the dataset, made from its path, or its number on request.
//
//   std::string key = PathKey("cat/a.v2.JPEG");   // "cat/a_v2"
//   MakePortableKey(95, key = "v1.0/jack-o'-lantern");   // "v1_0/jack-o=27-lantern"
//   auto keys = PlanKeys(listing, rows, KeyMode::kAuto, OnDuplicateKey::kAuto, limits);
//
// Keys are unique in the dataset, even for paths that differ only in the case of the extension or
// in their Unicode form (NFC, NFD). Portable keys consist of bytes of [A-Za-z0-9_/+=@,-], have no
// empty component and none that begins with "." or "__", and are short enough that key, dot and
// longest extension fit the 100 bytes of a plain tar header. kAuto makes each key portable by
// itself: the name of one file never changes another file's key.
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
// kAuto: kSuffix, or kError if the files look like images and their masks.
enum class OnDuplicateKey : uint8_t { kAuto, kError, kSuffix, kSkip };

constexpr auto WordsOf(KeyMode) {
  return std::to_array<std::string_view>({"auto", "path", "index"});
}
constexpr auto WordsOf(OnDuplicateKey) {
  return std::to_array<std::string_view>({"auto", "error", "suffix", "skip"});
}

inline constexpr size_t kMaxPortableBytes = 100;  // of key, dot and extension

struct KeyLimits {
  size_t max_extension_bytes = 4;  // over all fields of a sample
  size_t max_key_bytes = 0;        // limit of the format; 0 = any
};

struct KeyPlan {
  bool index_keys = false;
  // If not 0: MakePortableKey with this length, suffix included. 0 if that would change no key.
  size_t portable_bytes = 0;
  std::map<uint32_t, uint32_t> suffixes;  // row -> n: its key is that of its path plus "_<n>"
  std::vector<Skip> skips;                // duplicate keys, sorted by row
  std::vector<std::string> notes;         // for the user
};

// The path without its last extension; every other dot of the file name becomes "_".
std::string PathKey(std::string_view path);
void AppendPathKey(std::string_view folder, std::string_view name, std::string& out);
// The key given by the source, else that of the path.
void AppendRowKey(const Listing& listing, uint64_t row, std::string& out);
// The number of bytes that AppendRowKey appends.
size_t RowKeyBytes(const Listing& listing, uint64_t row);
void AppendKeySuffix(uint32_t n, std::string& key);
// At least nine digits.
void AppendIndexKey(uint64_t position, std::string& out);

bool IsPortableKey(std::string_view key);

// Leaves a portable key of at most `max_bytes` unchanged. Otherwise a dot becomes "_", any other
// byte that is not portable "=" and two hexadecimal digits, a leading "_" of a component that
// begins with "__" as well, and an empty component "_"; a result that is too long is cut, and "-"
// with the 16 digits of the whole key's hash (XXH3-64) is appended. Returns whether it changed the
// key. `max_bytes` is at least kMinPortableBytes.
inline constexpr size_t kMinPortableBytes = 32;
bool MakePortableKey(size_t max_bytes, std::string& key);

// Keys given by the source are kept unless `mode` is kIndex: they are never replaced by numbers
// otherwise. `rows` (sorted) are the rows to pack; OnDuplicateKey::kSkip removes duplicates from
// it.
absl::StatusOr<KeyPlan> PlanKeys(const Listing& listing, std::vector<uint32_t>& rows, KeyMode mode,
                                 OnDuplicateKey on_duplicate, const KeyLimits& limits);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_KEYS_H_
