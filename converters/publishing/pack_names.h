// PackNames: what the files are called that pack has in `.pack` of a dataset's folder; each name in
// this one place.
//
//   const std::string plan = absl::StrCat("OUT/", std::string(kPlanName));
//   if (IsOwnJournalName("journal-node1-0a1b2c3d-4711-9f3a00c2.jsonl")) ...
//
// Names are relative to the dataset's folder.
//
// Thread-safety: pure.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_PACK_NAMES_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_PACK_NAMES_H_

#include <array>
#include <string>
#include <string_view>

namespace shardpack {

inline constexpr std::string_view kPackFolder = ".pack";
inline constexpr std::string_view kStageFolder = ".pack/stage";
inline constexpr std::string_view kLockName = ".pack/lock";
inline constexpr std::string_view kPlanName = ".pack/plan";
// What a build may put into the folder, one name a line.
inline constexpr std::string_view kMadeName = ".pack/made";
// What a commit has put there, or is about to, beside the shards: nobody else's file is among them.
inline constexpr std::string_view kMadeExtrasName = ".pack/made-extras";
// In a dataset that has replaced another one: the mark of that one, and its files. See exchange.h.
inline constexpr std::string_view kReplacedName = ".pack/replaced";
// In a dataset that is about to be replaced, or was: its mark.
inline constexpr std::string_view kReplacedByName = ".pack/replaced-by";
// In a folder that --overwrite builds beside OUT: what OUT is called.
inline constexpr std::string_view kReplacesName = ".pack/replaces";
// See index_mark.h.
inline constexpr std::string_view kIndexMark = ".pack/index";
// Of a run that works alone; a worker's is WorkersJournal.
inline constexpr std::string_view kJournalName = ".pack/journal.jsonl";

// Those of a build, but for its journals.
inline constexpr std::array<std::string_view, 6> kBuildNotes = {
    kPlanName, kMadeName, kMadeExtrasName, kReplacedName, kReplacedByName, kReplacesName};

// Empty folders that --overwrite exchanges to see whether the file system can.
inline constexpr std::array<std::string_view, 2> kTriedFolders = {".pack/stage/tried-1",
                                                                  ".pack/stage/tried-2"};

// The last component.
inline constexpr std::string_view NameInFolder(std::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

// What a run calls its stage, a folder in `.pack/stage`: <host>-<boot>-<process>-<chance>.
bool IsRunName(std::string_view name);
// The journal of that run.
std::string WorkersJournal(std::string_view run);
// Whether pack gives a journal this name, which is that in `.pack`.
bool IsOwnJournalName(std::string_view name);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PACK_NAMES_H_
