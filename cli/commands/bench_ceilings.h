// Ceilings: what this machine can do at most with the bytes of a dataset, for bench to compare
// with.
//
//   const double copy = CopyCeiling(threads);                           // bytes a second
//   absl::StatusOr<double> read = ReadCeiling(dataset, threads);
//   absl::StatusOr<double> decode = DecodeCeiling(dataset, pipeline, threads);   // images a second
//
// Each takes about half a second.
//
// Lifetime: borrow for the call.
// Thread-safety: one at a time, or they measure each other.
// Errors: those of reading.
// Units: bytes, images, seconds.
#ifndef SHARDPACK_CLI_COMMANDS_BENCH_CEILINGS_H_
#define SHARDPACK_CLI_COMMANDS_BENCH_CEILINGS_H_

#include "absl/status/statusor.h"
#include "images/augment/pixel_pipeline.h"
#include "readers/dataset/dataset.h"

namespace shardpack::cli {

// memcpy from memory to memory, on all threads at once.
double CopyCeiling(int threads);
// The shards from begin to end by reads of 1 MiB, from wherever they lie (page cache or disk).
absl::StatusOr<double> ReadCeiling(const Dataset& dataset, int threads);
// Decoding of samples that lie in memory, spread over the dataset.
absl::StatusOr<double> DecodeCeiling(const Dataset& dataset, const PixelPipelineOptions& pipeline,
                                     int threads);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_BENCH_CEILINGS_H_
