// Listed files: what sources have in common that are told the paths of their images, and do not
// find them.
//
//   listing.folders, folder, names, name_ends  are filled from PathBelowRoot(path, root)
//   LookAtFiles(root, options, io_pool, listing, listed);   // sizes, times, parts and skips
//
// Thread-safety: one caller; LookAtFiles uses all threads of the pool.
// Errors: PathBelowRoot answers InvalidArgument with the reason alone; a file that cannot be packed
// is a skip, a part that is not there is kNoPart; LookAtFiles answers I/O errors that say nothing
// about a file.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LISTED_FILES_H_
#define SHARDPACK_CONVERTERS_SOURCES_LISTED_FILES_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/listing/listing.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

// The path as one below `root` (absolute and resolved), without empty and `.` components.
absl::StatusOr<std::string> PathBelowRoot(std::string_view path, std::string_view root);

// Of the options, `follow` and `sidecars` count. `listing.root` is absolute and resolved; `root` a
// descriptor of it.
absl::Status LookAtFiles(int root, const FolderSourceOptions& options, IoPool& pool,
                         Listing& listing, std::atomic<uint64_t>& listed);

// InvalidArgument where not one of the files is there, with the folder below the root that has all
// of them (offered_flags.h); where several have, with their names alone. `named_by` is what lists
// them.
absl::Status CheckFound(int root, const std::string& named_by, const Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LISTED_FILES_H_
