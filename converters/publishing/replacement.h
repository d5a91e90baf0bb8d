// What --overwrite removes: the files that pack has made in a folder, and nothing else.
//
//   absl::StatusOr<std::set<std::string>> made = MadeFiles("OUT");  // manifest or notes
//   absl::Status only = CheckHoldsOnly("OUT", *made, "move it away");  // else names others
//   absl::Status removed = RemoveMade(*folder, *made);
//
// exchange.h swaps the datasets.
//
// Thread-safety: functions, called under the lock of the folder.
// Errors: FailedPrecondition (exit 5) that names what pack did not make; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_REPLACEMENT_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_REPLACEMENT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/pack_names.h"
#include "formats/core/manifest.h"

namespace shardpack {

// The names listed by a file of `.pack` that pack can have made; empty if the file does not exist.
absl::StatusOr<std::set<std::string>> ReadNames(const std::string& path);
std::set<std::string> ParseNames(const std::string& text);
// Whether it is the text of such a file: each line is a name that pack can have made, except for a
// last one that is cut off.
bool IsNamesText(std::string_view text);
inline constexpr uint64_t kMaxNamesBytes = uint64_t{1} << 30;
std::string NamesText(const std::set<std::string>& names);

// The files of the manifest, including itself.
std::set<std::string> FilesOf(const Manifest& manifest);
// The files that may be removed: those of the manifest; without a manifest, those that the
// unfinished build there has noted.
absl::StatusOr<std::set<std::string>> MadeFiles(const std::string& dataset);
// What the runs of an unfinished build have noted as their own, whether or not there is a manifest:
// the shards and indexes that they have finished, those that they were about to publish if present
// with the noted bytes, and the other files of a commit.
absl::StatusOr<std::set<std::string>> NotedFiles(const std::string& dataset);
// The same, with the lines of its journals that were read: finished ones, and pending ones.
absl::StatusOr<std::set<std::string>> NotedFiles(const std::string& dataset,
                                                 std::span<const ShardResult> lines,
                                                 std::span<const ShardResult> pending);
// Whether a run has noted a file with that name and the bytes that it has now.
absl::StatusOr<bool> IsNoted(const std::string& dataset, const std::string& name);
// The shard that this file is of, if a run has finished it, whatever bytes the file has now, or was
// about to publish it with the bytes that it has.
absl::StatusOr<std::optional<uint32_t>> NotedShard(const std::string& dataset,
                                                   const std::string& name);
// Ok when the folder holds only these files, the folders they are in, and `.pack`. `advice` ends
// the message.
absl::Status CheckHoldsOnly(const std::string& dataset, const std::set<std::string>& names,
                            std::string_view advice);

// Removes these files, and the folders they are in if those are then empty.
absl::Status RemoveMade(const OwnedFolder& folder, const std::set<std::string>& names);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_REPLACEMENT_H_
