// What the folders of a listing mean: splits, classes, or nothing.
//
//   absl::Status assigned = AssignFolders(options, LabelOptionsOf(options), empty,
//                                         SourceKind::kFolder, listing);
//   if (listing.split_by_folder) ...   // train/cat/1.jpg: split train, class cat
//
// With options.find_splits the first folder of each path is taken for a split where all of them are
// named like one (IsSplitFolder); what was found is said in listing.notes. Where folders that are
// not named so lie beside splits with classes, nobody can tell: InvalidArgument, with the flags
// that say it (offered_flags.h).
//
// What is left in doubt is said in listing.warnings (folder_doubts.h).
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

// Of what the folders are: paths in a kFolder's can be typed as sources.
enum class SourceKind : uint8_t { kFolder, kArchive, kList };

// "train", "Val", "test", "dev", "train2017" and the like.
bool IsSplitFolder(std::string_view name);

absl::Status AssignFolders(const FolderSourceOptions& options, LabelOptions labels,
                           std::span<const std::string> empty_folders, SourceKind kind,
                           Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_MEANING_H_
