#include "cuda/jpeg/jpeg_worker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

JpegStaging::~JpegStaging() {
  for (Page& page : pages_) {
    (void)page.done.Wait();
    if (page.memory != nullptr && !device_.lost()) (void)device_.FreeHost(page.memory);
  }
}

// All pages or none.
void JpegStaging::Allocate() {
  allocated_ = true;
  for (Page& page : pages_) {
    const absl::StatusOr<void*> memory = device_.AllocateHost(kPageBytes);
    if (!memory.ok()) break;
    page.memory = static_cast<std::byte*>(*memory);
  }
  if (pages_.back().memory != nullptr || pages_.front().memory == nullptr) return;
  if (!device_.lost()) (void)device_.FreeHost(pages_.front().memory);
  pages_.front().memory = nullptr;
}

absl::Status JpegStaging::Flush(Stream stream) {
  if (used_ == 0) return absl::OkStatus();
  Page& page = pages_[page_];
  page_ = (page_ + 1) % pages_.size();
  absl::Status status =
      device_.CopyToDevice(page_to_, page.memory, std::exchange(used_, 0), stream);
  // Also after a failure: part of it may be under way.
  status.Update(page.done.Record(stream));
  return status;
}

absl::Status JpegStaging::Put(const PixelView& pixels, uint8_t* to, size_t pitch_bytes,
                              Stream stream) {
  if (!allocated_) Allocate();
  const size_t row_bytes = size_t{pixels.width} * pixels.channels;
  absl::Status status;
  for (uint32_t y = 0; y < pixels.height && status.ok(); ++y, to += pitch_bytes) {
    const uint8_t* const row = pixels.Row(y);
    if (pages_[0].memory == nullptr) {
      status = device_.CopyToDevice(to, row, row_bytes, stream);
      continue;
    }
    for (size_t done = 0; done < row_bytes && status.ok();) {
      if (used_ == 0) {
        page_to_ = to + done;
        status = pages_[page_].done.Wait();
        if (!status.ok()) break;
      }
      const size_t part = std::min(row_bytes - done, kPageBytes - used_);
      std::memcpy(pages_[page_].memory + used_, row + done, part);
      used_ += part;
      done += part;
      if (used_ == kPageBytes) status = Flush(stream);
    }
    if (status.ok() && pitch_bytes != row_bytes) status = Flush(stream);
  }
  if (status.ok()) status = Flush(stream);
  used_ = 0;
  return status;
}

JpegWorker::JpegWorker(const HybridSource& hybrid, Device& device,
                       const JpegDecoderOptions& options)
    : source_(hybrid),
      device_(device),
      options_(options),
      why_no_hybrid_(hybrid.handle.status().message()),
      staging_(device, options.stop) {}

void JpegWorker::MakeHybrid() {
  if (std::exchange(tried_, true) || !source_.handle.ok()) return;
  auto made =
      NvjpegHybrid::Create(*source_.functions, *source_.handle, *source_.memory, device_, options_);
  if (made.ok()) {
    hybrid_.emplace(*std::move(made));
  } else {
    why_no_hybrid_ = std::string(made.status().message());
  }
}

absl::Status JpegWorker::TryRegions(std::span<const JpegImage> images, Stream stream,
                                    RegionVerdict& verdict) {
  if (!hybrid_->regions().ok()) {
    verdict = {true, std::string(hybrid_->regions().message())};
    return absl::OkStatus();
  }
  RegionTrial trial(device_, options_,
                    [&](const JpegImage& image) { return hybrid_->Decode(image, stream); });
  for (const JpegImage& image : images) {
    if (!trial.done()) RETURN_IF_ERROR(trial.Try(image, stream));
  }
  trial.Judge(verdict);
  return absl::OkStatus();
}

absl::Status JpegWorker::Decode(const JpegImage& image, bool for_nvjpeg, Stream stream,
                                JpegResult* result) {
  if (for_nvjpeg) MakeHybrid();
  if (for_nvjpeg && hybrid_.has_value()) {
    const absl::Status status = hybrid_->Decode(image, stream);
    if (status.ok()) {
      ++stats_.hybrid;
      if (!image.room.empty()) ++stats_.regions;
      *result = {absl::OkStatus(), JpegWay::kHybrid};
      return status;
    }
    if (!IsRefusal(status)) return status;
    if (stats_.refused++ == 0) stats_.first_refusal = std::string(status.message());
  }
  if (for_nvjpeg && !hybrid_.has_value() && options_.use_hybrid) ++stats_.without_nvjpeg;
  return DecodeOnCpu(image, stream, result);
}

absl::StatusOr<DecodedImage> JpegWorker::Pixels(const JpegImage& image) {
  DecodeOptions decode;
  decode.region = image.region;
  decode.min_width = image.min_width;
  decode.min_height = image.min_height;
  decode.channels = options_.channels;
  decode.orient = options_.orient;
  decode.max_pixels = options_.max_pixels;
  decode.max_scans = options_.max_scans;
  return decoder_.Decode(image.file, image.info, decode);
}

// All that the engines put there: unpainted bytes lie anywhere, and what reads the image was told
// where it is.
absl::Status JpegWorker::DecodeSkipped(const JpegImage& given, std::span<const size_t> unpainted,
                                       Stream stream, JpegResult* result, bool* skipped) {
  JpegImage image = given;
  image.region = image.room;
  image.min_width = image.min_height = 0;
  const absl::StatusOr<DecodedImage> pixels = Pixels(image);
  const auto is_painted = [&](size_t at) {
    const size_t y = at / image.pitch_bytes, x = at % image.pitch_bytes;
    return pixels->view.Row(static_cast<uint32_t>(y))[x] != kUnpainted;
  };
  *skipped = !pixels.ok() || std::any_of(unpainted.begin(), unpainted.end(), is_painted);
  if (!*skipped) return absl::OkStatus();
  if (!pixels.ok()) return Fail(pixels.status(), result);
  return Put(*pixels, image, image.pitch_bytes, stream, result);
}

absl::Status JpegWorker::Fail(const absl::Status& why, JpegResult* result) {
  ++stats_.failed;
  *result = {why, JpegWay::kCpu};
  return absl::OkStatus();
}

absl::Status JpegWorker::DecodeOnCpu(const JpegImage& image, Stream stream, JpegResult* result) {
  const absl::StatusOr<DecodedImage> pixels = Pixels(image);
  if (!pixels.ok()) return Fail(pixels.status(), result);
  const bool packed = !image.region.empty();
  const size_t pitch_bytes =
      packed ? size_t{pixels->view.width} * options_.channels : image.pitch_bytes;
  RETURN_IF_ERROR(Put(*pixels, image, pitch_bytes, stream, result));
  if (!packed) return absl::OkStatus();
  result->packed = true;
  result->decoded = *pixels;
  result->decoded.view.pixels = nullptr;
  return absl::OkStatus();
}

absl::Status JpegWorker::Put(const DecodedImage& pixels, const JpegImage& image, size_t pitch_bytes,
                             Stream stream, JpegResult* result) {
  RETURN_IF_ERROR(staging_.Put(pixels.view, image.out, pitch_bytes, stream));
  ++stats_.cpu;
  if (staging_.pageable()) ++stats_.pageable;
  *result = {absl::OkStatus(), JpegWay::kCpu};
  return absl::OkStatus();
}

}  // namespace shardpack
