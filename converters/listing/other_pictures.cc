#include "converters/listing/other_pictures.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// Sorted. Not those that often lie next to photographs without being any, such as .svg, .ico and
// .hdr.
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
      files, files == 1 ? " image is" : " images are", " left out, since pack does not read ",
      files == 1 ? "its" : "their", " format (", kinds, "): convert ", files == 1 ? "it" : "them",
      ", for example to png, or name the extensions that you do want with --ext"));
}

}  // namespace shardpack
