// OwnedFolder: a folder whose files pack has made, and the one place that removes and renames them.
//
//   absl::StatusOr<OwnedFolder> out = OwnedFolder::Open("OUT");
//   absl::Status removed = out->RemoveFile("train-000000.tar");   // OK when it is not there
//   absl::Status gone = out->RemoveTree(".pack/stage/node1-4711-9f3a");
//
// Nothing outside of the folder is ever touched, whoever has written the names: a name is relative,
// of components of [A-Za-z0-9._-], none of them empty, "." or ".."; and no component of it may be a
// link, except the last one, which is then removed or renamed itself. The folder's own path is the
// user's and may lead over links.
//
// Lifetime: holds the folder open, so that it stays the same one if its path is renamed.
// Thread-safety: const from any thread.
// Errors: InvalidArgument for a name that cannot be one; FailedPrecondition (exit 5) where a link
// or a file stands in a folder's place, or a folder in a file's; AlreadyExists; I/O.
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
  // The same, but FailedPrecondition where the path itself is a link, or a file.
  static absl::StatusOr<OwnedFolder> OpenNoLink(const std::string& path);
  // True for what a name in the folder may be.
  static bool IsName(std::string_view name);

  const std::string& path() const { return folder_.path(); }
  std::string PathOf(std::string_view name) const;

  enum class Kind { kNothing, kFile, kFolder, kOther };
  struct Look {
    Kind kind = Kind::kNothing;
    uint64_t bytes = 0;  // of a file
  };
  // What lies there; a link is kOther.
  absl::StatusOr<Look> LookAt(std::string_view name) const;
  // The beginning of a file, at most so many bytes; NotFound when it is not there.
  absl::StatusOr<std::string> Read(std::string_view name, uint64_t max_bytes) const;
  // The names in a folder, sorted; none when it is not there.
  absl::StatusOr<std::vector<std::string>> List(std::string_view name) const;
  // Removes a file or link; OK when it is not there.
  absl::Status RemoveFile(std::string_view name) const;
  // Removes a folder if it is empty; OK when it is not there, or is not empty.
  absl::Status RemoveEmptyFolder(std::string_view name) const;
  // Removes a file, a link, or a folder and all below it; OK when it is not there.
  absl::Status RemoveTree(std::string_view name) const;
  // Renames a file, in place of a file that `to` may be.
  absl::Status Replace(std::string_view from, std::string_view to) const;

 private:
  struct Place;
  explicit OwnedFolder(File folder) : folder_(std::move(folder)) {}
  absl::StatusOr<Place> Find(std::string_view name) const;

  File folder_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_OWNED_FOLDER_H_
