// PixelOutput: writes rows of 8-bit pixels into the caller's tensor, as bytes or normalised
// numbers.
//
//   const PixelOutput output({.type = PixelType::kF32, .layout = PixelLayout::kNchw,
//                             .mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}},
//                             3);
//   output.PutRow(row, y, width, height, out);
//
// Numbers are (x / 255 - mean) / std, computed in float as torchvision's to_tensor and normalize do
// (images/pixels/pixel_numbers.h), then rounded to the nearest for kF16 and kBf16.
//
// Thread-safety: const calls from any thread.
// Errors: none; there must be 1 or 3 channels, and std must not be zero.
// Units: pixels; out is one image of Bytes(), at any alignment.
#ifndef SHARDPACK_IMAGES_PIXELS_PIXEL_OUTPUT_H_
#define SHARDPACK_IMAGES_PIXELS_PIXEL_OUTPUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "images/pixels/pixel_numbers.h"

namespace shardpack {

enum class PixelType : uint8_t { kU8, kF32, kF16, kBf16 };
enum class PixelLayout : uint8_t { kNhwc, kNchw };

struct OutputFormat {
  PixelType type = PixelType::kU8;
  PixelLayout layout = PixelLayout::kNhwc;
  // Per channel; for numbers only.
  std::array<float, 3> mean = {0, 0, 0}, std = {1, 1, 1};
};

// The size of one sample.
size_t BytesOf(PixelType type);

class PixelOutput {
 public:
  PixelOutput(const OutputFormat& format, uint32_t channels);

  const OutputFormat& format() const { return format_; }
  uint32_t channels() const { return channels_; }
  size_t Bytes(uint32_t width, uint32_t height) const;
  // Whether rows of pixels are written unchanged.
  bool plain() const;
  void PutRow(const uint8_t* row, uint32_t y, uint32_t width, uint32_t height, void* out) const;

 private:
  OutputFormat format_;
  uint32_t channels_;
  std::vector<float> floats_;     // 256 per channel
  std::vector<uint16_t> halves_;  // 256 per channel, for kF16 and kBf16
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_PIXEL_OUTPUT_H_
