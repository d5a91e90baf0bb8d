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
  bool overwrite = false;  // replace a dataset of ours: built beside it, exchanged at the end
  // One worker's part of the shards, [first, second): no lock, a journal of its own.
  std::optional<std::pair<size_t, size_t>> shards_range;
  // Where the files of a plan lie that was not made just now: looked at again before OUT is called
  // complete.
  std::string planned_source;
  // A finished dataset is compared with its source byte by byte (CompareWithSource), in place of by
  // the times of its files; where all is the same, its manifest takes these times.
  bool compare = false;
  bool only_commit = false;  // nothing is begun unless every shard of the plan is there and whole
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PLANNING_OUTPUT_OPTIONS_H_
