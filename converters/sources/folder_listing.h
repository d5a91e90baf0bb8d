// WalkFolder: finds every input below a root folder, in parallel, and merges what was found into
// sorted columns.
//
//   Descriptor root(open(path, O_PATH | O_DIRECTORY));
//   absl::StatusOr<FolderWalk> walk = WalkFolder(root.get(), path, options, io_pool, listed);
//   AssignLabels(label_options, walk->empty_folders, walk->listing);
//
// Thread-safety: one caller; uses all threads of the pool.
// Errors: as FolderSource::List.
// Memory: what the listing needs and about 25 bytes and the name of each file, given back folder by
// folder. Internal to the folder source.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_LISTING_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_LISTING_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct FolderWalk {
  Listing listing;                         // without labels and classes
  std::vector<std::string> empty_folders;  // that hold no row themselves, sorted
};

// `root_path` is absolute and resolved. `listed` is raised while files are found.
absl::StatusOr<FolderWalk> WalkFolder(int root, const std::string& root_path,
                                      const FolderSourceOptions& options, IoPool& pool,
                                      std::atomic<uint64_t>& listed);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_LISTING_H_
