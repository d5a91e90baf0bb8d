// OutputOptions: how a run treats the folder that it builds in.
//
//   OutputOptions options{.overwrite = true};
//   options.worker = WorkerOptions{.join = true};   // helps others that build the same plan there
//
// Units: seconds.
#ifndef SHARDPACK_CONVERTERS_PLANNING_OUTPUT_OPTIONS_H_
#define SHARDPACK_CONVERTERS_PLANNING_OUTPUT_OPTIONS_H_

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardpack {

// What one of several runs that build the shards of one plan in one folder does.
struct WorkerOptions {
  // The shards to build: [first, second) each.
  std::vector<std::pair<size_t, size_t>> ranges = {};
  // Then whatever nobody else builds, until all shards of the plan are done.
  bool join = false;
  // The shards were named one by one: finished ones are read again and compared with their hashes,
  // and damaged ones are replaced.
  bool named = false;
  bool alone = false;      // no other run works in the folder: nothing is shared
  bool wait = true;        // for shards that others hold; otherwise ends with Aborted
  bool take_over = false;  // do not wait until a holder is known to be dead
  // A holder whose beat stands still for so long is dead.
  double stale_seconds = 60;
};

struct OutputOptions {
  bool fsync = true;
  bool overwrite = false;  // replace a dataset of ours: build beside it, exchange at the end
  // A worker takes no lock and has its own journal.
  std::optional<WorkerOptions> worker = std::nullopt;
  // For a plan that was made earlier: the folder of its files, which are checked again before OUT
  // is called complete.
  std::string planned_source = {};
  // Compares a finished dataset with its source byte by byte (CompareWithSource) instead of by file
  // times; if all bytes are equal, the manifest gets the current times.
  bool compare = false;
  bool only_commit = false;  // do nothing unless every shard of the plan is there and intact
  // Not null: set to a signal's number to end reading and waiting soon, with Cancelled, as long as
  // the manifest is not written. Must outlive the run.
  const std::atomic<int>* stop = nullptr;

  bool stopped() const { return stop != nullptr && stop->load() != 0; }

  bool shares() const { return worker.has_value() && !worker->alone; }
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_OUTPUT_OPTIONS_H_
