// FinishedShards: what of a plan is already built in a folder, by earlier runs or by others that
// share it.
//
//   FinishedShards shards(plan, options, *folder, replaceable, wanted);
//   absl::Status found = shards.Find(FinishedShards::Past{}, pool);
//   absl::Status named = shards.NameIndexes();
//   for (const ShardResult& result : shards.results()) ...
//   shards.others().Follow(own_journal, wanted, shards.results());
//
// Lifetime: all arguments, and the options' `stop`, must outlive it.
// Thread-safety: const from any thread; others() has its own rules.
// Errors: FailedPrecondition (exit 5) when shards are of another plan, or not ours to replace; of a
// commit: DataLoss (exit 4) or Aborted when not all shards are finished; I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_FINISHED_SHARDS_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_FINISHED_SHARDS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/followed_shards.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/replaceable_files.h"
#include "converters/publishing/shard_results.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

class FinishedShards {
 public:
  // What is known of the runs before this one.
  struct Past {
    const Plan* plan = nullptr;       // that they have published; it may differ in file times
    bool plan_was_lost = false;       // lines that name no plan, or no times, prove nothing
    bool manifest_is_theirs = false;  // the one in the folder may be replaced
  };

  FinishedShards(const Plan& plan, const OutputOptions& options, const OwnedFolder& folder,
                 ReplaceableFiles& replaceable, std::span<const uint32_t> wanted)
      : plan_(plan),
        options_(options),
        folder_(folder),
        replaceable_(replaceable),
        wanted_(wanted),
        others_(options, folder, wanted.size()) {}

  // Reads the journals, and checks the shards that they name, once. A shard without a valid line is
  // built again, and replaces the existing one when it is published.
  absl::Status Find(const Past& past, IoPool& pool);
  // Older versions of pack named an index after the full name of its shard. If one of them began
  // this build, the indexes get today's names, so that the result is that of an uninterrupted one.
  absl::Status NameIndexes();

  // Verified, sorted.
  const std::vector<ShardResult>& results() const { return results_; }
  // Whether that shard was journalled before this run began, damaged or not.
  bool WasJournalled(uint32_t shard) const { return journalled_.contains(shard); }
  // See OutputDir::CheckFinishedUnchanged.
  absl::Status CheckUnchanged() const;
  FollowedShards& others() { return others_; }

 private:
  absl::Status ReadLines(const Past& past, std::vector<ShardResult>& lines);
  absl::Status FindUnlisted(const std::vector<bool>& wants, IoPool& pool,
                            std::vector<ShardResult>& lines, ShardStates& states);
  absl::Status NotAll(const ShardStates& states, IoPool& pool) const;
  absl::Status NoteLine(const ShardResult& line, bool done);
  absl::Status RenameOldIndex(const std::string& shard, FileEntry& index) const;

  const Plan& plan_;
  const OutputOptions options_;
  const OwnedFolder& folder_;
  ReplaceableFiles& replaceable_;
  const std::span<const uint32_t> wanted_;
  FollowedShards others_;
  std::vector<ShardResult> results_;
  std::set<uint32_t> journalled_;      // shards that were finished once, and may still be
  std::set<std::string> old_indexes_;  // index names used by older versions, from the journals
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_FINISHED_SHARDS_H_
