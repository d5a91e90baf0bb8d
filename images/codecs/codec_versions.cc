#include "images/codecs/codec_versions.h"

#include <gif_lib.h>
#include <lcms2.h>
#include <png.h>
#include <tiffio.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include <cstdio>
// Requires <cstdio> before it.
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#define SHARDPACK_TEXT_OF(macro) SHARDPACK_TEXT(macro)
#define SHARDPACK_TEXT(word) #word

namespace shardpack {
namespace {

std::string WebpVersion(int version) {
  return absl::StrCat(version >> 16, ".", version >> 8 & 255, ".", version & 255);
}

}  // namespace

std::map<std::string, std::string> CodecVersions() {
  std::string tiff = ::TIFFGetVersion();  // "LIBTIFF, Version 4.5.0\nCopyright ..."
  tiff = tiff.substr(0, tiff.find('\n'));
  const int lcms = ::cmsGetEncodedCMMversion();  // 2140
  return {
      {"giflib", absl::StrCat(GIFLIB_MAJOR, ".", GIFLIB_MINOR, ".", GIFLIB_RELEASE)},
      {"lcms2", absl::StrCat(lcms / 1000, ".", lcms / 10 % 100)},
      {"libjpeg-turbo", SHARDPACK_TEXT_OF(LIBJPEG_TURBO_VERSION)},
      {"libpng", ::png_get_libpng_ver(nullptr)},
      {"libtiff", tiff.substr(tiff.rfind(' ') + 1)},
      {"libwebp", WebpVersion(::WebPGetEncoderVersion())},
  };
}

std::string CodecVersionsText() {
  return absl::StrJoin(CodecVersions(), ", ", [](std::string* out, const auto& library) {
    absl::StrAppend(out, library.first, " ", library.second);
  });
}

}  // namespace shardpack
