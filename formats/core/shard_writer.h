// ShardWriter: appends samples to one shard in one format.
//
//   auto writer = format.create(staged_file, spec);
//   for (...) (*writer)->Append(sample);
//   absl::Status finished = (*writer)->Finish();
//
// Writers do not handle indexes or hashes.
//
// Lifetime: borrows the StagedFile and the ShardSpec it was made with; a sample is borrowed until
// Append returns. A writer destroyed before Finish leaves a file that must be discarded.
// Thread-safety: one caller at a time, from any thread.
// Errors: InvalidArgument for a sample that the format cannot hold (the message names the key; the
// shard is unchanged); any other error is final.
#ifndef SHARDPACK_FORMATS_CORE_SHARD_WRITER_H_
#define SHARDPACK_FORMATS_CORE_SHARD_WRITER_H_

#include "absl/status/status.h"
#include "formats/core/sample.h"

namespace shardpack {

class ShardWriter {
 public:
  virtual ~ShardWriter() = default;
  virtual absl::Status Append(const SampleView& sample) = 0;
  // Writes the container's trailing data. The file is complete once the StagedFile is flushed.
  virtual absl::Status Finish() = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_CORE_SHARD_WRITER_H_
