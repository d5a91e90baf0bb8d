// FailedShards: what becomes of shards that could not be built: another attempt, or the end of the
// run. A worker sets a shard aside whose input a disk cannot read, and builds the others first.
//
//   FailedShards failed(out);  failed.Begin(7);
//   if (failed.Judge(7, status, {.of_input = true}) == FailedShards::Fate::kAgain) Open(7);
//   ...
//   return failed.SetAside();   // Ok: none
//
// Lifetime: borrows `out`.
// Thread-safety: the caller locks.
// Errors: values.
#ifndef SHARDPACK_CONVERTERS_BUILDING_FAILED_SHARDS_H_
#define SHARDPACK_CONVERTERS_BUILDING_FAILED_SHARDS_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "converters/publishing/output_dir.h"

namespace shardpack {

class FailedShards {
 public:
  enum class Fate : uint8_t { kAgain, kSetAside, kEndsRun };
  struct Attempt {
    bool of_input = false;      // the error is what reading an input has said
    bool verified = false;      // the shard was whole: what failed was its publishing
    bool source_reads = false;  // other inputs could be read
  };

  explicit FailedShards(const OutputDir& out) : out_(out) {}

  void Begin(uint32_t shard) { ++attempts_[shard]; }
  Fate Judge(uint32_t shard, const absl::Status& status, const Attempt& attempt);
  bool is_set_aside(uint32_t shard) const { return set_aside_.contains(shard); }
  // Ok, or what the first of them has said, with the numbers of all.
  absl::Status SetAside() const;

 private:
  const OutputDir& out_;
  std::map<uint32_t, int> attempts_;
  std::map<uint32_t, absl::Status> set_aside_;
};

// Whether other workers should know of it: the reason lies in the shard. What this machine lacks or
// may not read, a disk or a share that fails, and what somebody has done to the folder say nothing
// about it.
bool SaysSomethingOfTheShard(FailedShards::Fate fate, const absl::Status& status);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_FAILED_SHARDS_H_
