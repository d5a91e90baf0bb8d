// PackFolder: lists and removes what pack itself has put into a dataset's `.pack`. Anything else
// there belongs to other programs or the user, and is never removed.
//
//   absl::StatusOr<PackEntries> entries = ListPackFolder(*folder);
//   if (!entries->others.empty()) ...                        // ".pack/mine", ".pack/stage/notes"
//   absl::Status removed = RemovePackFolder(*folder);        // leaves those
//
// A file is pack's if it has a name that pack gives, is of the right kind, and has the right
// content: a lock is empty, a plan has its magic, a journal its lines, a note of `pack index` its
// first line, a note of --overwrite its mark or hash, and a list of names only names. In the stage
// of a run, pack's names are those of the dataset's files, as listed by the manifest or
// `.pack/made`, and those of a few scratch files.
//
// Thread-safety: any thread; removing requires the lock of the folder.
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
  std::vector<std::string> files;  // pack's; the lock comes last
  std::vector<std::string>
      folders;  // pack's, without those that hold files of others; inner ones first
  std::vector<std::string> others;  // sorted

  bool AnyOfPack() const { return !files.empty() || !folders.empty(); }
  // What a build or `pack index` still has to finish: all of pack's files except lock, stages, and
  // the mark of a dataset that was about to be replaced.
  std::vector<std::string> Unfinished() const;
};

// `.pack` itself is not included; all are empty if it does not exist.
absl::StatusOr<PackEntries> ListPackFolder(const OwnedFolder& dataset);

// FailedPrecondition when `.pack/journal.jsonl` exists but is not a journal: it is then unknown
// whether a build is unfinished.
absl::Status CheckJournal(const OwnedFolder& dataset, const PackEntries& entries);
// Call before writing to a name in `.pack`: FailedPrecondition when something is there that is not
// pack's.
absl::Status CheckMayWrite(const OwnedFolder& dataset, std::string_view name);

// Removes what a run has left in its stage, and the folder; FailedPrecondition if anything else is
// in it, which stays.
absl::Status RemoveRunStage(const OwnedFolder& dataset, const std::string& run);
// The same for everything in `.pack/stage`, even of runs still at work; files of others stay.
absl::Status RemoveStage(const OwnedFolder& dataset);
// Removes the lock last, except for the folder itself.
absl::Status RemovePackFolder(const OwnedFolder& dataset);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PACK_FOLDER_H_
