#include "formats/webdataset/webdataset_layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "formats/core/sample.h"

namespace shardpack {
namespace {

// The extensions that webdataset's autodecode.py and torchvision's folder reader treat as images,
// plus our normalised spellings and the one for pixels without a header.
constexpr std::array<std::string_view, 18> kImageExtensions = {
    "jpg", "png", "webp", "gif", "bmp", "tif",  "tiff", "jpeg", "jpe",
    "ppm", "pgm", "pbm",  "pnm", "jp2", "avif", "heic", "jxl",  "raw"};

bool BeginsLikeAnImage(Bytes head) {
  const std::string_view text = AsText(head);
  return text.starts_with("\xff\xd8\xff") || text.starts_with("\x89PNG\r\n\x1a\n") ||
         text.starts_with("GIF87a") || text.starts_with("GIF89a") ||
         text.starts_with(std::string_view("II*\0", 4)) ||
         text.starts_with(std::string_view("MM\0*", 4)) ||
         // Many texts begin with these two letters; the reserved words of BITMAPFILEHEADER are
         // zero.
         (text.starts_with("BM") && text.size() >= 10 &&
          text.substr(6, 4) == std::string_view("\0\0\0\0", 4)) ||
         (text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "WEBP");
}

}  // namespace

// webdataset's expression is ^((?:.*/|)[^.]+)[.]([^/]*)$. Its [^.]+ also matches slashes: "d/.h"
// has the key "d/".
std::optional<MemberName> SplitMemberName(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t base = slash == path.npos ? 0 : slash + 1;
  const size_t dot = path.find('.', base);
  if (dot == path.npos) return std::nullopt;
  if (dot == base) {
    if (base == 0) return std::nullopt;
    const std::string_view folders = path.substr(0, slash);
    const size_t before = folders.rfind('/');
    const size_t last = before == folders.npos ? 0 : before + 1;
    if (folders.find('.', last) != folders.npos) return std::nullopt;
  }
  return MemberName{path.substr(0, dot), path.substr(dot + 1)};
}

bool IsMetaName(std::string_view path) {
  if (!path.starts_with("__")) return false;
  const std::string_view first = path.substr(0, path.find('/'));
  return first.size() >= 4 && first.ends_with("__");
}

bool IsHiddenName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return path.substr(slash == path.npos ? 0 : slash + 1).starts_with('.') || IsMetaName(path);
}

std::optional<int64_t> ParseLabel(std::string_view text) {
  static constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (text.size() > kMaxLabelBytes || begin == text.npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
  // std::from_chars does not accept a plus sign.
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

ImageRank RankAsImage(std::string_view extension, Bytes head) {
  if (std::find(kImageExtensions.begin(), kImageExtensions.end(), extension) !=
      kImageExtensions.end()) {
    return ImageRank::kExtension;
  }
  if (extension == kImageField) return ImageRank::kImage;
  if (extension == "img") return ImageRank::kImg;
  if (extension.find('.') != extension.npos || extension == kLabelExtension ||
      extension == kMetadataExtension) {
    return ImageRank::kNone;
  }
  if (BeginsLikeAnImage(head)) return ImageRank::kContent;
  return extension == "bin" ? ImageRank::kBinary : ImageRank::kNone;
}

}  // namespace shardpack
