// RepairFolder: the only place where `pack repair` writes: it locks a published dataset, stages
// rebuilt files, and puts each in the place of a damaged one.
//
//   absl::StatusOr<RepairFolder> folder = RepairFolder::Open("OUT", /*fsync=*/true);
//   absl::Status staged = folder->Stage("shard", bytes);
//   absl::StatusOr<std::string> damage = folder->Publish("shard", entry);  // "": published
//   absl::Status closed = folder->Close();
//
// Only a file with exactly the size and XXH3-128 of `entry` is renamed into the dataset, and it
// replaces only the file of that name; OwnedFolder does all removing and renaming.
//
// Lifetime: holds the lock until destroyed; the destructor removes OUT/.pack, so a failed repair
// leaves nothing behind.
// Thread-safety: one caller at a time.
// Errors: InvalidArgument for a name that a dataset's file cannot have; FailedPrecondition (exit 5)
// when another run holds the lock or has not finished there, or when what stands in a file's place
// is not a file; I/O.
#ifndef SHARDPACK_CONVERTERS_REPAIRING_REPAIR_FOLDER_H_
#define SHARDPACK_CONVERTERS_REPAIRING_REPAIR_FOLDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/run_stage.h"
#include "formats/core/manifest.h"
#include "formats/io/file.h"

namespace shardpack {

// Ok when `.pack` holds nothing that another command still has to finish.
absl::Status CheckNothingUnfinished(const std::string& out);

class RepairFolder {
 public:
  static absl::StatusOr<RepairFolder> Open(const std::string& out, bool fsync);
  RepairFolder(RepairFolder&&) = default;
  RepairFolder& operator=(RepairFolder&&) = delete;
  ~RepairFolder();

  // Path of a file in the staging area.
  std::string StagePath(std::string_view name) const;
  // Creates a file there, replacing one of that name.
  absl::StatusOr<File> Create(std::string_view name) const;
  // Creates a file with these bytes.
  absl::Status Stage(std::string_view name, std::string_view bytes) const;
  // Removes a file, or a folder with its contents, from the staging area.
  absl::Status Discard(std::string_view name) const;
  // Moves a file from the staging area into the dataset and returns "". If it does not match
  // `entry`, changes nothing and returns what is wrong with it. `on_block`: as in DamageOf.
  absl::StatusOr<std::string> Publish(
      std::string_view name, const FileEntry& entry,
      const std::function<absl::Status(uint64_t)>& on_block = nullptr) const;
  // Removes .pack and releases the lock.
  absl::Status Close();

 private:
  absl::StatusOr<std::string> Replace(std::string_view name, const FileEntry& entry,
                                      const std::function<absl::Status(uint64_t)>& on_block) const;
  RepairFolder(OwnedFolder folder, File lock, bool fsync)
      : folder_(std::move(folder)), lock_(std::move(lock)), fsync_(fsync) {}

  OwnedFolder folder_;  // OUT
  File lock_;
  std::unique_ptr<RunStage> stage_;
  bool fsync_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_REPAIR_FOLDER_H_
