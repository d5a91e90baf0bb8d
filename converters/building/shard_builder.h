// ShardBuilder: builds one shard: appends its samples in order, then verifies what was written and
// publishes it.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<ShardBuilder> builder, ShardBuilder::Create(plan, 0, out));
//   RETURN_IF_ERROR(builder->Append(chunk));      // probed and hashed, in the order of the plan
//   ASSIGN_OR_RETURN(ShardResult result, builder->Finish());
//
// Verification: the finished file is read back and scanned, and every field must have the hash
// taken from the source's bytes, or from the changed image. The index is made from the scan, never
// from what the writer reports.
//
// Lifetime: borrows plan and out. The destructor removes a file that was not published.
// Thread-safety: one caller at a time, from any thread.
// Errors: DataLoss when verification fails; I/O Status. After an error, or an exception, only the
// destructor may be called.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_BUILDING_SHARD_BUILDER_H_
#define SHARDPACK_CONVERTERS_BUILDING_SHARD_BUILDER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/building/sample_chunk.h"
#include "converters/building/sample_spool.h"
#include "converters/planning/plan.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/output_dir.h"
#include "formats/core/format.h"
#include "formats/io/staged_file.h"

namespace shardpack {

class ShardBuilder {
 public:
  ~ShardBuilder();
  static absl::StatusOr<std::unique_ptr<ShardBuilder>> Create(const Plan& plan, size_t shard,
                                                              OutputDir& out);

  // The status of a chunk that could not be read is returned as it is.
  absl::Status Append(const SampleChunk& chunk);
  // Completes the container, verifies it, writes the index, publishes both, and adds the result to
  // the journal. If another run has done so meanwhile, the result is that run's.
  absl::StatusOr<ShardResult> Finish();
  // Whether the shard on the disk was verified: what failed after that, fails again.
  bool verified() const { return verified_; }

 private:
  class Verification;
  struct Expected {
    ImageInfo image;
    int64_t label;
    uint64_t path_begin, path_end;  // in expected_texts_; the key is between two paths
    uint64_t fields_end;            // in expected_fields_
  };
  struct ExpectedField {
    uint32_t name;  // position in field_names_
    uint64_t hash;
  };

  ShardBuilder(const Plan& plan, size_t shard, OutputDir& out);
  absl::Status CreateWriter();
  absl::Status AppendSample(const PreparedSample& prepared, std::span<const uint64_t> hashes);
  absl::Status Unspool();
  absl::StatusOr<std::string> Verify(uint64_t bytes);  // returns the bytes of the index

  const Plan& plan_;
  OutputDir& out_;
  const PlannedShard& planned_;
  ShardSpec spec_;
  std::unique_ptr<StagedFile> staged_;
  // For a layout that must know sizes before changing the pixels has told them: the samples wait
  // here, and the writer is created after the last one.
  std::unique_ptr<SampleSpool> spool_;
  std::unique_ptr<ShardWriter> writer_;
  std::vector<Expected> expected_;  // one for each sample, in the order of the shard
  std::vector<ExpectedField> expected_fields_;
  std::string expected_texts_;  // key and path of each sample
  std::vector<std::string> field_names_;
  std::array<uint64_t, 256> format_counts_{};  // images by ImageFormat
  ShardResult result_;
  bool verified_ = false;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_SHARD_BUILDER_H_
