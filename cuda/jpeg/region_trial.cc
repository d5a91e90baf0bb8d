#include "cuda/jpeg/region_trial.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/device/device_event.h"
#include "cuda/jpeg/nvjpeg_backends.h"
#include "formats/io/status_macros.h"

namespace shardpack {

void RegionTrial::Judge(RegionVerdict& verdict) const {
  if (tried_ == 0 && why_not_.empty()) return;
  ++verdict.trials;
  verdict.why_not = why_not_;
  verdict.known = !why_not_.empty() || (has_edges_x_ && has_edges_y_);
  if (verdict.known || verdict.trials < RegionVerdict::kTrials) return;
  verdict.known = true;
  verdict.why_not = "the images of the trials have no edges that would show a wrong region";
}

absl::Status RegionTrial::Try(const JpegImage& image, Stream stream) {
  const size_t whole_pitch = size_t{image.info.width} * options_.channels;
  const size_t part_pitch = size_t{image.room.width} * options_.channels;
  // As far as the whole image goes with the pitch of the part.
  const size_t part_bytes = part_pitch * (image.info.height - 1) + whole_pitch;
  const size_t whole_at_bytes = DeviceAligned(part_bytes);
  const size_t bytes = whole_at_bytes + whole_pitch * image.info.height;
  const absl::StatusOr<void*> memory = device_.Allocate(bytes, "a trial of decoding regions");
  if (absl::IsResourceExhausted(memory.status())) {
    Refuse("no memory on the device to try it");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(memory.status());
  absl::Status status =
      Decode(image, whole_at_bytes, static_cast<uint8_t*>(*memory), bytes, stream);
  // Waits for what is under way, as after a refusal.
  if (!device_.lost()) status.Update(device_.Free(*memory));
  return status;
}

absl::Status RegionTrial::Decode(const JpegImage& image, size_t whole_at_bytes, uint8_t* memory,
                                 size_t bytes, Stream stream) {
  JpegImage whole = image, part = image;
  whole.room = {};
  whole.out = memory + whole_at_bytes;
  whole.pitch_bytes = size_t{image.info.width} * options_.channels;
  part.out = memory;
  part.pitch_bytes = size_t{image.room.width} * options_.channels;
  DeviceEvent done(device_, options_.stop);
  RETURN_IF_ERROR(device_.Fill(memory, kUnpainted, bytes, stream));
  RETURN_IF_ERROR(done.Record(stream));
  RETURN_IF_ERROR(done.Wait());  // the engines do not
  for (const JpegImage* const one : {&whole, &part}) {
    const absl::Status decoded = decode_(*one);
    RETURN_IF_ERROR(done.Record(stream));
    RETURN_IF_ERROR(done.Wait());
    if (decoded.ok()) continue;
    if (!IsRefusal(decoded)) return decoded;
    if (one == &part) Refuse(std::string(decoded.message()));
    return absl::OkStatus();
  }
  std::vector<uint8_t> got(bytes);
  // To memory that is not page-locked: done when it returns.
  RETURN_IF_ERROR(device_.CopyToHost(got.data(), memory, bytes, stream));
  ++tried_;
  Compare(image, got.data(), whole_at_bytes, got.data() + whole_at_bytes);
  return absl::OkStatus();
}

void RegionTrial::Compare(const JpegImage& image, const uint8_t* part, size_t bytes,
                          const uint8_t* whole) {
  const PixelRegion &room = image.room, &region = image.region;
  const size_t channels = options_.channels;
  const size_t part_pitch = room.width * channels, whole_pitch = image.info.width * channels;
  const size_t row_bytes = region.width * channels;
  for (uint32_t y = region.top; y < region.top + region.height; ++y) {
    const uint8_t* const row = whole + y * whole_pitch + region.left * channels;
    const uint8_t* const theirs =
        part + (y - room.top) * part_pitch + (region.left - room.left) * channels;
    if (std::memcmp(row, theirs, row_bytes) != 0) {
      return Refuse(absl::StrCat("the part of ", room.width, "x", room.height, " at ", room.left,
                                 ",", room.top, " of an image of ", image.info.width, "x",
                                 image.info.height, " is not the same as in the whole image"));
    }
    if (std::memcmp(row, row + channels, row_bytes - channels) != 0) has_edges_x_ = true;
    if (y > region.top && std::memcmp(row, row - whole_pitch, row_bytes) != 0) has_edges_y_ = true;
  }
  const auto is_painted = [](uint8_t byte) { return byte != kUnpainted; };
  if (std::any_of(part + part_pitch * room.height, part + bytes, is_painted))
    Refuse("more than the part was written");
}

}  // namespace shardpack
