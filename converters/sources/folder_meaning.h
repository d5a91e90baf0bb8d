// AssignFolders: decides what the folders of a listing mean: splits, classes, or nothing.
//
//   absl::Status assigned = AssignFolders(options, LabelOptionsOf(options), empty,
//                                         SourceKind::kFolder, listing);
//   if (listing.split_by_folder) ...   // train/cat/1.jpg: split train, class cat
//
// With options.find_splits the first folder of each path is a split if all first folders are named
// like one (IsSplitFolder); listing.notes reports that. If other folders lie beside splits with
// classes, the meaning is ambiguous: InvalidArgument, with the flags that resolve it
// (offered_flags.h). Remaining doubts go to listing.warnings (folder_doubts.h).
//
// Errors: as AssignLabels.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_MEANING_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_MEANING_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "converters/listing/labels.h"
#include "converters/listing/listing.h"
#include "converters/sources/folder_source.h"

namespace shardpack {

// The kind of source that has the folders; only paths in a kFolder can be typed as sources.
enum class SourceKind : uint8_t { kFolder, kArchive, kList };

// "train", "Val", "test", "dev", "train2017" and similar names.
bool IsSplitFolder(std::string_view name);

absl::Status AssignFolders(const FolderSourceOptions& options, LabelOptions labels,
                           std::span<const std::string> empty_folders, SourceKind kind,
                           Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_MEANING_H_
