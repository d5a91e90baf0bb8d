// WorkersState: the progress of the workers that build a plan in a folder, from their journals,
// leases and beats.
//
//   absl::StatusOr<WorkersState> state = ReadWorkersState("OUT", plan, /*stale_seconds=*/60, pool);
//   if (state->Unfinished().empty()) ...                  // pack commit OUT
//
// Nothing is changed, and no clocks are compared: an owner is called stale if it has ended, if it
// ran on this machine and its lock is free, or if its last beat is older than the newest of all
// owners, or than a file that is created for that and removed, by the file system's times. The last
// is only shown; what is taken over is decided by Beats.
//
// Lifetime: plain values.
// Thread-safety: pure except for the file system.
// Errors: FailedPrecondition when shards of several plans are mixed; I/O Status.
// Units: seconds.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_WORKERS_STATE_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_WORKERS_STATE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/planning/plan.h"
#include "converters/publishing/beats.h"
#include "converters/publishing/shard_failures.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct OwnerState {
  std::string name;
  BeatFacts facts;
  double behind_seconds = 0;  // its last beat is so much older than the newest one, or than now
  bool gone = false;          // it has ended, or is known to be dead
};

struct WorkersState {
  size_t shards = 0;                        // of the plan
  std::set<uint32_t> done;                  // journalled, and both files have their sizes
  std::map<uint32_t, std::string> held;     // shard -> owner of its last lease
  std::map<uint32_t, std::string> stale;    // the same, where that owner is gone or stands still
  std::map<uint32_t, ShardFailure> failed;  // those that are not done
  std::vector<OwnerState> owners;           // those that have a beat

  // Shards that are not done.
  std::set<uint32_t> Unfinished() const;
  size_t free() const { return shards - done.size() - held.size() - stale.size(); }
  double ShardsPerSecond() const;  // of all owners at work
  double SecondsPerShard() const;  // on average, of all that was built; 0: nothing was
};

// `stale_seconds`: how far a beat may be behind. `known`: shards that an earlier call has found
// done; their files are not looked at again.
absl::StatusOr<WorkersState> ReadWorkersState(const std::string& dataset, const Plan& plan,
                                              double stale_seconds, IoPool& pool,
                                              const std::set<uint32_t>& known = {});

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_WORKERS_STATE_H_
