// DamageOf: checks a file of a dataset for damage.
//
//   absl::StatusOr<std::string> damage =
//       DamageOf("OUT/train-000000.tar", entry, /*full=*/true, nullptr);
//   if (damage.ok() && damage->empty()) ...   // it matches `entry`
//
// Lifetime: borrows for the call.
// Thread-safety: any thread.
// Errors: failures of the check itself, which say nothing about the file; those of `on_block`.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_FILE_DAMAGE_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_FILE_DAMAGE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/manifest.h"

namespace shardpack {

// How to treat a file that exists but cannot be read: as an error of the check, or as damage, for a
// caller that would replace the file.
enum class Unreadable : uint8_t { kIsError, kIsDamage };

// A description of the damage; "" if the file matches `entry`. `full`: hash every byte; otherwise
// check the size only. `on_block`, which may be null, is called as bytes are read.
absl::StatusOr<std::string> DamageOf(const std::string& path, const FileEntry& entry, bool full,
                                     const std::function<absl::Status(uint64_t bytes)>& on_block,
                                     Unreadable unreadable = Unreadable::kIsError);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_FILE_DAMAGE_H_
