// Ceilings: the most that this machine can do with the bytes of a dataset, for bench to compare
// with.
//
//   const double copy = CopyCeiling(threads);                           // bytes per second
//   absl::StatusOr<double> read = ReadCeiling(dataset, threads);
//   absl::StatusOr<double> decode = DecodeCeiling(dataset, pipeline, threads); // images per second
//
// Each takes about half a second.
//
// Lifetime: borrows during the call.
// Thread-safety: one at a time, because they would measure each other.
// Errors: read errors.
// Units: bytes, images, seconds.
#ifndef SHARDPACK_CLI_COMMANDS_BENCH_CEILINGS_H_
#define SHARDPACK_CLI_COMMANDS_BENCH_CEILINGS_H_

#include "absl/status/statusor.h"
#include "images/augment/pixel_pipeline.h"
#include "readers/dataset/dataset.h"

namespace shardpack::cli {

// memcpy from memory to memory, on all threads at once.
double CopyCeiling(int threads);
// Reads the shards from begin to end in reads of 1 MiB, from page cache or disk.
absl::StatusOr<double> ReadCeiling(const Dataset& dataset, int threads);
// Decodes samples in memory, spread over the dataset.
absl::StatusOr<double> DecodeCeiling(const Dataset& dataset, const PixelPipelineOptions& pipeline,
                                     int threads);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_BENCH_CEILINGS_H_
