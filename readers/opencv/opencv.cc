#include "readers/opencv/opencv.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

int TypeOf(int depth, uint32_t channels) { return CV_MAKETYPE(depth, static_cast<int>(channels)); }

}  // namespace

const cv::Mat MatOf(const PixelView& view) {
  return cv::Mat(static_cast<int>(view.height), static_cast<int>(view.width),
                 TypeOf(view.sample_bytes == 2 ? CV_16U : CV_8U, view.channels),
                 const_cast<uint8_t*>(view.pixels), view.stride_bytes);
}

absl::StatusOr<cv::Mat> MatOf(const PixelBatch& pixels, size_t slot, size_t view) {
  if (pixels.layout != PixelLayout::kNhwc) {
    return absl::InvalidArgumentError(
        "OpenCV has the channels of a pixel together: decode to PixelLayout::kNhwc");
  }
  int depth = CV_8U;
  if (pixels.type == PixelType::kF32) depth = CV_32F;
  if (pixels.type == PixelType::kF16) depth = CV_16F;
  if (pixels.type == PixelType::kBf16)
    return absl::InvalidArgumentError("OpenCV has no bfloat16: decode to another type");
  const size_t slots = pixels.bytes.size() / pixels.sample_bytes / pixels.views;
  if (slot >= slots || view >= pixels.views) {
    return absl::OutOfRangeError(absl::StrCat("slot ", slot, " and view ", view, " of ", slots,
                                              " slots and ", pixels.views, " views"));
  }
  const std::byte* const at = pixels.bytes.data() + (view * slots + slot) * pixels.sample_bytes;
  return cv::Mat(static_cast<int>(pixels.height), static_cast<int>(pixels.width),
                 TypeOf(depth, pixels.channels), const_cast<std::byte*>(at));
}

absl::StatusOr<PixelView> ViewOf(const cv::Mat& mat) {
  if (mat.dims != 2 || (mat.depth() != CV_8U && mat.depth() != CV_16U) || mat.channels() > 4) {
    return absl::InvalidArgumentError(
        "pixels are a Mat of two dimensions, CV_8U or CV_16U, of 1 to 4 channels");
  }
  return PixelView{mat.data,
                   static_cast<uint32_t>(mat.cols),
                   static_cast<uint32_t>(mat.rows),
                   static_cast<uint32_t>(mat.channels()),
                   mat.step[0],
                   mat.depth() == CV_16U ? 2u : 1u};
}

}  // namespace shardpack
