// ReplaceableFiles: the files of a dataset's folder that earlier runs have noted as their own, as
// they were when this run first looked. A run replaces those; any other file may be the user's.
//
//   ReplaceableFiles files("OUT");
//   absl::Status noted = files.Note("train-000000.tar");
//   absl::Status mine = files.CheckMayReplace("train-000000.tar");  // OK unless it changed since
//
// Thread-safety: const from any thread; Note needs to be alone.
// Errors: FailedPrecondition (exit 5); I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_REPLACEABLE_FILES_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_REPLACEABLE_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shardpack {

class ReplaceableFiles {
 public:
  explicit ReplaceableFiles(std::string folder) : folder_(std::move(folder)) {}

  // Remembers how the file is now, if it is there.
  absl::Status Note(const std::string& name);
  bool Knows(const std::string& name) const { return seen_.contains(name); }
  // Whether it was noted, is there, and has not changed since.
  absl::StatusOr<bool> IsAsNoted(const std::string& name) const;
  // OK when nothing is there. A file that appeared or changed since is not ours, unless another run
  // of ours has noted its bytes.
  absl::Status CheckMayReplace(const std::string& name) const;

 private:
  struct Seen {  // a file's identity and state
    uint64_t device, inode, bytes;
    int64_t modified_ns;
    bool operator==(const Seen&) const = default;
  };
  absl::StatusOr<std::optional<Seen>> LookAt(const std::string& name) const;
  bool IsAsNoted(const std::string& name, const std::optional<Seen>& there) const;

  std::string folder_;
  std::map<std::string, Seen> seen_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_REPLACEABLE_FILES_H_
