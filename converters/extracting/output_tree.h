// OutputTree: a new folder for output files, which are written only below it.
//
//   absl::StatusOr<OutputTree> tree = OutputTree::Create("again", "what is written there");
//   absl::StatusOr<std::string> path = tree->Write("cat/7.mask.png", /*ending_bytes=*/9, bytes);
//   absl::Status finished = tree->Finish();
//
// Files appear complete, by rename. Until Finish the file `.pack-extract` describes what is written
// there, so that the same request can resume after an error or a kill: existing files with the same
// bytes are kept. Every folder is opened relative to its parent, and no link is ever followed: one
// that appears meanwhile is refused. A name that is too long, or that this run has used for other
// bytes, gets a hash at its end.
//
// Lifetime: a movable value that owns its descriptors.
// Thread-safety: one caller; a second run in the folder is refused, and so is a file system without
// locks.
// Errors: InvalidArgument for a folder that holds a dataset; FailedPrecondition for a folder that
// is not empty, a file in its place, a `.pack-extract` of another program, an unfinished other
// request, a file with other bytes, and links. Write: InvalidArgument for a name that the file
// system does not accept; I/O Status.
#ifndef SHARDPACK_CONVERTERS_EXTRACTING_OUTPUT_TREE_H_
#define SHARDPACK_CONVERTERS_EXTRACTING_OUTPUT_TREE_H_

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

namespace shardpack {

class OutputTree {
 public:
  // Creates the folder and its parents, or accepts an empty one, or one with the unfinished output
  // of the same request. The first line of `request` identifies it; the rest is for messages.
  static absl::StatusOr<OutputTree> Create(const std::string& out, std::string_view request);

  // The topmost parent folder that was created; "" if all existed.
  const std::string& made_parent() const { return made_parent_; }

  // Writes a new file, with its folders, and returns its path, which may differ from `path`. `path`
  // is relative, without empty, `.` and `..` components; its last `ending_bytes` are kept. A file
  // that could not be written completely is removed.
  absl::StatusOr<std::string> Write(std::string_view path, size_t ending_bytes, Bytes bytes);

  struct NewFile {
    std::string path;
    size_t ending_bytes = 0;
    Bytes bytes;
  };
  struct Written {
    absl::StatusOr<std::string> path;  // as Write returns it
    bool fresh = false;  // also false if this run has written the file for another sample
  };
  // Writes the files of one sample, which stay together: if one of their names was used for other
  // bytes, all of them get the same hash at their end. Returns one result per file; the first
  // Status other than InvalidArgument and AlreadyExists ends the call.
  absl::StatusOr<std::vector<Written>> WriteTogether(std::span<const NewFile> files);

  // Call this after everything is written.
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

  File root_, mark_, folder_;   // mark_: locked; folder_: the last one written to, or the root
  std::string entered_, real_;  // its path as requested, and as created
  std::string made_parent_;
  size_t max_name_ = 255;
  bool resumed_ = false;
  std::unordered_set<uint64_t> written_;  // in a resumed run: hashes of the paths
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_EXTRACTING_OUTPUT_TREE_H_
