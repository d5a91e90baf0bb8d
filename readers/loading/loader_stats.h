// LoaderStats: what each stage of a loader did, and which one is the bottleneck.
//
//   LoaderStats stats = loader.stats();
//   std::puts(stats.Explain().c_str());     // "the bottleneck is read: ..."
//   std::string json = stats.ToJson();
//
// Lifetime: a plain value, a snapshot.
// Thread-safety: as any plain value.
// Units: nanoseconds since the loader was opened; bytes of fields.
#ifndef SHARDPACK_READERS_LOADING_LOADER_STATS_H_
#define SHARDPACK_READERS_LOADING_LOADER_STATS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardpack {

struct StageStats {
  uint64_t items = 0, bytes = 0;
  uint64_t busy_ns = 0;  // summed over all threads
};

// Durations in 8 buckets per octave, so quantiles are accurate to 9 %.
class LatencyHistogram {
 public:
  void Add(uint64_t ns);
  uint64_t count() const { return count_; }
  uint64_t Quantile(double q) const;  // 0 if there are none

 private:
  std::array<uint64_t, 64 * 8> counts_{};
  uint64_t count_ = 0;
};

struct LoaderStats {
  StageStats plan;       // order and index: which bytes make up a batch
  StageStats read;       // from the page cache, including hash checks; on the CPU threads
  StageStats disk_read;  // not in the page cache; on the I/O threads
  StageStats decode;
  uint64_t memory_wait_ns = 0;    // finished, unconsumed batches hold all memory
  uint64_t consumer_wait_ns = 0;  // inside Next
  uint64_t wall_ns = 0;
  uint64_t batches = 0, samples = 0, padding = 0;  // delivered
  uint64_t substituted = 0;
  int cpu_threads = 0, io_threads = 0;  // I/O threads: those started so far
  uint64_t slab_bytes = 0, slabs = 0, peak_slabs = 0, overflow_bytes = 0;
  // What is done to pixels, by this loader or by its caller (Loader::SetAugmentation):
  // AugmentPlan::Facts, views, mixing. Cursors have its digest. Empty if nothing is augmented.
  std::string augmentation;
  bool augmented_by_caller = false;
  LatencyHistogram next;  // of Next, excluding the end of an epoch

  // "consumer", "read", "disk", "decode" or "plan".
  std::string_view Binding() const;
  // A few human-readable lines; the first names the bottleneck.
  std::string Explain() const;
  std::string ToJson() const;
};

}  // namespace shardpack

#endif  // SHARDPACK_READERS_LOADING_LOADER_STATS_H_
