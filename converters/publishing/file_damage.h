// DamageOf: what is wrong with a file of a dataset.
//
//   absl::StatusOr<std::string> damage = DamageOf("OUT/train-000000.tar", entry, /*full=*/true, nullptr);
//   if (damage.ok() && damage->empty()) ...   // it is as `entry` says
//
// Lifetime: borrows for the call.
// Thread-safety: any thread.
// Errors: those of looking, which say nothing about the file; whatever `on_block` answers.
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

// What a file is that is there and cannot be read: an error of looking; or damage, for a caller
// that would put another in its place.
enum class Unreadable : uint8_t { kIsError, kIsDamage };

// In words; "" when it is as `entry` says. `full`: every byte is hashed, else the size alone
// counts. `on_block`, which may be null, is called as bytes are read.
absl::StatusOr<std::string> DamageOf(const std::string& path, const FileEntry& entry, bool full,
                                     const std::function<absl::Status(uint64_t bytes)>& on_block,
                                     Unreadable unreadable = Unreadable::kIsError);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_FILE_DAMAGE_H_
