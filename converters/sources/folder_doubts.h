// Warnings about folders that may have been misunderstood: classes below one folder, splits below
// classes, splits taken for classes, masks taken for images.
//
//   WarnAboutFolders(options, labels, SourceKind::kFolder, listing);   // once labels are assigned
//
// Nothing is guessed: each warning ends with the option that selects the other meaning, if there is
// one. Internal to folder_meaning.
//
// Thread-safety: a pure function.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_DOUBTS_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_DOUBTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "converters/listing/labels.h"
#include "converters/listing/listing.h"
#include "converters/sources/folder_meaning.h"
#include "converters/sources/folder_source.h"

namespace shardpack {

inline constexpr size_t kNamedFolders = 3;

void WarnAboutFolders(const FolderSourceOptions& options, const LabelOptions& labels,
                      SourceKind kind, Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_DOUBTS_H_
