// ShardBuilder: builds one shard: appends prepared samples in order, then proves what was written
// and publishes it.
//
//   auto builder = ShardBuilder::Create(plan, 0, out);
//   LoadSamples(plan, source, first, count, chunk);  JudgeSamples(plan, chunk);   // any thread, any order
//   while (chunk.next < chunk.samples.size()) TransformNext(plan, transform, target, scratch, chunk);
//   HashSamples(chunk);
//   (*builder)->Append(chunk);                              // in order
//   absl::StatusOr<ShardResult> result = (*builder)->Finish();
//
// The proof: the finished file is read back and scanned, and every field must have the hash that
// was taken from the source's bytes, or from the changed image's; the index is made from the scan,
// never from what the writer believes.
//
// Lifetime: borrows plan and out.
// Thread-safety: one caller at a time.
// Errors: DataLoss when the proof fails, I/O Status; after an error the staged file is discarded
// and the shard is built anew.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_BUILDING_SHARD_BUILDER_H_
#define SHARDPACK_CONVERTERS_BUILDING_SHARD_BUILDER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/arena.h"
#include "converters/listing/sample_source.h"
#include "converters/planning/plan.h"
#include "converters/publishing/journal.h"
#include "converters/publishing/output_dir.h"
#include "formats/io/staged_file.h"
#include "images/pixels/pixel_sums.h"
#include "images/transform/transform.h"

namespace shardpack {

struct PreparedSample {
  uint64_t position = 0;  // in the plan
  std::span<const FieldView> fields;
  ImageInfo image;
  uint64_t first_hash = 0;  // of fields[0] in SampleChunk::hashes; one a field
  uint16_t changes = 0;     // sum of PixelChange
  bool failed = false;      // in TransformNext
};

// A run of consecutive positions, loaded and judged. Reused: Reset keeps its memory.
struct SampleChunk {
  Arena arena;
  Arena changed;  // what TransformNext makes
  std::vector<PreparedSample> samples;
  std::vector<uint64_t> hashes;          // XXH3-64 of each field of each sample
  size_t next = 0;                       // sample that TransformNext takes
  PixelSums sums;                        // of the samples that TransformNext has taken, on request
  uint64_t summed = 0, undecodable = 0;  // images
  std::vector<Skip> skips;
  uint64_t bytes_in = 0;
  absl::Status failed;  // of reading: the shard cannot be built from this
  void Reset();
};

// Loads positions [first, first + count) into the chunk: reads only. An error that says nothing
// about an input is kept as chunk.failed, which Append answers.
void LoadSamples(const Plan& plan, const SampleSource& source, uint64_t first, uint64_t count,
                 SampleChunk& chunk);
// Judges what was loaded, and hashes it unless pixels are to be looked at: computes only. A bad
// image becomes a Skip.
void JudgeSamples(const Plan& plan, SampleChunk& chunk);
// Changes, and sums on request, the pixels of the sample chunk.next, for which `target` was
// decided; one that cannot be decoded or encoded becomes a Skip. Answers how much longer the
// arena's content has become.
uint64_t TransformNext(const Plan& plan, const ImageTransform& transform,
                       const TransformTarget& target, TransformScratch& scratch,
                       SampleChunk& chunk);
// Hashes what TransformNext has made, and forgets what it failed to make.
void HashSamples(SampleChunk& chunk);
// The same for the samples before chunk.next alone, which `append` then takes; they leave the
// chunk, and so does what was made of them.
void HandOver(SampleChunk& chunk, const std::function<void(const SampleChunk&)>& append);

class ShardBuilder {
 public:
  ~ShardBuilder();
  static absl::StatusOr<std::unique_ptr<ShardBuilder>> Create(const Plan& plan, size_t shard,
                                                              OutputDir& out);

  absl::Status Append(const SampleChunk& chunk);
  // Completes the container, proves it, writes the index, publishes both, and journals the result.
  // Where another run has done so meanwhile, the result is that one's.
  absl::StatusOr<ShardResult> Finish();

 private:
  class Proof;
  class Spool;
  struct Expected {
    uint64_t position;
    ImageInfo image;
    uint64_t fields_end;  // in expected_fields_
  };
  struct ExpectedField {
    uint32_t name;  // position in field_names_
    uint64_t hash;
  };

  ShardBuilder(const Plan& plan, size_t shard, OutputDir& out);
  absl::Status CreateWriter();
  absl::Status AppendSample(const PreparedSample& prepared, std::span<const uint64_t> hashes);
  absl::Status Unspool();
  absl::StatusOr<std::string> Prove(uint64_t bytes);  // the index's bytes

  const Plan& plan_;
  OutputDir& out_;
  const PlannedShard& planned_;
  ShardSpec spec_;
  std::unique_ptr<StagedFile> staged_;
  // Where a layout must know sizes that only changing the pixels tells: the samples wait here, and
  // the writer is made when all have come.
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<ShardWriter> writer_;
  std::vector<Expected> expected_;  // one a sample, in the order of the shard
  std::vector<ExpectedField> expected_fields_;
  std::vector<std::string> field_names_;
  std::string key_, path_;                     // reused
  std::array<uint64_t, 256> format_counts_{};  // images by ImageFormat
  ShardResult result_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_SHARD_BUILDER_H_
