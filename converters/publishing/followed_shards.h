// FollowedShards: what other runs that share the folder journal, read as it grows.
//
//   FollowedShards others(options, *folder, wanted.size());
//   absl::Status read = others.ReadNew(wanted, [&](ShardResult& line) { ... });
//   others.Follow(own_journal, wanted, finished);              // from here on, what is new
//   absl::StatusOr<std::set<uint32_t>> done = others.FindNew(plan, waiting);
//   absl::StatusOr<std::optional<ShardResult>> theirs = others.Take(7);
//
// Lifetime: the folder must outlive it.
// Thread-safety: FindNew and Take from any thread, once the others have returned.
// Errors: I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_FOLLOWED_SHARDS_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_FOLLOWED_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/output_options.h"
#include "converters/planning/plan.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/shard_results.h"

namespace shardpack {

class FollowedShards {
 public:
  FollowedShards(const OutputOptions& options, const OwnedFolder& folder, size_t wanted);

  // Whether finished shards are read again. A worker that helps many others looks at sizes: their
  // builders have verified them, and the commit reads all of them.
  bool rereads() const { return rereads_; }
  ShardLook look() const { return rereads_ ? ShardLook::kHash : ShardLook::kSize; }

  // What was journalled since the last call; of these shards at least.
  absl::Status ReadNew(std::span<const uint32_t> shards,
                       const std::function<void(ShardResult&)>& take);
  // The same of the journals that leases name, except of shards that are done: a listing of a
  // network file system may show them late.
  absl::StatusOr<std::vector<ShardResult>> ReadUnlisted(const std::set<uint32_t>& done);
  // Keeps a line for Take, unless its shard is to be built again: its files may be there, as noted,
  // at a later look.
  void Keep(ShardResult line);
  // From here on, of others alone, and of wanted shards that are not finished.
  void Follow(const std::string& own_journal, std::span<const uint32_t> wanted,
              std::span<const ShardResult> finished);

  // See OutputDir::FollowOthers and TakeFinishedByOther.
  absl::StatusOr<std::set<uint32_t>> FindNew(const Plan& plan, std::span<const uint32_t> shards);
  absl::StatusOr<std::optional<ShardResult>> Take(uint32_t shard);

 private:
  absl::Status AddJournals(std::span<const uint32_t> shards);

  const OwnedFolder& folder_;
  const bool rereads_;
  std::mutex mutex_;
  JournalReader reader_;
  std::set<uint32_t> wanted_;
  std::map<uint32_t, std::vector<ShardResult>> lines_;  // of wanted shards
  // A worker for which few shards were named reads these journals alone.
  bool reads_few_;
  std::set<std::string> journals_;
  std::map<uint32_t, uint32_t> generations_;  // of the leases that have named journals
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_FOLLOWED_SHARDS_H_
