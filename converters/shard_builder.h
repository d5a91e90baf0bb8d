// ShardBuilder: builds one shard: appends prepared samples in order, then proves what was written and publishes it.
//
//   auto builder = ShardBuilder::Create(plan, 0, out);
//   LoadSamples(plan, source, first, count, chunk);  JudgeSamples(plan, chunk);   // any thread, any order
//   (*builder)->Append(chunk);                              // in order
//   absl::StatusOr<ShardResult> result = (*builder)->Finish();
//
// The proof: the finished file is read back and scanned, and every field must have the hash that was taken from the
// source's bytes; the index is made from the scan, never from what the writer believes.
// Lifetime: borrows plan and out. Thread-safety: one caller at a time. Errors: DataLoss when the proof fails, I/O
// Status; after an error the staged file is discarded and the shard is built anew. Units: bytes.
#ifndef SHARDPACK_CONVERTERS_SHARD_BUILDER_H_
#define SHARDPACK_CONVERTERS_SHARD_BUILDER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/arena.h"
#include "converters/journal.h"
#include "converters/output_dir.h"
#include "converters/plan.h"
#include "converters/sample_source.h"
#include "formats/io/staged_file.h"

namespace shardpack {

struct PreparedSample {
  uint64_t position = 0;  // in the plan
  std::span<const FieldView> fields;
  ImageInfo image;
  uint64_t first_hash = 0;  // of fields[0] in SampleChunk::hashes; one a field
};

// A run of consecutive positions, loaded and judged. Reused: Reset keeps its memory.
struct SampleChunk {
  Arena arena;
  std::vector<PreparedSample> samples;
  std::vector<uint64_t> hashes;  // XXH3-64 of each field of each sample
  std::vector<Skip> skips;
  uint64_t bytes_in = 0;
  void Reset();
};

// Loads positions [first, first + count) into the chunk: reads only.
void LoadSamples(const Plan& plan, const SampleSource& source, uint64_t first, uint64_t count, SampleChunk& chunk);
// Hashes and judges what was loaded: computes only. A bad image becomes a Skip.
void JudgeSamples(const Plan& plan, SampleChunk& chunk);

class ShardBuilder {
 public:
  static absl::StatusOr<std::unique_ptr<ShardBuilder>> Create(const Plan& plan, size_t shard, OutputDir& out);

  absl::Status Append(const SampleChunk& chunk);
  // Completes the container, proves it, writes the index, publishes both, and journals the result.
  absl::StatusOr<ShardResult> Finish();
  uint64_t bytes() const { return staged_->size(); }

 private:
  class Proof;
  struct Expected {
    uint64_t position;
    ImageInfo image;
  };

  ShardBuilder(const Plan& plan, size_t shard, OutputDir& out);
  absl::StatusOr<std::string> Prove(uint64_t bytes);  // the index's bytes

  const Plan& plan_;
  OutputDir& out_;
  const PlannedShard& planned_;
  const ShardSpec spec_;
  std::unique_ptr<StagedFile> staged_;
  std::unique_ptr<ShardWriter> writer_;
  std::vector<Expected> expected_;        // one a sample, in the order of the shard
  std::vector<uint64_t> expected_hashes_;
  std::vector<std::string> field_names_;  // the same in every sample
  std::string key_, path_;                // reused
  std::array<uint64_t, 256> format_counts_{};  // images by ImageFormat
  ShardResult result_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SHARD_BUILDER_H_
