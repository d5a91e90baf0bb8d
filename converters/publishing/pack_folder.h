// PackFolder: what pack itself has put into `.pack` of a dataset's folder; the rest is somebody
// else's, and is never removed.
//
//   absl::StatusOr<PackEntries> entries = ListPackFolder(*folder);
//   if (!entries->others.empty()) ...                        // ".pack/mine", ".pack/stage/notes"
//   absl::Status removed = RemovePackFolder(*folder);        // leaves those
//
// Of pack is what has a name that pack gives, the kind, and the content: a lock is empty, a plan
// has its magic, a journal its lines, what `pack index` notes its first line, what --overwrite
// notes its mark or hash, and lists of names nothing but names. In the stage of a run these are the
// names of the dataset's files, as the manifest or `.pack/made` lists them, and those of a few
// scratch files.
//
// Thread-safety: any thread; removing under the lock of the folder.
// Errors: those of OwnedFolder.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PACK_FOLDER_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PACK_FOLDER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/publishing/owned_folder.h"

namespace shardpack {

// Relative to the dataset's folder.
struct PackEntries {
  std::vector<std::string> files;    // of pack; the lock comes last
  std::vector<std::string> folders;  // of pack, with nothing of others in them; inner ones first
  std::vector<std::string> others;   // sorted

  bool AnyOfPack() const { return !files.empty() || !folders.empty(); }
  // What a build or `pack index` has still to finish: all of pack but lock, stages, and the mark of
  // a dataset that was about to be replaced.
  std::vector<std::string> Unfinished() const;
};

// `.pack` itself is not among them; all are empty when there is none.
absl::StatusOr<PackEntries> ListPackFolder(const OwnedFolder& dataset);

// FailedPrecondition when `.pack/journal.jsonl` is there and is none: then nobody can tell whether
// a build has to be finished.
absl::Status CheckJournal(const OwnedFolder& dataset, const PackEntries& entries);
// FailedPrecondition when what lies at a name in `.pack` is not a file of pack, which is about to
// write it.
absl::Status CheckMayWrite(const OwnedFolder& dataset, std::string_view name);

// Removes what a run has left in its stage, and the folder; FailedPrecondition when something else
// is in it, which stays.
absl::Status RemoveRunStage(const OwnedFolder& dataset, const std::string& run);
// The same for all that is in `.pack/stage`, whoever else is at work; what is of others stays.
absl::Status RemoveStage(const OwnedFolder& dataset);
// The lock goes last but for the folder itself.
absl::Status RemovePackFolder(const OwnedFolder& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PACK_FOLDER_H_
