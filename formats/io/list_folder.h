// ListFolder: the names in a folder, sorted. ListOpenFolder: its entries, one by one.
//
//   absl::StatusOr<std::vector<std::string>> names = ListFolder("OUT/.pack");
//   const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
//   absl::Status read = ListOpenFolder(folder, path, [&](const dirent& entry) {
//     names.push_back(entry.d_name);
//     return true;
//   });
//
// Thread-safety: any thread.
// Errors: IoStatus. After an error ListFolder returns no names, even if some were read, and what
// ListOpenFolder has shown is not all.
#ifndef SHARDPACK_FORMATS_IO_LIST_FOLDER_H_
#define SHARDPACK_FORMATS_IO_LIST_FOLDER_H_

#include <dirent.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shardpack {

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

// Shows every entry but "." and "..", until `take` returns false. Closes the descriptor, which is
// open for reading; below zero, the call that was to open it has failed, and errno says why. `path`
// is for errors.
absl::Status ListOpenFolder(int descriptor, const std::string& path,
                            const std::function<bool(const dirent& entry)>& take);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_LIST_FOLDER_H_
