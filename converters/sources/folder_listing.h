// WalkFolder: finds every input below a root folder, in parallel, and merges the results into
// sorted columns.
//
//   Descriptor root(open(path, O_PATH | O_DIRECTORY));
//   absl::StatusOr<FolderWalk> walk = WalkFolder(root.get(), path, options, io_pool, listed);
//   AssignLabels(label_options, walk->empty_folders, walk->listing);
//
// Internal to the folder source.
//
// Thread-safety: one caller; uses all threads of the pool.
// Errors: as FolderSource::List.
// Memory: the listing's, plus about 25 bytes and the name per file, freed folder by folder.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_LISTING_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_LISTING_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/sources/folder_division.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct FolderWalk {
  Listing listing;                         // without labels and classes
  std::vector<std::string> empty_folders;  // folders without rows of their own, sorted
};

struct WalkedFolders;

// What WalkPart walks: these folders, with all below them but those that belong to other parts.
struct PartWalk {
  const FolderPart& folders;
  const absl::flat_hash_set<std::string_view>* of_parts = nullptr;  // the folders of all parts
  const std::atomic<int>* stop = nullptr;                           // nonzero: Cancelled
};
absl::Status WalkPart(int root, const std::string& root_path, const FolderSourceOptions& options,
                      const PartWalk& part, IoPool& pool, std::atomic<uint64_t>& listed,
                      WalkedFolders& into);

// `root_path` is absolute and resolved. `listed` grows as files are found.
absl::StatusOr<FolderWalk> WalkFolder(int root, const std::string& root_path,
                                      const FolderSourceOptions& options, IoPool& pool,
                                      std::atomic<uint64_t>& listed);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_LISTING_H_
