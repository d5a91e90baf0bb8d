#include "cuda/loading/skipped_images.h"

#include <algorithm>
#include <utility>

#include "formats/io/status_macros.h"

namespace shardpack {

SkippedImages::~SkippedImages() {
  (void)done_.Wait();
  Drop();
}

void SkippedImages::Drop() {
  if (device_.lost()) return;
  if (on_device_ != nullptr) (void)device_.Free(std::exchange(on_device_, nullptr));
  if (host_ != nullptr && !device_.lost()) (void)device_.FreeHost(std::exchange(host_, nullptr));
  room_ = 0;
}

absl::Status SkippedImages::MakeRoom(size_t rows) {
  if (rows <= room_) return absl::OkStatus();
  RETURN_IF_ERROR(done_.Wait());
  Drop();
  const size_t bytes = rows * (sizeof(uint64_t) + kRowBytes);
  ASSIGN_OR_RETURN(on_device_, device_.Allocate(bytes, "a check of decoded images"));
  const absl::StatusOr<void*> pinned = device_.AllocateHost(bytes);
  if (!pinned.ok() && device_.lost()) return pinned.status();
  host_ = pinned.ok() ? *pinned : nullptr;
  if (host_ == nullptr) pageable_.resize(bytes);
  room_ = rows;
  return absl::OkStatus();
}

absl::Status SkippedImages::Look(const void* memory, std::vector<SlotImage> images, Stream stream) {
  images_ = std::move(images);
  witnesses_.clear();
  std::vector<uint64_t> rows;
  for (size_t i = 0; i < images_.size(); ++i) {
    const JpegImage& image = images_[i].image;
    const auto begin = static_cast<size_t>(image.out - static_cast<const uint8_t*>(memory));
    // Rows of pixels have no gaps between them.
    const size_t end = begin + OutBytesOf(image);
    const size_t first = (begin + kRowBytes - 1) / kRowBytes, last = end / kRowBytes;
    if (first >= last) continue;  // smaller than what is looked at, and than what engines take
    for (size_t k = 0; k < kRowsAnImage; ++k) {
      const size_t row = first + (last - 1 - first) * k / (kRowsAnImage - 1);
      rows.push_back(row);
      witnesses_.push_back({i, row * kRowBytes - begin});
    }
  }
  if (rows.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(MakeRoom(std::max(rows.size(), room_)));
  auto* const host = static_cast<std::byte*>(host_ == nullptr ? pageable_.data() : host_);
  auto* const device = static_cast<std::byte*>(on_device_);
  const size_t rows_bytes = rows.size() * sizeof(uint64_t);
  std::copy(rows.begin(), rows.end(), reinterpret_cast<uint64_t*>(host));
  // What was read is 16-byte aligned, and so vector loads may be used.
  const size_t read_at = room_ * sizeof(uint64_t);
  absl::Status status = device_.CopyToDevice(device, host, rows_bytes, stream);
  if (status.ok()) {
    status = device_.Gather({.table = static_cast<const uint8_t*>(memory),
                             .rows = reinterpret_cast<const uint64_t*>(device),
                             .count = static_cast<uint32_t>(rows.size()),
                             .row_bytes = kRowBytes,
                             .out = reinterpret_cast<uint8_t*>(device + read_at)},
                            stream);
  }
  if (status.ok()) {
    status = device_.CopyToHost(host + read_at, device + read_at, rows.size() * kRowBytes, stream);
  }
  // Also after a failure: part of it may be under way.
  status.Update(done_.Record(stream));
  return status;
}

absl::StatusOr<std::vector<SkippedImage>> SkippedImages::Find() {
  RETURN_IF_ERROR(done_.Wait());
  std::vector<SkippedImage> found;
  const auto* const host = static_cast<const uint8_t*>(host_ == nullptr ? pageable_.data() : host_);
  const uint8_t* bytes = host + room_ * sizeof(uint64_t);
  for (const Witness& witness : witnesses_) {
    const bool unpainted =
        std::all_of(bytes, bytes + kRowBytes, [](uint8_t byte) { return byte == kUnpainted; });
    bytes += kRowBytes;
    if (!unpainted) continue;
    const SlotImage& at = images_[witness.image];
    if (found.empty() || found.back().at.slot != at.slot) found.push_back({at, {}});
    for (size_t i = 0; i < kRowBytes; ++i) found.back().unpainted.push_back(witness.offset + i);
  }
  witnesses_.clear();
  return found;
}

}  // namespace shardpack
