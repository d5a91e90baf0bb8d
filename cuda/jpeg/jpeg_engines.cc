#include "cuda/jpeg/jpeg_engines.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"
#include "images/codecs/decode.h"

namespace shardpack {
namespace {

constexpr int kMaxFailures = 3;
constexpr uint64_t kMaxSkipped = 64;
constexpr size_t kMaxRefused = size_t{1} << 20;  // ids that are remembered
constexpr size_t kCompared = 8;                  // images
// The ways differ by fractions of this; the wrong colours, or another image, by more.
constexpr double kMaxMeanDifference = 8;

double MeanDifference(const PixelView& a, const PixelView& b) {
  uint64_t sum = 0;
  const size_t row_bytes = size_t{a.width} * a.channels;
  for (uint32_t y = 0; y < a.height; ++y) {
    for (size_t x = 0; x < row_bytes; ++x) {
      sum += static_cast<uint64_t>(std::abs(int{a.Row(y)[x]} - int{b.Row(y)[x]}));
    }
  }
  return static_cast<double>(sum) / static_cast<double>(row_bytes * a.height);
}

}  // namespace

JpegEngines::JpegEngines(const NvjpegFunctions* functions, Device& device,
                         const JpegDecoderOptions& options, NvjpegMemory& memory)
    : device_(device),
      options_(options),
      why_not_(functions == nullptr ? "no nvJPEG" : "not asked for") {
  if (functions == nullptr || !options.use_hardware) return;
  auto made = NvjpegHardware::Create(*functions, device, options, memory);
  if (made.ok()) {
    hardware_.emplace(*std::move(made));
    if (!hardware_->regions().ok()) regions_ = {true, std::string(hardware_->regions().message())};
  } else {
    why_not_ = std::string(made.status().message());
  }
}

std::string JpegEngines::Describe() const {
  if (!usable()) return why_not_;
  return hardware_->engines() == 0 ? "yes" : absl::StrCat(hardware_->engines(), " engines");
}

void JpegEngines::BeginBatch() {
  if (rest_ > 0 && --rest_ == 0) failed_in_a_row_ = kMaxFailures - 1;  // one try
  asked_ = batch_decoded_ = 0;
  by_region_ = false;
  culprits_.clear();
}

absl::Status JpegEngines::TryRegions(std::span<const JpegImage> images, Stream stream) {
  if (regions_.known || !usable()) return absl::OkStatus();
  RegionTrial trial(device_, options_, [&](const JpegImage& image) {
    const JpegImage* const one = &image;
    return hardware_->Decode({&one, 1}, stream);
  });
  for (const JpegImage& image : images) {
    if (trial.done()) break;
    JpegImage whole = image;
    whole.room = {};
    if (!hardware_->Takes(whole, 0)) continue;
    if (!hardware_->Takes(image, 0)) {
      trial.Refuse("they say that they take an image whole, and not a part of it");
      break;
    }
    RETURN_IF_ERROR(trial.Try(image, stream));
  }
  trial.Judge(regions_);
  return absl::OkStatus();
}

bool JpegEngines::Takes(const JpegImage& image, size_t lane) const {
  return usable() && !(image.id && refused_.count(*image.id) > 0) &&
         (image.room.empty() || regions_.usable()) && hardware_->Takes(image, lane);
}

void JpegEngines::Remember(const JpegImage& image) {
  if (image.id && refused_.size() < kMaxRefused) refused_.insert(*image.id);
}

void JpegEngines::GiveUp(const std::string& why) {
  why_not_ = absl::StrCat("given up: ", why);
  if (stats_.first_refusal.empty()) stats_.first_refusal = why;
}

void JpegEngines::NoteSkipped(const JpegImage& image) {
  Remember(image);
  if (++stats_.skipped <= kMaxSkipped || !hardware_) return;
  GiveUp(absl::StrCat("they skipped ", stats_.skipped, " images"));
  hardware_.reset();
}

// What is neither decoded nor found out within a few calls is left to others.
absl::Status JpegEngines::DecodePart(std::span<const JpegImage* const> images, size_t begin,
                                     Stream stream, std::vector<bool>& decoded) {
  if (calls_left_ == 0) return absl::OkStatus();
  const absl::Status status = hardware_->Decode(images, stream);
  if (status.ok()) {
    decoded_ += images.size();
    std::fill_n(decoded.begin() + static_cast<ptrdiff_t>(begin), images.size(), true);
    return absl::OkStatus();
  }
  if (!IsRefusal(status)) return status;
  --calls_left_;
  if (stats_.first_refusal.empty()) stats_.first_refusal = std::string(status.message());
  if (images.size() == 1) {
    culprits_.push_back(images[0]);
    return absl::OkStatus();
  }
  const size_t half = images.size() / 2;
  RETURN_IF_ERROR(DecodePart(images.first(half), begin, stream, decoded));
  return DecodePart(images.subspan(half), begin + half, stream, decoded);
}

absl::Status JpegEngines::Decode(std::span<const JpegImage* const> images, Stream stream,
                                 std::vector<bool>& decoded) {
  decoded.assign(images.size(), false);
  if (images.empty()) return absl::OkStatus();
  // Enough to find four of them.
  const size_t most_calls = 4 * static_cast<size_t>(std::bit_width(images.size()));
  calls_left_ = most_calls;
  decoded_ = 0;
  RETURN_IF_ERROR(DecodePart(images, 0, stream, decoded));
  if (calls_left_ < most_calls) ++stats_.failed_batches;
  asked_ += images.size();
  batch_decoded_ += decoded_;
  for (size_t i = 0; i < images.size(); ++i) {
    if (images[i]->room.empty()) continue;
    by_region_ = true;
    if (decoded[i]) ++stats_.regions;
  }
  if (decoded_ == 0) return absl::OkStatus();
  ++stats_.batches;
  stats_.hardware += decoded_;
  if (compared_) return absl::OkStatus();
  return CompareWithCpu(images, stream, decoded);
}

void JpegEngines::EndBatch() {
  if (asked_ == 0) return;
  if (batch_decoded_ > 0) {
    failed_in_a_row_ = 0;
    // Engines that decode others refuse these for what they are.
    for (const JpegImage* image : culprits_) Remember(*image);
    return;
  }
  if (by_region_) {  // which may be why
    regions_.why_not = absl::StrCat("a batch was refused: ", stats_.first_refusal);
    return;
  }
  if (++failed_in_a_row_ < kMaxFailures) return;
  GiveUp(stats_.first_refusal);
  rest_ = next_rest_;
  next_rest_ = std::min<uint32_t>(next_rest_ * 2, 1u << 16);
}

absl::Status JpegEngines::CompareWithCpu(std::span<const JpegImage* const> images, Stream stream,
                                         std::vector<bool>& decoded) {
  RETURN_IF_ERROR(hardware_->Wait());
  ImageDecoder decoder;
  DecodeOptions decode;
  decode.channels = options_.channels;
  decode.orient = false;
  decode.max_pixels = options_.max_pixels;
  std::vector<uint8_t> theirs;
  size_t compared = 0;
  for (size_t i = 0; i < images.size() && compared < kCompared; ++i) {
    const JpegImage& image = *images[i];
    if (!decoded[i]) continue;
    decode.region = image.room;
    const auto ours = decoder.Decode(image.file, image.info, decode);
    if (!ours.ok()) continue;
    theirs.resize(OutBytesOf(image));
    // To memory that is not page-locked: done when it returns.
    RETURN_IF_ERROR(device_.CopyToHost(theirs.data(), image.out, theirs.size(), stream));
    // One that was skipped is found by those who have filled its memory.
    if (std::count(theirs.begin(), theirs.end(), kUnpainted) == std::ssize(theirs)) continue;
    ++compared;
    const PixelRegion part = PartOf(image);
    const PixelView view{theirs.data(), part.width, part.height, options_.channels,
                         image.pitch_bytes};
    const double difference = MeanDifference(view, ours->view);
    if (difference <= kMaxMeanDifference) continue;
    ++stats_.failed_batches;
    stats_.hardware -= decoded_;
    stats_.regions = 0;  // this was the first batch
    decoded.assign(decoded.size(), false);
    GiveUp(absl::StrCat("an image differs from the CPU's by ", difference, " of 255 on average"));
    hardware_.reset();
    return absl::OkStatus();
  }
  compared_ = compared > 0;
  return absl::OkStatus();
}

}  // namespace shardpack
