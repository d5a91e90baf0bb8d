#include "converters/listing/common_shape.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "images/pixels/orientation.h"

namespace shardpack {
namespace {

std::pair<uint32_t, uint32_t> UprightSize(const ImageInfo& image) {
  const bool turned = OrientationOf(image.orientation).transpose;
  return turned ? std::pair(image.height, image.width) : std::pair(image.width, image.height);
}

std::string Describe(const Listing& listing, uint64_t row) {
  const auto [width, height] = UprightSize(listing.images[row]);
  return absl::StrCat(EscapeForTerminal(listing.Path(row)), " has ", width, " x ", height);
}

ColorChange ColorOf(const ImageInfo& image) {
  return image.color_space == ColorSpace::kGray  ? ColorChange::kGray
         : image.color_space == ColorSpace::kRgb ? ColorChange::kRgb
                                                 : ColorChange::kKeep;
}

}  // namespace

absl::Status UseCommonShape(const Listing& listing, TransformOptions* pixels) {
  std::optional<uint64_t> first;
  ColorChange color = ColorChange::kKeep;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    const ImageInfo& image = listing.images[row];
    if (image.width == 0) continue;  // left out
    if (!first) {
      first = row;
      color = ColorOf(image);
    }
    if (color != ColorOf(image)) color = ColorChange::kKeep;
    if (UprightSize(image) == UprightSize(listing.images[*first])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a layout of pixels of one shape needs images of one size, but ",
                     Describe(listing, *first), " and ", Describe(listing, row),
                     "; give --resize exact, crop or pad with --size, beside --encode raw and "
                     "--color rgb or gray"));
  }
  if (!first) return absl::OkStatus();
  std::tie(pixels->width, pixels->height) = UprightSize(listing.images[*first]);
  pixels->resize = ResizeMode::kExact;
  if (pixels->color == ColorChange::kKeep) pixels->color = color;
  return absl::OkStatus();
}

}  // namespace shardpack
