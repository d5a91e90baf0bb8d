// RepairFolder: the one place where `pack repair` writes: the lock of a published dataset, a staging area, and the step
// that puts a rebuilt file in the place of a damaged one.
//
//   absl::StatusOr<RepairFolder> folder = RepairFolder::Open("OUT", /*fsync=*/true);
//   absl::StatusOr<std::string> damage = folder->Publish(folder->StagePath("shard"), entry);   // "": it is in its place
//   absl::Status closed = folder->Close();
//
// Nothing but a file with exactly the size and XXH3-128 of `entry` is ever renamed into the dataset, and over nothing but
// the file of that name. Lifetime: holds the lock until destroyed; the destructor removes OUT/.pack, so that a failed
// repair leaves nothing behind. Thread-safety: one caller at a time. Errors: FailedPrecondition (exit 5) when another run
// holds the lock, or what stands in a file's place is not a file; I/O.
#ifndef SHARDPACK_CONVERTERS_REPAIR_FOLDER_H_
#define SHARDPACK_CONVERTERS_REPAIR_FOLDER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"

namespace shardpack {

// What is wrong with a file of a dataset, in words; "" when it is as `entry` says. `full`: every byte is hashed, else
// the size alone counts. `on_block` may be null.
absl::StatusOr<std::string> DamageOf(const std::string& path, const FileEntry& entry, bool full,
                                     const std::function<absl::Status(uint64_t bytes)>& on_block);

class RepairFolder {
 public:
  static absl::StatusOr<RepairFolder> Open(const std::string& out, bool fsync);
  RepairFolder(RepairFolder&&) = default;
  RepairFolder& operator=(RepairFolder&&) = delete;
  ~RepairFolder();

  // For files that wait for Publish; `name` has no slash.
  std::string StagePath(const std::string& name) const { return out_ + "/.pack/stage/" + name; }
  // Writes a small file there. Replaces what a killed run has left.
  absl::Status Stage(const std::string& name, std::string_view bytes) const;
  // Moves `path`, a file of the staging area, into the dataset. Where it is not what `entry` says, nothing has changed,
  // and the answer is what is wrong with it; else "".
  absl::StatusOr<std::string> Publish(const std::string& path, const FileEntry& entry) const;
  // Removes .pack and lets the lock go.
  absl::Status Close();

 private:
  absl::StatusOr<std::string> Replace(const std::string& path, const FileEntry& entry) const;
  RepairFolder() = default;

  std::string out_;
  bool fsync_ = true;
  File lock_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIR_FOLDER_H_
