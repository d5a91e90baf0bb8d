#include "readers/loading/loader_stats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shardpack {
namespace {

constexpr double kSecond = 1e9;

size_t BucketOf(uint64_t ns) {
  if (ns < 8) return ns;
  const int octave = 63 - std::countl_zero(ns);
  return static_cast<size_t>(octave - 2) * 8 + ((ns >> (octave - 3)) & 7);
}

// The middle of a bucket.
uint64_t ValueOf(size_t bucket) {
  if (bucket < 8) return bucket;
  const size_t octave = bucket / 8 + 2;
  const uint64_t step = uint64_t{1} << (octave - 3);
  return (8 + bucket % 8) * step + step / 2;
}

double ShareOf(uint64_t busy_ns, uint64_t wall_ns, int threads) {
  const double all = static_cast<double>(wall_ns) * std::max(threads, 1);
  return all > 0 ? static_cast<double>(busy_ns) / all : 0;
}

std::string StageLine(std::string_view name, const StageStats& stage, uint64_t wall_ns,
                      int threads) {
  const double seconds = static_cast<double>(stage.busy_ns) / kSecond;
  const double share = ShareOf(stage.busy_ns, wall_ns, threads);
  std::string text = absl::StrFormat("  %-10s %3.0f %% of %d threads, %u items", std::string(name),
                                     100 * share, threads, stage.items);
  // The rate of a nearly idle stage is meaningless.
  if (share >= 0.01 && stage.bytes > 0) {
    absl::StrAppendFormat(&text, ", %.2f GB/s per thread",
                          static_cast<double>(stage.bytes) / seconds / 1e9);
  }
  return text + "\n";
}

nlohmann::json StageJson(const StageStats& stage) {
  return {{"items", stage.items}, {"bytes", stage.bytes}, {"busy_ns", stage.busy_ns}};
}

}  // namespace

void LatencyHistogram::Add(uint64_t ns) {
  ++counts_[std::min(BucketOf(ns), counts_.size() - 1)];
  ++count_;
}

uint64_t LatencyHistogram::Quantile(double q) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(q * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    seen += counts_[bucket];
    if (counts_[bucket] > 0 && seen >= wanted) return ValueOf(bucket);
  }
  return 0;
}

std::string_view LoaderStats::Binding() const {
  // A consumer that hardly waits is itself the slowest stage.
  if (wall_ns > 0 && consumer_wait_ns < wall_ns / 20) return "consumer";
  const std::array<std::pair<double, std::string_view>, 4> stages = {{
      {ShareOf(read.busy_ns, wall_ns, cpu_threads), "read"},
      {ShareOf(decode.busy_ns, wall_ns, cpu_threads), "decode"},
      {ShareOf(plan.busy_ns, wall_ns, cpu_threads), "plan"},
      {ShareOf(disk_read.busy_ns, wall_ns, io_threads), "disk"},
  }};
  return std::max_element(stages.begin(), stages.end())->second;
}

std::string LoaderStats::Explain() const {
  const double wall = static_cast<double>(wall_ns) / kSecond;
  std::string text = absl::StrFormat(
      "the bottleneck is %s: %.0f samples/s, the consumer waits %.0f %% of the time\n",
      std::string(Binding()), wall > 0 ? static_cast<double>(samples) / wall : 0,
      100 * ShareOf(consumer_wait_ns, wall_ns, 1));
  text += StageLine("plan", plan, wall_ns, cpu_threads);
  text += StageLine("read", read, wall_ns, cpu_threads);
  if (disk_read.items > 0) text += StageLine("disk read", disk_read, wall_ns, io_threads);
  if (decode.items > 0) text += StageLine("decode", decode, wall_ns, cpu_threads);
  text += absl::StrFormat("  Next       p50 %.3f ms, p99 %.3f ms\n",
                          static_cast<double>(next.Quantile(0.5)) / 1e6,
                          static_cast<double>(next.Quantile(0.99)) / 1e6);
  text += absl::StrFormat("  memory     %u of %u slabs of %u bytes at most, waited %.0f %%\n",
                          peak_slabs, slabs, slab_bytes, 100 * ShareOf(memory_wait_ns, wall_ns, 1));
  if (!augmentation.empty())
    absl::StrAppend(
        &text,
        augmented_by_caller ? "  where images are decoded: " : "  on the host, with decoding: ",
        augmentation, "\n");
  return text;
}

std::string LoaderStats::ToJson() const {
  return nlohmann::json{{"binding", std::string(Binding())},
                        {"plan", StageJson(plan)},
                        {"read", StageJson(read)},
                        {"disk_read", StageJson(disk_read)},
                        {"decode", StageJson(decode)},
                        {"memory_wait_ns", memory_wait_ns},
                        {"consumer_wait_ns", consumer_wait_ns},
                        {"wall_ns", wall_ns},
                        {"batches", batches},
                        {"samples", samples},
                        {"padding", padding},
                        {"substituted", substituted},
                        {"cpu_threads", cpu_threads},
                        {"io_threads", io_threads},
                        {"slab_bytes", slab_bytes},
                        {"slabs", slabs},
                        {"peak_slabs", peak_slabs},
                        {"overflow_bytes", overflow_bytes},
                        {"augmentation", augmentation},
                        {"next_p50_ns", next.Quantile(0.5)},
                        {"next_p99_ns", next.Quantile(0.99)}}
      // Parameters of a plug-in need not be UTF-8.
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace shardpack
