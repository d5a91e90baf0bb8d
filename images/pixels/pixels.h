// Pixels in memory: a view, a box within it, and a reusable buffer.
//
//   PixelBuffer buffer;
//   if (!buffer.Reserve(width * height * 3)) return absl::ResourceExhaustedError("no memory");
//   const PixelView view{buffer.data(), width, height, 3, width * size_t{3}};
//
// Lifetime: a view borrows; a buffer owns, and Reserve discards its content.
// Errors: Reserve returns false when out of memory.
// Units: pixels, unless a name says bytes. Samples are 8 bits, or 16 in native byte order if
// `sample_bytes` says so. Channels are interleaved (gray, or red, green, blue; then alpha, if any),
// rows top to bottom.
#ifndef SHARDPACK_IMAGES_PIXELS_PIXELS_H_
#define SHARDPACK_IMAGES_PIXELS_PIXELS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "images/pixels/host_device.h"

namespace shardpack {

struct PixelView {
  const uint8_t* pixels = nullptr;
  uint32_t width = 0, height = 0;
  uint32_t channels = 3;
  size_t stride_bytes = 0;
  uint32_t sample_bytes = 1;

  const uint8_t* Row(uint32_t y) const { return pixels + y * stride_bytes; }
};

// In whole pixels.
struct PixelRegion {
  uint32_t left = 0, top = 0;
  uint32_t width = 0, height = 0;

  bool empty() const { return width == 0 || height == 0; }
  friend bool operator==(const PixelRegion&, const PixelRegion&) = default;
};

// Edges in fractional coordinates: pixel x covers x to x + 1.
struct PixelBox {
  double left = 0, top = 0, right = 0, bottom = 0;

  // The comparisons are written so that a box with NaN edges counts as outside.
  SHARDPACK_HOST_DEVICE bool IsInside(uint32_t width, uint32_t height) const {
    return left >= 0 && top >= 0 && left < right && top < bottom && right <= width &&
           bottom <= height;
  }
  friend bool operator==(const PixelBox&, const PixelBox&) = default;
};

class PixelBuffer {
 public:
  PixelBuffer() = default;
  PixelBuffer(PixelBuffer&& other) noexcept
      : data_(std::move(other.data_)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  PixelBuffer& operator=(PixelBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    return *this;
  }

  // Provides at least this many bytes, uninitialised. Frees the memory of a huge image when much
  // less is requested.
  [[nodiscard]] bool Reserve(size_t size_bytes) {
    if (size_bytes <= size_bytes_ && (size_bytes_ <= kKeptBytes || size_bytes > size_bytes_ / 4)) {
      return true;
    }
    data_.reset();
    data_.reset(new (std::nothrow) uint8_t[size_bytes]);
    size_bytes_ = data_ == nullptr ? 0 : size_bytes;
    return data_ != nullptr;
  }
  uint8_t* data() { return data_.get(); }

 private:
  static constexpr size_t kKeptBytes = size_t{16} << 20;

  std::unique_ptr<uint8_t[]> data_;
  size_t size_bytes_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_PIXELS_H_
