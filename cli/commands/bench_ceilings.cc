#include "cli/commands/bench_ceilings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/terminal/seconds_since.h"
#include "formats/core/sample.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSeconds = 0.5;
constexpr size_t kCopyBytes = size_t{32} << 20;  // larger than the caches of most cores
constexpr size_t kReadBytes = size_t{1} << 20;
constexpr size_t kDecodeSamples = 256;
constexpr uint64_t kDecodeBytes = uint64_t{256} << 20;

// Calls `work` on each thread until half a second has passed or it returns 0. Returns the sum of
// its results per second.
double MeasureRate(int threads, const std::function<uint64_t()>& work) {
  std::atomic<uint64_t> done{0};
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      while (SecondsSince(start) < kSeconds) {
        const uint64_t step = work();
        if (step == 0) return;
        done.fetch_add(step, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  return static_cast<double>(done) / SecondsSince(start);
}

}  // namespace

double CopyCeiling(int threads) {
  return MeasureRate(threads, [] {
    thread_local const std::vector<char> from(kCopyBytes, 1);
    thread_local std::vector<char> to(kCopyBytes);
    std::memcpy(to.data(), from.data(), kCopyBytes);
    return uint64_t{kCopyBytes};
  });
}

absl::StatusOr<double> ReadCeiling(const Dataset& dataset, int threads) {
  struct Piece {
    uint32_t shard;
    uint64_t offset, bytes;
  };
  std::vector<Piece> pieces;
  for (uint32_t s = 0; s < dataset.shards().size(); ++s) {
    const uint64_t size = dataset.shards()[s].bytes;
    for (uint64_t at = 0; at < size; at += kReadBytes)
      pieces.push_back({s, at, std::min<uint64_t>(kReadBytes, size - at)});
  }
  // Open the shards first, so that a missing one is an error and not measured.
  for (uint32_t s = 0; s < dataset.shards().size(); ++s) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const File> file, dataset.OpenFile(s));
  }
  if (pieces.empty()) return absl::DataLossError("the shards are empty");
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  const double rate = MeasureRate(threads, [&]() -> uint64_t {
    thread_local std::vector<std::byte> into(kReadBytes);
    const Piece& piece = pieces[next.fetch_add(1) % pieces.size()];
    const absl::StatusOr<std::shared_ptr<const File>> file = dataset.OpenFile(piece.shard);
    if (!file.ok() ||
        !(*file)->ReadExactlyAt(piece.offset, std::span(into).first(piece.bytes)).ok()) {
      failed = true;
    }
    return failed ? 0 : piece.bytes;
  });
  if (failed) return absl::DataLossError("a shard cannot be read as a whole; try pack validate");
  return rate;
}

absl::StatusOr<double> DecodeCeiling(const Dataset& dataset, const PixelPipelineOptions& pipeline,
                                     int threads) {
  std::vector<OwnedSample> samples;
  uint64_t bytes = 0;
  const uint64_t wanted = std::min<uint64_t>(kDecodeSamples, dataset.size());
  for (uint64_t i = 0; i < wanted && bytes < kDecodeBytes; ++i) {
    absl::StatusOr<OwnedSample> sample = dataset.Read(i * dataset.size() / wanted);
    if (!sample.ok()) continue;  // the loader has reported it
    if (sample->fields.empty() || sample->fields[0].name != kImageField) continue;
    bytes += sample->fields[0].bytes.size();
    samples.push_back(*std::move(sample));
  }
  ASSIGN_OR_RETURN(PixelPipeline first, PixelPipeline::Create(pipeline));
  if (samples.empty()) return absl::InvalidArgumentError("the samples have no images");
  std::atomic<uint64_t> next{0};
  return MeasureRate(threads, [&]() -> uint64_t {
    thread_local std::unique_ptr<PixelPipeline> own;
    thread_local std::vector<std::byte> slot;
    if (own == nullptr) {
      own = std::make_unique<PixelPipeline>(*PixelPipeline::Create(pipeline));
      slot.resize(own->output_bytes());
    }
    const uint64_t n = next.fetch_add(1);
    const OwnedSample& sample = samples[n % samples.size()];
    // The loader reports images that cannot be decoded; here they count as work.
    (void)own->Run(AsBytes(sample.fields[0].bytes), sample.image, {.id = n}, slot.data());
    return 1;
  });
}

}  // namespace shardpack::cli
