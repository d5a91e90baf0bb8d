// RepairWork: what the steps of RepairDataset share: the damaged files, and the folder that rebuilt
// ones go to.
//
//   for (RepairTarget* target : work.Lost()) work.Publish(*target, std::string(kStagedName), "photos/");
//
// For repair*.cc alone.
//
// Lifetime: borrows what it is made of.
// Thread-safety: one caller at a time.
// Errors: Status ends the run; what keeps one file from being rebuilt goes to its `why_not`.
#ifndef SHARDPACK_CONVERTERS_REPAIRING_REPAIR_WORK_H_
#define SHARDPACK_CONVERTERS_REPAIRING_REPAIR_WORK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/planning/manifest_option.h"
#include "converters/publishing/file_damage.h"
#include "converters/repairing/repair.h"
#include "converters/repairing/repair_folder.h"
#include "converters/repairing/repair_rows.h"

namespace shardpack {

// Of a file that is published before the next one is staged.
inline constexpr std::string_view kStagedName = "rebuilt";

struct RepairTarget {
  enum class Kind : uint8_t { kShard, kIndex, kOther };
  FileEntry file;
  Kind kind = Kind::kOther;
  uint32_t shard = 0;       // of a shard and an index
  std::string damage = {};  // "" = whole
  std::string from = {};    // see RepairedFile
  std::set<std::string> why_not = {};
  bool outside = false;  // a shard that was indexed in place elsewhere: never written to
  bool lost() const { return !damage.empty() && from.empty(); }
};

struct RepairWork {
  const std::string& out;
  const Manifest& manifest;
  std::span<RepairSource> sources;
  const Format& format;
  const LayoutSpec& layout;
  const RepairOptions& options;
  IoPool& pool;
  RepairProgress& progress;
  const std::atomic<int>& stop;
  DatasetCopy own;  // OUT itself, as far as it is whole
  std::vector<RepairTarget> targets;
  std::optional<RepairFolder> folder;  // none with dry_run
  // By shard, from Number: its targets (shard, index), where it has some, and the number of its
  // first record in the plan.
  std::vector<std::array<RepairTarget*, 2>> of_shard = {};
  std::vector<uint64_t> first_numbers = {};
  std::string notice = {};  // of RepairReport

  std::vector<RepairTarget*> Lost();
  // The target of that shard if it is lost, else nullptr.
  RepairTarget* LostShard(uint32_t shard) { return LostOf(RepairTarget::Kind::kShard, shard); }
  RepairTarget* LostIndex(uint32_t shard) { return LostOf(RepairTarget::Kind::kIndex, shard); }
  bool made_json() const;
  std::string Option(const std::string& name) const { return OptionOf(manifest, name); }
  // Of that shard but for what its rows tell.
  ShardSpec SpecOf(uint32_t shard) const;
  uint64_t FirstNumber(uint32_t shard) const { return first_numbers[shard]; }
  void Number();  // once the targets are known
  // Of OUT; nullptr as well where it cannot be read, which is damage. A lack of resources is an
  // error.
  absl::StatusOr<const ShardIndex*> OwnIndex(uint32_t shard) const;
  // Cancelled once the call shall end.
  absl::Status CheckStop() const;
  // Where a file is staged that is published next; "" with dry_run.
  std::string StagePath() const { return options.dry_run ? "" : folder->StagePath(kStagedName); }

  // Publishes the staged file of that name; with dry_run, says that it would be.
  absl::Status Publish(RepairTarget& target, const std::string& staged_name,
                       const std::string& from);
  // The same for bytes in memory, which are compared with the manifest in either case.
  absl::Status PublishBytes(RepairTarget& target, std::string_view bytes, const std::string& from);

 private:
  RepairTarget* LostOf(RepairTarget::Kind kind, uint32_t shard);
};

// Whether an error is about one source or file, so that the run goes on without it.
bool IsOfOneFile(const absl::Status& status);
// Whether an error of reading a copy is more than that: the run was stopped, or lacks resources.
bool EndsTheRun(const absl::Status& status);

// Each takes on what is still lost. From files of copies that have the very hash:
absl::Status TakeWholeFiles(RepairWork& work);
// shards whose index is whole, from bytes of the right hashes:
absl::Status RebuildByIndex(RepairWork& work);
// indexes of whole shards, and shards without an index, from what copies say of the records:
absl::Status RebuildByCopies(RepairWork& work);
// everything, from the plan made again:
absl::Status RebuildByPlan(RepairWork& work);
// what follows from shards and indexes: SHA256SUMS, the index files of other tools, order.u32.
absl::Status RebuildOtherFiles(RepairWork& work);
// the indexes of shards that were indexed in place:
absl::Status RebuildAdoptedIndexes(RepairWork& work);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_REPAIR_WORK_H_
