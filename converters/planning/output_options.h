// OutputOptions: how a run treats the folder that it builds in.
//
//   OutputOptions options{.overwrite = true};
#ifndef SHARDPACK_CONVERTERS_PLANNING_OUTPUT_OPTIONS_H_
#define SHARDPACK_CONVERTERS_PLANNING_OUTPUT_OPTIONS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace shardpack {

struct OutputOptions {
  bool fsync = true;
  bool overwrite = false;  // replace a dataset of ours: build beside it, exchange at the end
  // One worker's part of the shards, [first, second): it takes no lock and has its own journal.
  std::optional<std::pair<size_t, size_t>> shards_range;
  // For a plan that was made earlier: the folder of its files, which are checked again before OUT
  // is called complete.
  std::string planned_source;
  // Compares a finished dataset with its source byte by byte (CompareWithSource) instead of by file
  // times; if all bytes are equal, the manifest gets the current times.
  bool compare = false;
  bool only_commit = false;  // do nothing unless every shard of the plan is there and intact
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_OUTPUT_OPTIONS_H_
