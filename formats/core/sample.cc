#include "formats/core/sample.h"

#include "absl/strings/str_cat.h"

namespace shardpack {

std::string WhyNotRawImage(const SampleView& sample, const ImageInfo& wanted) {
  const ImageInfo& image = sample.image;
  if (image.format == ImageFormat::kRaw && image.width == wanted.width &&
      image.height == wanted.height && image.channels == wanted.channels &&
      sample.fields[0].bytes.size() == RawImageBytes(wanted)) {
    return "";
  }
  return absl::StrCat("its image is no ", wanted.width, " x ", wanted.height, " raw pixels of ",
                      wanted.channels, " channels");
}

}  // namespace shardpack
