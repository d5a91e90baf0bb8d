// SampleChunk: consecutive samples of a plan on their way into a shard: loaded, probed, transformed
// and hashed.
//
//   SampleChunk chunk(plan);
//   chunk.Load(source, first, count);                         // reads only
//   chunk.Probe();                                            // computes only
//   while (const PreparedSample* sample = chunk.next()) {     // where the plan changes pixels
//     chunk.TransformNext(transform, transform.Decide(sample->fields[0].bytes, sample->image), scratch);
//   }
//   chunk.Hash();
//   RETURN_IF_ERROR(builder.Append(chunk));
//   chunk.Reset();                                            // empty; keeps its memory
//
// An input that cannot be packed leaves the chunk and becomes a Skip.
//
// Lifetime: borrows the plan. Samples lie in the chunk until Reset, those that FlushPrefix removes
// until it returns.
// Thread-safety: one caller at a time, from any thread.
// Errors: status(). After an exception only Reset and the destructor may be called.
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_BUILDING_SAMPLE_CHUNK_H_
#define SHARDPACK_CONVERTERS_BUILDING_SAMPLE_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "converters/listing/arena.h"
#include "converters/listing/sample_source.h"
#include "converters/listing/skip.h"
#include "converters/planning/plan.h"
#include "images/pixels/pixel_sums.h"
#include "images/transform/transform.h"

namespace shardpack {

struct PreparedSample {
  uint64_t position = 0;  // in the plan
  std::span<const FieldView> fields;
  ImageInfo image;
  uint64_t first_hash = 0;                    // see SampleChunk::hashes
  std::span<const uint64_t> verified_hashes;  // as LoadedSample::hashes
  const ProbeOptions* probed = nullptr;       // as in LoadedSample
  uint16_t changes = 0;                       // sum of PixelChange
  bool failed = false;                        // in TransformNext; Hash removes it
};

// Sums over the pixels of images, for the statistics of a dataset.
struct PixelStats {
  PixelSums sums;
  uint64_t images = 0;       // in the sums
  uint64_t undecodable = 0;  // packed, but not in the sums
};

class SampleChunk {
 public:
  explicit SampleChunk(const Plan& plan) : plan_(&plan) {}

  // Loads positions [first, first + count) of the plan into an empty chunk. An error that is not
  // about one input leaves the chunk empty, with that status.
  void Load(const SampleSource& source, uint64_t first, uint64_t count);
  // Checks every image, unless its source has done the same. Also hashes the samples, unless the
  // plan wants their pixels looked at.
  void Probe();
  // The sample that TransformNext takes; nullptr after the last one.
  const PreparedSample* next() const {
    return next_ < samples_.size() ? &samples_[next_] : nullptr;
  }
  // Changes the pixels of the next sample to `target`, which was decided for it, and adds it to the
  // statistics if the plan asks for them. Returns the bytes by which the chunk has grown.
  uint64_t TransformNext(const ImageTransform& transform, const TransformTarget& target,
                         TransformScratch& scratch);
  // Removes the samples that TransformNext could not change and hashes the others. Does nothing
  // after a Probe that has hashed.
  void Hash();
  // Hashes the samples before next(), passes a chunk of these alone to `append`, and removes them
  // with the memory that TransformNext took for them.
  void FlushPrefix(const std::function<void(const SampleChunk&)>& append);
  void Reset();

  std::span<const PreparedSample> samples() const { return samples_; }
  // XXH3-64 of each field of a sample of this chunk, once it is hashed.
  std::span<const uint64_t> hashes(const PreparedSample& sample) const {
    return std::span(hashes_).subspan(sample.first_hash, sample.fields.size());
  }
  const std::vector<Skip>& skips() const { return skips_; }
  uint64_t bytes_in() const { return bytes_in_; }  // loaded since Reset
  const PixelStats& pixel_stats() const { return pixel_stats_; }
  // Of reading: no shard can be built from a chunk whose status is an error.
  const absl::Status& status() const { return status_; }

 private:
  void HashSample(PreparedSample& sample);
  void AddToStats(const PreparedSample& sample, ImageDecoder& decoder);
  uint64_t Skipped(PreparedSample& sample, SkipReason reason, std::string why);
  // Gives the sample a new image and copies of its other fields' views.
  uint64_t Replace(PreparedSample& sample, const TransformedImage& image);

  const Plan* plan_;
  Arena loaded_;
  Arena transformed_;
  std::vector<uint32_t> rows_;  // these two are kept for their memory
  std::vector<LoadResult> results_;
  std::vector<PreparedSample> samples_;
  std::vector<uint64_t> hashes_;
  size_t next_ = 0;
  bool hashed_ = false;
  std::vector<Skip> skips_;
  uint64_t bytes_in_ = 0;
  PixelStats pixel_stats_;
  absl::Status status_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_BUILDING_SAMPLE_CHUNK_H_
