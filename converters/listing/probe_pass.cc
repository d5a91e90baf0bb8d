#include "converters/listing/probe_pass.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "converters/listing/arena.h"
#include "converters/listing/find_skip.h"
#include "formats/io/bytes.h"
#include "formats/io/hash.h"

namespace shardpack {
namespace {

constexpr uint64_t kChunk = 64;  // rows per task

// Covers the fields besides the image.
uint64_t FieldsHash(std::span<const FieldView> fields) {
  uint64_t hash = 0;
  for (const FieldView& field : fields.subspan(1)) {
    const std::array<uint64_t, 3> parts = {hash, Xxh3_64(AsBytes(field.name)),
                                           Xxh3_64(field.bytes)};
    hash = Xxh3_64(std::as_bytes(std::span(parts)));
  }
  return hash;
}

}  // namespace

SkipReason SkipReasonOf(ProbeVerdict verdict) {
  switch (verdict) {
    case ProbeVerdict::kEmpty:
      return SkipReason::kEmpty;
    case ProbeVerdict::kTruncated:
      return SkipReason::kTruncated;
    case ProbeVerdict::kBadCrc:
      return SkipReason::kBadCrc;
    case ProbeVerdict::kPixelLimit:
      return SkipReason::kPixelLimit;
    case ProbeVerdict::kNotAnImage:
    case ProbeVerdict::kOk:
      break;
  }
  return SkipReason::kNotAnImage;
}

absl::Status RunProbePass(const SampleSource& source, const ProbeOptions& options, IoPool& pool,
                          Listing& listing, std::atomic<uint64_t>& probed,
                          const std::atomic<bool>* stop) {
  const uint64_t rows = listing.rows();
  listing.images.assign(rows, ImageInfo());
  listing.content_hash.assign(rows, 0);
  if (!listing.fields.empty()) listing.fields_hash.assign(rows, 0);
  std::mutex mutex;  // guards `found` and `failed`
  absl::Status failed;
  std::atomic<bool> ended = false;
  std::vector<Skip> found;
  pool.ForEach((rows + kChunk - 1) / kChunk, [&](size_t chunk) {
    thread_local Arena arena;
    const uint64_t begin = chunk * kChunk, end = std::min(begin + kChunk, rows);
    auto skip = listing.skips.begin() + static_cast<ptrdiff_t>(SkipsBefore(listing.skips, begin));
    for (uint64_t row = begin; row < end; ++row) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return;
      if (ended.load(std::memory_order_relaxed)) return;
      probed.fetch_add(1, std::memory_order_relaxed);
      if (skip != listing.skips.end() && skip->row == row) {
        ++skip;
        continue;
      }
      arena.Reset();
      LoadResult loaded = source.Load(listing, row, arena);
      if (absl::Status* error = std::get_if<absl::Status>(&loaded)) {
        ended = true;
        const std::lock_guard lock(mutex);
        failed.Update(std::move(*error));
        return;
      }
      if (Skip* bad = std::get_if<Skip>(&loaded)) {
        const std::lock_guard lock(mutex);
        found.push_back(std::move(*bad));
        continue;
      }
      const Bytes image = std::get<LoadedSample>(loaded).fields[0].bytes;
      ProbeResult result;
      result.info = std::get<LoadedSample>(loaded).image;  // raw pixels have no headers
      if (result.info.format != ImageFormat::kRaw) result = ProbeImage(image, options);
      if (result.verdict != ProbeVerdict::kOk) {
        const std::lock_guard lock(mutex);
        found.push_back({row, SkipReasonOf(result.verdict), result.detail});
        continue;
      }
      listing.images[row] = result.info;
      listing.content_hash[row] = Xxh3_64(image);
      if (!listing.fields.empty())
        listing.fields_hash[row] = FieldsHash(std::get<LoadedSample>(loaded).fields);
    }
  });
  listing.skips.insert(listing.skips.end(), std::make_move_iterator(found.begin()),
                       std::make_move_iterator(found.end()));
  std::sort(listing.skips.begin(), listing.skips.end(),
            [](const Skip& a, const Skip& b) { return a.row < b.row; });
  return failed;
}

}  // namespace shardpack
