// PackNames: the names of pack's files in a dataset's `.pack`, each defined only here.
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
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardpack {

inline constexpr std::string_view kPackFolder = ".pack";
inline constexpr std::string_view kStageFolder = ".pack/stage";
// Of the name of a run's lock in that folder.
inline constexpr std::string_view kLockSuffix = ".lock";
// Of workers that share a folder: their beats, who builds which shard, and what went wrong.
inline constexpr std::string_view kOwnersFolder = ".pack/owners";
inline constexpr std::string_view kLeaseFolder = ".pack/lease";
inline constexpr std::string_view kFailedFolder = ".pack/failed";
inline constexpr std::string_view kLockName = ".pack/lock";
inline constexpr std::string_view kPlanName = ".pack/plan";
// The names that a build may put into the folder, one per line.
inline constexpr std::string_view kMadeName = ".pack/made";
// What a commit has written there besides the shards, or is about to; all of these files are ours.
inline constexpr std::string_view kMadeExtrasName = ".pack/made-extras";
// In a dataset that replaced another one: that one's mark and its files. See exchange.h.
inline constexpr std::string_view kReplacedName = ".pack/replaced";
// In a dataset that was or is about to be replaced: its mark.
inline constexpr std::string_view kReplacedByName = ".pack/replaced-by";
// In a folder that --overwrite builds beside OUT: the name of OUT.
inline constexpr std::string_view kReplacesName = ".pack/replaces";
// Of a build with too many skips: what its skipped.jsonl would have.
inline constexpr std::string_view kRefusedName = ".pack/skipped.jsonl";
// See index_mark.h.
inline constexpr std::string_view kIndexMark = ".pack/index";
// Journal of a run that works alone; a worker's journal is WorkersJournal.
inline constexpr std::string_view kJournalName = ".pack/journal.jsonl";

// The files of a build, without its journals.
inline constexpr std::array<std::string_view, 7> kBuildNotes = {
    kPlanName,       kMadeName,     kMadeExtrasName, kReplacedName,
    kReplacedByName, kReplacesName, kRefusedName};

// Empty folders that --overwrite exchanges to test the file system.
inline constexpr std::array<std::string_view, 2> kTriedFolders = {".pack/stage/tried-1",
                                                                  ".pack/stage/tried-2"};

// The last component.
inline constexpr std::string_view NameInFolder(std::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

// Whether this is the name of a run's stage, a folder in `.pack/stage`:
// <host>-<boot>-<process>-<chance>.
bool IsRunName(std::string_view name);
// The name of that run's journal.
std::string WorkersJournal(std::string_view run);
// Its beat.
std::string OwnerName(std::string_view run);
// The lease of a shard, in its generation (from 1): `.pack/lease/012/012345.1`. The folders hold a
// thousand shards each.
std::string LeaseFolderName(uint32_t shard);
std::string LeaseName(uint32_t shard, uint32_t generation);
// A lease holds the name of its owner's run; what is longer is not one.
inline constexpr uint64_t kMaxOwnerBytes = 256;
// The shard and the generation; nullopt for another name. `name` is that in its folder.
std::optional<std::pair<uint32_t, uint32_t>> ParseLeaseName(std::string_view name);
// A run's note that it could not build a shard: `.pack/failed/012345.OWNER`.
std::string FailureName(uint32_t shard, std::string_view run);
std::optional<std::pair<uint32_t, std::string>> ParseFailureName(std::string_view name);
// Whether pack gives a journal this name (the name within `.pack`).
bool IsOwnJournalName(std::string_view name);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_PACK_NAMES_H_
