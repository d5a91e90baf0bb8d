// IndexMark: `.pack/index`, which `pack index` has in a folder while it works there and after it
// was killed: the indexes that it removes and writes.
//
//   std::string text = IndexMarkText({"train-0.pidx"});
//   std::optional<std::set<std::string>> names = ParseIndexMark(text);   // nullopt: somebody else's
//
// Its first line is one that no other file has; a file of that name without it is never replaced or
// removed.
//
// Thread-safety: functions.
// Errors: those of OwnedFolder.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_INDEX_MARK_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_INDEX_MARK_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/pack_names.h"

namespace shardpack {

std::string IndexMarkText(const std::set<std::string>& names);
// The names in it that an index can have.
std::optional<std::set<std::string>> ParseIndexMark(const std::string& text);

// By its content; false also for what is not a regular file, and for nothing.
absl::StatusOr<bool> IsIndexMark(const OwnedFolder& folder, std::string_view name);

// Before a build or a repair: FailedPrecondition (exit 5) when such a file is there, with what to
// do about it.
absl::Status CheckNotIndexed(const std::string& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_INDEX_MARK_H_
