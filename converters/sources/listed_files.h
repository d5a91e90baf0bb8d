// Listed files: shared by sources that are given the paths of their images instead of finding them.
//
//   listing.folders, folder, names, name_ends  are filled from PathBelowRoot(path, root)
//   LookAtFiles(root, options, io_pool, listing, listed);   // sizes, times, parts and skips
//
// Thread-safety: one caller; LookAtFiles uses all threads of the pool.
// Errors: PathBelowRoot returns InvalidArgument with the reason only; a file that cannot be packed
// is a skip, a missing part is kNoPart; LookAtFiles returns I/O errors that say nothing about a
// file.
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

// What the listed paths are relative to: `given`, or the folder of the list; for "-", standard
// input, the working folder.
std::string RootOf(const std::string& given, const std::string& list);

// The path relative to `root` (absolute and resolved), without empty and `.` components.
absl::StatusOr<std::string> PathBelowRoot(std::string_view path, std::string_view root);

// Uses `follow` and `sidecars` of the options. `listing.root` is absolute and resolved; `root` is a
// descriptor of it.
absl::Status LookAtFiles(int root, const FolderSourceOptions& options, IoPool& pool,
                         Listing& listing, std::atomic<uint64_t>& listed);

// InvalidArgument if none of the files exists, with the folder below the root that has all of them
// (offered_flags.h), or, if several have, only the folders' names. `named_by` is the list that
// names the files.
absl::Status CheckFound(int root, const std::string& named_by, const Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LISTED_FILES_H_
