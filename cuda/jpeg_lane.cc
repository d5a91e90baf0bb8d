#include "cuda/jpeg_lane.h"

#include <cstring>
#include <utility>

namespace shardpack {

JpegStaging::~JpegStaging() {
  for (Page& page : pages_) {
    (void)page.done.Wait();
    if (page.memory != nullptr && !IsLost(device_)) {
      (void)Checked(device_, device_.host_free(device_.self, page.memory), "");
    }
  }
}

absl::StatusOr<uint8_t*> JpegStaging::Open(size_t bytes) {
  Page& page = pages_[next_];
  if (auto status = page.done.Wait(); !status.ok()) return status;
  if (page.bytes < bytes) {
    // A quarter more, so that images that differ a little do not each come here.
    const size_t room = DeviceAligned(bytes + bytes / 4);
    void* memory = nullptr;
    absl::Status status = Checked(device_, device_.host_alloc(device_.self, &memory, room),
                                  "page-locked memory for a decoded image");
    if (!status.ok()) return status;
    std::swap(page.memory, memory);
    page.bytes = room;
    if (memory != nullptr) {
      status = Checked(device_, device_.host_free(device_.self, memory),
                       "freeing memory of a decoded image");
      if (!status.ok()) return status;
    }
  }
  return static_cast<uint8_t*>(page.memory);
}

absl::Status JpegStaging::Close(Stream stream) {
  Page& page = pages_[next_];
  next_ = (next_ + 1) % pages_.size();
  return page.done.Record(stream);
}

JpegLane::JpegLane(const NvjpegFunctions* functions, const DeviceApi& device,
                   const JpegDecoderOptions& options)
    : device_(device),
      options_(options),
      why_no_hybrid_(functions == nullptr ? "no nvJPEG" : "not asked for"),
      staging_(device, options.stop) {
  if (functions == nullptr || !options.use_hybrid) return;
  auto made = NvjpegHybrid::Create(*functions, device, options);
  if (made.ok()) {
    hybrid_.emplace(*std::move(made));
  } else {
    why_no_hybrid_ = std::string(made.status().message());
  }
}

absl::Status JpegLane::Decode(const JpegImage& image, bool for_nvjpeg, Stream stream,
                              JpegResult* result) {
  if (for_nvjpeg && hybrid_.has_value()) {
    const absl::Status status = hybrid_->Decode(image, stream);
    if (status.ok()) {
      ++stats_.hybrid;
      *result = {absl::OkStatus(), JpegWay::kHybrid};
      return status;
    }
    if (!IsRefusal(status)) return status;
    if (stats_.refused++ == 0) stats_.first_refusal = std::string(status.message());
  }
  return DecodeOnCpu(image, stream, result);
}

absl::Status JpegLane::DecodeOnCpu(const JpegImage& image, Stream stream, JpegResult* result) {
  DecodeOptions decode;
  decode.channels = options_.channels;
  decode.orient = options_.orient;
  decode.max_pixels = options_.max_pixels;
  const auto decoded = decoder_.Decode(image.file, image.info, decode);
  if (!decoded.ok()) {
    ++stats_.failed;
    *result = {decoded.status(), JpegWay::kCpu};
    return absl::OkStatus();
  }
  const auto [width, height] = SizeOf(image.info, options_.orient);
  const size_t row_bytes = size_t{width} * options_.channels;
  const size_t bytes = image.pitch_bytes * (height - 1) + row_bytes;
  const auto memory = staging_.Open(bytes);
  if (!memory.ok()) return memory.status();
  uint8_t* to = *memory;
  for (uint32_t y = 0; y < height; ++y, to += image.pitch_bytes) {
    std::memcpy(to, decoded->view.Row(y), row_bytes);
    if (y + 1 < height) std::memset(to + row_bytes, 0, image.pitch_bytes - row_bytes);
  }
  absl::Status copied =
      Checked(device_, device_.copy_to_device(device_.self, image.out, *memory, bytes, stream),
              "copying a decoded image to the device");
  if (!copied.ok()) return copied;
  if (auto closed = staging_.Close(stream); !closed.ok()) return closed;
  ++stats_.cpu;
  *result = {absl::OkStatus(), JpegWay::kCpu};
  return absl::OkStatus();
}

}  // namespace shardpack
