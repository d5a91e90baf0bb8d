// OwnedFolder: a folder whose files pack has made, and the class that replaces and removes them.
//
//   absl::StatusOr<OwnedFolder> out = OwnedFolder::Open("OUT");
//   absl::Status removed = out->RemoveFile("train-000000.tar");   // OK when it is not there
//   absl::Status gone = out->RemoveTree(".pack/stage/node1-4711-9f3a");
//
// Nothing outside the folder is ever touched, whatever the origin of a name: a name is relative,
// and consists of components of [A-Za-z0-9._-], none of them empty, "." or "..". No component may
// be a link, except the last one; the link itself is then removed or renamed. The folder's own path
// comes from the user and may contain links.
//
// Lifetime: holds the folder open, so it stays the same folder if its path is renamed.
// Thread-safety: const from any thread.
// Errors: InvalidArgument for an invalid name; FailedPrecondition (exit 5) if a link or a file
// takes the place of a folder, or a folder that of a file; AlreadyExists; I/O.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_OWNED_FOLDER_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_OWNED_FOLDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/file.h"

namespace shardpack {

class OwnedFolder {
 public:
  // The folder must exist.
  static absl::StatusOr<OwnedFolder> Open(const std::string& path);
  // The same, but FailedPrecondition if the path itself is a link or a file.
  static absl::StatusOr<OwnedFolder> OpenNoLink(const std::string& path);
  // Whether this is a valid name in the folder.
  static bool IsName(std::string_view name);

  const std::string& path() const { return folder_.path(); }
  std::string PathOf(std::string_view name) const;

  enum class Kind { kNothing, kFile, kFolder, kOther };
  struct Look {
    Kind kind = Kind::kNothing;
    uint64_t bytes = 0;  // if it is a file
  };
  // What is there; a link is kOther.
  absl::StatusOr<Look> LookAt(std::string_view name) const;
  // The first `max_bytes` bytes of a file; NotFound if it does not exist.
  absl::StatusOr<std::string> Read(std::string_view name, uint64_t max_bytes) const;
  // The names in a folder, sorted; empty if it does not exist.
  absl::StatusOr<std::vector<std::string>> List(std::string_view name) const;
  // Removes a file or link; OK if it does not exist.
  absl::Status RemoveFile(std::string_view name) const;
  // Removes a folder if it is empty; OK if it does not exist or is not empty.
  absl::Status RemoveEmptyFolder(std::string_view name) const;
  // Removes a file, a link, or a folder with its contents; OK if it does not exist.
  absl::Status RemoveTree(std::string_view name) const;
  // Renames a file; replaces `to` if that is a file.
  absl::Status Replace(std::string_view from, std::string_view to) const;

 private:
  struct Place;
  explicit OwnedFolder(File folder) : folder_(std::move(folder)) {}
  absl::StatusOr<Place> Find(std::string_view name) const;

  File folder_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_OWNED_FOLDER_H_
