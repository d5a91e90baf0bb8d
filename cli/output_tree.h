// OutputTree: a new folder that files are written into, below it and nowhere else.
//
//   absl::StatusOr<OutputTree> tree = OutputTree::Create("again");
//   absl::StatusOr<std::string> path = tree->Write("cat/7.mask.png", /*ending_bytes=*/9, bytes);
//
// Every folder is opened from the one that holds it, and no link is ever followed: one that appears
// meanwhile is refused. A name that is too long, or taken by other bytes, becomes another one with a
// hash at its end. Lifetime: a movable value that owns its descriptors. Thread-safety: one caller.
// Errors: FailedPrecondition for a folder that is not empty, a file in its place, and links;
// InvalidArgument for a name that the file system does not take; I/O Status.
#ifndef SHARDPACK_CLI_OUTPUT_TREE_H_
#define SHARDPACK_CLI_OUTPUT_TREE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"

namespace shardpack::cli {

class OutputTree {
 public:
  // Makes the folder with its parents, or finds it empty.
  static absl::StatusOr<OutputTree> Create(const std::string& out);

  // The first parent folder that had to be made; "" when all were there.
  const std::string& made_parent() const { return made_parent_; }

  // Writes a file that is not there yet, with its folders, and answers its path, which may be
  // another one. `path` is relative, without empty, `.` and `..` components; its last `ending_bytes`
  // stay as they are. Nothing is left of a file that could not be written whole.
  absl::StatusOr<std::string> Write(std::string_view path, size_t ending_bytes, Bytes bytes);

 private:
  OutputTree() = default;
  absl::Status Enter(std::string_view folders);
  absl::StatusOr<File> OpenFolder(const File& parent, std::string& name) const;
  std::string Fitting(std::string_view name, size_t ending_bytes) const;
  absl::Status WriteNew(const std::string& name, Bytes bytes) const;

  File root_, folder_;          // folder_: the last one written to, unless that is the root
  std::string entered_, real_;  // its path as it was asked for, and as it is
  std::string made_parent_;
  size_t longest_name_ = 255;
};

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_OUTPUT_TREE_H_
