#include "converters/listing/other_pictures.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// Sorted. Not those which often are no photographs but beside them, as .svg, .ico and .hdr.
constexpr std::array<std::string_view, 23> kExtensions = {
    "apng", "arw", "avif", "avifs", "cr2", "cr3", "dng", "exr", "heic", "heif", "hif", "j2k",
    "jp2",  "jpf", "jpx",  "jxl",   "jxr", "nef", "orf", "pgm", "ppm",  "raf",  "rw2"};
static_assert(std::is_sorted(kExtensions.begin(), kExtensions.end()));

}  // namespace

bool IsOtherPicture(std::string_view extension) {
  return std::binary_search(kExtensions.begin(), kExtensions.end(), extension);
}

void WarnOfOtherPictures(Listing& listing) {
  uint64_t files = 0;
  std::string kinds;
  for (const auto& [extension, count] : listing.ignored) {
    if (!IsOtherPicture(extension)) continue;
    files += count;
    absl::StrAppend(&kinds, kinds.empty() ? "" : ", ", count, " .", extension);
  }
  if (files == 0) return;
  listing.warnings.push_back(absl::StrCat(
      files, files == 1 ? " image is" : " images are", " left out, of a kind that is not taken (",
      kinds,
      "): convert them, to png as an example; --ext with the extensions that are meant "
      "says that they are not"));
}

}  // namespace shardpack
