// RepairWork: state shared by the steps of RepairDataset: the damaged files, and the folder for
// rebuilt ones.
//
//   for (RepairTarget* target : work.Lost())
//     work.Publish(*target, std::string(kStagedName), "photos/");
//
// Used only by repair*.cc.
//
// Lifetime: borrows its constructor arguments.
// Thread-safety: one caller at a time.
// Errors: a Status ends the run; a reason why one file cannot be rebuilt goes to its `why_not`.
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

// Name of a staged file that is published before the next one is staged.
inline constexpr std::string_view kStagedName = "rebuilt";

struct RepairTarget {
  enum class Kind : uint8_t { kShard, kIndex, kOther };
  FileEntry file;
  Kind kind = Kind::kOther;
  uint32_t shard = 0;       // for a shard or an index
  std::string damage = {};  // "" = intact
  std::string from = {};    // see RepairedFile
  std::set<std::string> why_not = {};
  bool outside = false;  // a shard indexed in place elsewhere: never written to
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
  DatasetCopy own;  // OUT itself, as far as it is intact
  std::vector<RepairTarget> targets;
  std::optional<RepairFolder> folder;  // none with dry_run
  // Per shard, set by Number: its targets (shard, index), if any, and the number of its first
  // record in the plan.
  std::vector<std::array<RepairTarget*, 2>> of_shard = {};
  std::vector<uint64_t> first_numbers = {};
  std::string notice = {};  // for RepairReport

  std::vector<RepairTarget*> Lost();
  // The shard's target if it is lost, else nullptr.
  RepairTarget* LostShard(uint32_t shard) { return LostOf(RepairTarget::Kind::kShard, shard); }
  RepairTarget* LostIndex(uint32_t shard) { return LostOf(RepairTarget::Kind::kIndex, shard); }
  bool made_json() const;
  std::string Option(const std::string& name) const { return OptionOf(manifest, name); }
  // The shard's spec, without what its rows will show.
  ShardSpec SpecOf(uint32_t shard) const;
  uint64_t FirstNumber(uint32_t shard) const { return first_numbers[shard]; }
  void Number();  // call once the targets are known
  // Index of a shard in OUT; nullptr also if it cannot be read, which counts as damage. Running out
  // of resources is an error.
  absl::StatusOr<const ShardIndex*> OwnIndex(uint32_t shard) const;
  // Cancelled once `stop` is set.
  absl::Status CheckStop() const;
  // Path for staging the file that is published next; "" with dry_run.
  std::string StagePath() const { return options.dry_run ? "" : folder->StagePath(kStagedName); }

  // Publishes the staged file of that name; with dry_run only reports that it would.
  absl::Status Publish(RepairTarget& target, const std::string& staged_name,
                       const std::string& from);
  // The same for bytes in memory; with dry_run too, they are compared with the manifest.
  absl::Status PublishBytes(RepairTarget& target, std::string_view bytes, const std::string& from);

 private:
  RepairTarget* LostOf(RepairTarget::Kind kind, uint32_t shard);
};

// Whether an error concerns one source or file only, so that the run continues without it.
bool IsOfOneFile(const absl::Status& status);
// Whether an error while reading a copy ends the run: it was stopped, or resources ran out.
bool EndsTheRun(const absl::Status& status);

// Each step works on what is still lost. From files of copies with the same hash:
absl::Status TakeWholeFiles(RepairWork& work);
// from files that lie in OUT or where a source is, under any name of the same extension:
absl::Status TakeLooseFiles(RepairWork& work);
// shards with an intact index, from bytes with the right hashes:
absl::Status RebuildByIndex(RepairWork& work);
// indexes of intact shards, and shards without an index, from the records that copies list:
absl::Status RebuildByCopies(RepairWork& work);
// everything, by making the plan again:
absl::Status RebuildByPlan(RepairWork& work);
// what follows from shards and indexes: SHA256SUMS, third-party index files, order.u32.
absl::Status RebuildOtherFiles(RepairWork& work);
// the indexes of shards that were indexed in place:
absl::Status RebuildIndexesOfShardsInPlace(RepairWork& work);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_REPAIRING_REPAIR_WORK_H_
