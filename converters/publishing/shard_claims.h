// ShardClaims: agrees with the other workers of a folder on who builds which shard.
//
//   auto claims = ShardClaims::Create("OUT", stage, worker, plan.shards().size());
//   absl::StatusOr<bool> mine = claims->Claim(7);   // false: another worker holds it
//   claims->SetFinished(7, 1000);                   // published, 1,000 rows
//
// A lease only saves work, and never protects data: two builders of one shard make the same bytes,
// and a published file is never replaced. A claim links a file with the name of this run to
// `.pack/lease/000/000007.1`, which must not exist; when its holder is dead, the next generation,
// `.2`, so that one worker wins each. Leases stay until the commit.
//
// Lifetime: borrows the stage. The destructor says that this run has ended, so that others need not
// wait for its leases to grow stale.
// Thread-safety: any thread; Claim, Failures: one caller at a time.
// Errors: NotFound when `.pack` is being removed: the dataset is published. I/O Status.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_SHARD_CLAIMS_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_SHARD_CLAIMS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "converters/planning/output_options.h"
#include "converters/publishing/beats.h"
#include "converters/publishing/owned_folder.h"
#include "converters/publishing/run_stage.h"
#include "converters/publishing/shard_failures.h"

namespace shardpack {

class ShardClaims {
 public:
  static absl::StatusOr<std::unique_ptr<ShardClaims>> Create(const std::string& dataset,
                                                             const RunStage& stage,
                                                             const WorkerOptions& options,
                                                             size_t shards);

  // Whether this worker may build the shard now. True again for a shard that it holds already.
  // `again`: its holder has built it, and it is to be built once more.
  absl::StatusOr<bool> Claim(uint32_t shard, bool again = false);
  void SetFinished(uint32_t shard, uint64_t rows);

  // Notes that this run could not build the shard.
  absl::Status NoteFailure(uint32_t shard, const absl::Status& why);
  // Shards that too many workers have failed at. A worker for which shards were named tries again.
  absl::StatusOr<std::map<uint32_t, ShardFailure>> Failures() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    uint32_t generation = 0;  // the highest that is known to exist
    std::string owner;        // of that one
  };

  ShardClaims(OwnedFolder folder, const RunStage& stage, const WorkerOptions& options)
      : folder_(std::move(folder)), stage_(stage), options_(options) {}
  // Creates the lease; false if it exists.
  absl::StatusOr<bool> Create(uint32_t shard, uint32_t generation) const;
  absl::Status WriteName() const;
  // nullopt while a file that is there cannot be opened, as may be for a while where it was created
  // on another machine.
  absl::StatusOr<std::optional<std::string>> ReadOwner(uint32_t shard, uint32_t generation);
  void SetHeld(uint32_t shard);
  BeatFacts Facts() const;

  const OwnedFolder folder_;  // of the dataset
  const RunStage& stage_;
  const WorkerOptions options_;
  std::map<uint32_t, Known> known_;
  std::set<uint32_t> taken_over_;     // from holders that may be alive: once each
  std::map<uint32_t, int> unopened_;  // how often the next lease of a shard could not be opened

  mutable std::mutex mutex_;  // guards what follows
  std::map<uint32_t, Clock::time_point> building_;
  uint64_t shards_ = 0, rows_ = 0;
  double shard_seconds_ = 0;

  std::unique_ptr<Beats> beats_;  // the last member: its thread uses the others
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_SHARD_CLAIMS_H_
