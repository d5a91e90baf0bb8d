// The file `.pack/index`, which lists the indexes that `pack index` removes and writes;
// it exists while `pack index` works, and after it was killed.
//
//   std::string text = IndexMarkText({"train-0.pidx"});
//   std::optional<std::set<std::string>> names = ParseIndexMark(text);   // nullopt: not pack's
//
// Its first line is unique; a file of that name without this line is never replaced or removed.
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
// The listed names that an index can have.
std::optional<std::set<std::string>> ParseIndexMark(const std::string& text);

// Judged by content; false also if it is not a regular file, or does not exist.
absl::StatusOr<bool> IsIndexMark(const OwnedFolder& folder, std::string_view name);

// Call before a build or a repair: FailedPrecondition (exit 5), with advice, when such a file
// exists.
absl::Status CheckNotIndexed(const std::string& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_INDEX_MARK_H_
