#include "converters/building/sample_chunk.h"

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "converters/listing/probe_pass.h"
#include "formats/io/hash.h"
#include "images/codecs/decode.h"
#include "images/probe/probe.h"

namespace shardpack {
namespace {

// Raw pixels have no header: only their number can be wrong.
ProbeResult ProbeRaw(const PreparedSample& sample, uint64_t max_pixels) {
  const ImageInfo& info = sample.image;
  const uint64_t pixels = uint64_t{info.width} * info.height;
  if (pixels > max_pixels)
    return {ProbeVerdict::kPixelLimit, info, 0, "more pixels than --max-pixels"};
  if (pixels * info.channels != sample.fields[0].bytes.size()) {
    return {ProbeVerdict::kTruncated, info, 0, "raw pixels of another size"};
  }
  return {ProbeVerdict::kOk, info};
}

// Whether a probe with `wanted` would say the same as one with `was`, which found nothing wrong.
bool SaysTheSame(const ProbeOptions& was, const ProbeOptions& wanted) {
  return was.level == wanted.level && was.max_pixels <= wanted.max_pixels &&
         (!was.allow_truncated || wanted.allow_truncated);
}

}  // namespace

void SampleChunk::Reset() {
  loaded_.Reset();
  transformed_.Reset();
  samples_.clear();
  hashes_.clear();
  next_ = 0;
  hashed_ = false;
  skips_.clear();
  bytes_in_ = 0;
  pixel_stats_ = {};
  status_ = absl::OkStatus();
}

void SampleChunk::Load(const SampleSource& source, uint64_t first, uint64_t count) {
  results_.clear();
  rows_.clear();
  for (uint64_t position = first; position < first + count; ++position)
    rows_.push_back(plan_->row(position));
  source.LoadRows(plan_->listing(), rows_, loaded_, results_);
  uint64_t position = first;
  for (LoadResult& loaded : results_) {
    const uint64_t at = position++;
    if (absl::Status* failed = std::get_if<absl::Status>(&loaded)) {
      samples_.clear();
      skips_.clear();
      status_ = std::move(*failed);
      return;
    }
    if (Skip* skip = std::get_if<Skip>(&loaded)) {
      skips_.push_back(std::move(*skip));
      continue;
    }
    const LoadedSample& sample = std::get<LoadedSample>(loaded);
    for (const FieldView& field : sample.fields) bytes_in_ += field.bytes.size();
    samples_.push_back({.position = at,
                        .fields = sample.fields,
                        .image = sample.image,
                        .verified_hashes = sample.hashes,
                        .probed = sample.probed});
  }
}

void SampleChunk::Probe() {
  const PlanOptions& options = plan_->options();
  const ProbeOptions probe{.level = options.verify,
                           .max_pixels = options.max_pixels,
                           .allow_truncated = options.allow_truncated};
  // Here the bytes are still in the cache.
  hashed_ = options.pixels.identity() && !options.compute_stats;
  auto keep = samples_.begin();
  for (PreparedSample& sample : samples_) {
    const bool known = sample.probed != nullptr && SaysTheSame(*sample.probed, probe);
    const ProbeResult result = sample.image.format == ImageFormat::kRaw
                                   ? ProbeRaw(sample, options.max_pixels)
                               : known ? ProbeResult{.info = sample.image}
                                       : ProbeImage(sample.fields[0].bytes, probe);
    if (result.verdict != ProbeVerdict::kOk) {
      skips_.push_back({plan_->row(sample.position), SkipReasonOf(result.verdict),
                        absl::StrCat(result.detail, " at offset ", result.offset)});
      continue;
    }
    sample.image = result.info;
    if (hashed_ && !sample.verified_hashes.empty()) {
      sample.first_hash = hashes_.size();
      hashes_.insert(hashes_.end(), sample.verified_hashes.begin(), sample.verified_hashes.end());
    } else if (hashed_) {
      HashSample(sample);
    }
    *keep++ = sample;
  }
  samples_.erase(keep, samples_.end());
}

uint64_t SampleChunk::TransformNext(const ImageTransform& transform, const TransformTarget& target,
                                    TransformScratch& scratch) {
  PreparedSample& sample = samples_[next_++];
  absl::StatusOr<TransformedImage> image =
      transform.Run(sample.fields[0].bytes, sample.image, target, scratch);
  if (!image.ok()) {
    return Skipped(sample, SkipReason::kDecodeFailed, std::string(image.status().message()));
  }
  sample.changes = image->changes;
  uint64_t grown_bytes = 0;
  if (ChangesPixels(image->changes)) {
    const uint64_t most = plan_->format().traits.max_record_bytes;
    if (most > 0 && image->bytes.size() > most) {
      return Skipped(sample, SkipReason::kTooLarge,
                     absl::StrCat(image->bytes.size(), " bytes when encoded, a record of ",
                                  std::string(plan_->format().name), " takes ", most));
    }
    grown_bytes = Replace(sample, *image);
  }
  if (plan_->options().compute_stats) AddToStats(sample, scratch.decoder());
  return grown_bytes;
}

uint64_t SampleChunk::Skipped(PreparedSample& sample, SkipReason reason, std::string why) {
  sample.failed = true;
  skips_.push_back({plan_->row(sample.position), reason, std::move(why)});
  return 0;
}

uint64_t SampleChunk::Replace(PreparedSample& sample, const TransformedImage& image) {
  const std::span<std::byte> bytes = transformed_.Allocate(image.bytes.size());
  std::memcpy(bytes.data(), image.bytes.data(), bytes.size());
  const size_t count = sample.fields.size();
  static_assert(std::is_trivially_destructible_v<FieldView>);
  auto* fields =
      reinterpret_cast<FieldView*>(transformed_.Allocate(count * sizeof(FieldView)).data());
  std::uninitialized_copy(sample.fields.begin(), sample.fields.end(), fields);
  fields[0].bytes = bytes;
  sample.fields = {fields, count};
  sample.image = image.info;
  return bytes.size() + count * sizeof(FieldView);
}

void SampleChunk::AddToStats(const PreparedSample& sample, ImageDecoder& decoder) {
  const absl::StatusOr<DecodedImage> image =
      decoder.Decode(sample.fields[0].bytes, sample.image,
                     {.orient = false, .max_pixels = plan_->options().max_pixels});
  if (!image.ok()) {
    ++pixel_stats_.undecodable;
    return;
  }
  ++pixel_stats_.images;
  pixel_stats_.sums.Add(image->view);
}

void SampleChunk::HashSample(PreparedSample& sample) {
  sample.first_hash = hashes_.size();
  for (const FieldView& field : sample.fields) hashes_.push_back(Xxh3_64(field.bytes));
}

void SampleChunk::Hash() {
  if (hashed_) return;
  std::erase_if(samples_, [](const PreparedSample& sample) { return sample.failed; });
  for (PreparedSample& sample : samples_) HashSample(sample);
  hashed_ = true;
}

void SampleChunk::FlushPrefix(const std::function<void(const SampleChunk&)>& append) {
  const auto end = samples_.begin() + static_cast<ptrdiff_t>(next_);
  std::vector<PreparedSample> later(end, samples_.end());
  samples_.erase(end, samples_.end());
  Hash();
  append(*this);
  samples_ = std::move(later);
  hashes_.clear();
  next_ = 0;
  hashed_ = false;
  skips_.clear();
  pixel_stats_ = {};
  transformed_.Reset();
}

}  // namespace shardpack
