// What --overwrite takes away: the files that pack has made in a folder, and nothing else.
//
//   absl::StatusOr<std::set<std::string>> made = MadeFiles("OUT");  // by its manifest, or what an unfinished build says
//   absl::Status only = CheckHoldsOnly("OUT", *made, "move it away");  // else names what is not pack's
//   absl::Status removed = RemoveMade(*folder, *made);
//
// How one dataset comes into another's place: exchange.h.
//
// Lifetime, thread-safety: functions; under the lock of the folder.
// Errors: FailedPrecondition (exit 5) that names what pack has not made; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_REPLACEMENT_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_REPLACEMENT_H_

#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/pack_names.h"
#include "formats/core/manifest.h"

namespace shardpack {

// The names in a file of `.pack` that lists some, as far as pack can have made them; none when it
// is not there.
absl::StatusOr<std::set<std::string>> ReadNames(const std::string& path);
std::set<std::string> ParseNames(const std::string& text);
// Whether it is such a file's: each line is a name that pack can have made, but for a last one that
// is cut off.
bool IsNamesText(std::string_view text);
inline constexpr uint64_t kMaxNamesBytes = uint64_t{1} << 30;
std::string NamesText(const std::set<std::string>& names);

// Of the manifest, itself included.
std::set<std::string> FilesOf(const Manifest& manifest);
// What may be removed: the files of the manifest in the folder; without one, of the unfinished
// build there, as far as it has noted them.
absl::StatusOr<std::set<std::string>> MadeFiles(const std::string& dataset);
// What the runs of an unfinished build have noted as their own, whatever manifest lies there: the
// shards and indexes that they have finished, those that they were about to publish if they are
// there with the bytes that were noted, and the other files of a commit.
absl::StatusOr<std::set<std::string>> NotedFiles(const std::string& dataset);
// Whether a run has noted a file of that name with the bytes that it has there.
absl::StatusOr<bool> IsNoted(const std::string& dataset, const std::string& name);
// Ok when the folder holds these files, the folders they are in, `.pack`, and no more. `advice`
// ends the message.
absl::Status CheckHoldsOnly(const std::string& dataset, const std::set<std::string>& names,
                            std::string_view advice);

// Removes these files, and the folders they are in where nothing else is.
absl::Status RemoveMade(const OwnedFolder& folder, const std::set<std::string>& names);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_REPLACEMENT_H_
