#include "images/augment/shared_crop.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shardpack {

absl::StatusOr<Crop> SharedCrop(const Crop& crop, uint32_t width, uint32_t height,
                                uint32_t other_width, uint32_t other_height) {
  if (width == other_width && height == other_height) return crop;
  const double w = width, h = height, other_w = other_width, other_h = other_height;
  // One of the two was made of the other, by sides that were rounded.
  const bool same_ratio =
      std::abs(other_w - w * other_h / h) < 1 || std::abs(other_h - h * other_w / w) < 1 ||
      std::abs(w - other_w * h / other_h) < 1 || std::abs(h - other_h * w / other_w) < 1;
  if (!same_ratio) {
    return absl::InvalidArgumentError(absl::StrCat("it is ", other_width, " x ", other_height,
                                                   " pixels, which is another shape than that of "
                                                   "its image, ",
                                                   width, " x ", height));
  }
  Crop shared = crop;
  const double x = other_w / w, y = other_h / h;
  shared.box = {crop.box.left * x, crop.box.top * y, std::min(crop.box.right * x, other_w),
                std::min(crop.box.bottom * y, other_h)};
  return shared;
}

}  // namespace shardpack
