// OutputTree: a new folder that files are written into, below it and nowhere else.
//
//   absl::StatusOr<OutputTree> tree = OutputTree::Create("again", "what is written there");
//   absl::StatusOr<std::string> path = tree->Write("cat/7.mask.png", /*ending_bytes=*/9, bytes);
//   absl::Status finished = tree->Finish();
//
// Files appear whole, by rename. Until Finish the file `.pack-extract` says what is written there,
// so that the same request goes on after an error or a kill: what is there with the same bytes is
// kept. Every folder is opened from the one that holds it, and no link is ever followed:
// one that appears meanwhile is refused. A name that is too long, or that this run has given to
// other bytes, becomes another one with a hash at its end.
//
// Lifetime: a movable value that owns its descriptors.
// Thread-safety: one caller; a second run in the folder is refused, and so is a file system without
// locks.
// Errors: InvalidArgument for a folder that holds a dataset; FailedPrecondition for one that is not
// empty, a file in its place, a `.pack-extract` of somebody else, another request's remainder, a
// file of other bytes, and links; of Write, InvalidArgument for a name that the file system does
// not take; I/O Status.
#ifndef SHARDPACK_CLI_COMMANDS_OUTPUT_TREE_H_
#define SHARDPACK_CLI_COMMANDS_OUTPUT_TREE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/io/bytes.h"
#include "formats/io/file.h"

namespace shardpack::cli {

class OutputTree {
 public:
  // Makes the folder with its parents, finds it empty, or finds what an unfinished run has left of
  // the same request: its first line tells requests apart, what follows is for messages.
  static absl::StatusOr<OutputTree> Create(const std::string& out, std::string_view request);

  // The first parent folder that had to be made; "" when all were there.
  const std::string& made_parent() const { return made_parent_; }

  // Writes a file that is not there yet, with its folders, and answers its path, which may be
  // another one. `path` is relative, without empty, `.` and `..` components; its last
  // `ending_bytes` stay as they are. Nothing is left of a file that could not be written whole.
  absl::StatusOr<std::string> Write(std::string_view path, size_t ending_bytes, Bytes bytes);

  struct NewFile {
    std::string path;
    size_t ending_bytes = 0;
    Bytes bytes;
  };
  struct Written {
    absl::StatusOr<std::string> path;  // as Write answers
    bool fresh = false;  // false also where this run has written the file for another sample
  };
  // The files of one sample, which stay together: where one of their names has been given to other
  // bytes, all of them get the same hash at their end. One answer a file; the first Status that is
  // neither InvalidArgument nor AlreadyExists ends the call.
  absl::StatusOr<std::vector<Written>> WriteTogether(std::span<const NewFile> files);

  // All is written.
  absl::Status Finish();

 private:
  OutputTree() = default;
  absl::Status Lock();
  absl::Status Begin(std::string_view request);
  absl::StatusOr<size_t> OtherFiles(bool begun) const;
  absl::Status Enter(std::string_view folders);
  absl::StatusOr<File> OpenFolder(const File& parent, std::string& name) const;
  std::string Fitting(std::string_view name, size_t ending_bytes) const;
  absl::Status CreatePart(Bytes bytes, bool& created) const;
  absl::Status RemovePart() const;
  absl::StatusOr<bool> IsTaken(const NewFile& file);
  absl::StatusOr<std::string> WriteAs(const NewFile& file, std::string_view hash, bool& fresh);
  absl::Status WriteNew(const std::string& name, Bytes bytes, bool& fresh);
  absl::Status CheckTaken(const File& folder, const std::string& name, Bytes bytes);

  File root_, mark_, folder_;   // mark_: locked; folder_: the last one written to, or the root's
  std::string entered_, real_;  // its path as it was asked for, and as it is
  std::string made_parent_;
  size_t max_name_ = 255;
  bool resumed_ = false;
  std::unordered_set<uint64_t> written_;  // of a resumed run: hashes of the paths
};

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_OUTPUT_TREE_H_
