#include "images/probe/probe.h"

#include <cstring>
#include <string_view>

#include "images/probe/byte_cursor.h"
#include "images/probe/probe_internal.h"

namespace shardpack {
namespace {

using probe_internal::Bytes;

bool HasAt(Bytes bytes, size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

// Many texts begin with "BM", so the size of the second header must be an existing one.
bool IsBmp(Bytes head) {
  if (!HasAt(head, 0, "BM")) return false;
  switch (ByteCursor(head, ByteCursor::Endian::kLittle, 14).U32()) {
    case 12:   // BITMAPCOREHEADER, OS/2 1.x
    case 16:   // OS/2 2.x, short
    case 40:   // BITMAPINFOHEADER
    case 52:   // with RGB masks
    case 56:   // with RGBA masks
    case 64:   // OS/2 2.x
    case 108:  // BITMAPV4HEADER
    case 124:  // BITMAPV5HEADER
      return true;
    default:
      return false;
  }
}

// For the kinds that people have beside those that are taken.
const char* WhyUnknown(Bytes file) {
  using std::string_view_literals::operator""sv;
  // ISO/IEC 23000-22 and 23008-12: the major brand of the file type box.
  if (HasAt(file, 4, "ftypavif") || HasAt(file, 4, "ftypavis"))
    return "AVIF is not taken: its signature is";
  for (const std::string_view brand : {"ftypheic", "ftypheix", "ftyphevc", "ftypmif1"}) {
    if (HasAt(file, 4, brand)) return "HEIC is not taken: its signature is";
  }
  // ISO/IEC 18181-2: a codestream, or a container.
  if (HasAt(file, 0, "\xFF\x0A") || HasAt(file, 0, "\0\0\0\x0CJXL \r\n\x87\n"sv))
    return "JPEG XL is not taken: its signature is";
  // Stored by Python's Writer, for one, where its fields= does not say {"mask": "png"}.
  if (HasAt(file, 0, "\x93NUMPY")) return "a NumPy array (.npy), not an image";
  return "no known image signature";
}

ProbeResult ProbeFormat(ImageFormat format, Bytes file, const ProbeOptions& options) {
  switch (format) {
    case ImageFormat::kJpeg:
      return probe_internal::ProbeJpeg(file, options);
    case ImageFormat::kPng:
      return probe_internal::ProbePng(file, options);
    case ImageFormat::kWebp:
      return probe_internal::ProbeWebp(file, options);
    case ImageFormat::kGif:
      return probe_internal::ProbeGif(file, options);
    case ImageFormat::kBmp:
      return probe_internal::ProbeBmp(file, options);
    case ImageFormat::kTiff:
      return probe_internal::ProbeTiff(file, options);
    case ImageFormat::kRaw:  // has no signature
    case ImageFormat::kUnknown:
      break;
  }
  return {ProbeVerdict::kNotAnImage, ImageInfo(), 0, WhyUnknown(file)};
}

}  // namespace

ImageFormat SniffImageFormat(std::span<const std::byte> head) {
  using std::string_view_literals::operator""sv;
  // SOI and the first byte of the next marker: ITU-T T.81 B.2.1.
  if (HasAt(head, 0, "\xFF\xD8\xFF")) return ImageFormat::kJpeg;
  // PNG specification, section 5.2.
  if (HasAt(head, 0, "\x89PNG\r\n\x1A\n")) return ImageFormat::kPng;
  // RFC 9649 section 2.4.
  if (HasAt(head, 0, "RIFF") && HasAt(head, 8, "WEBP")) return ImageFormat::kWebp;
  // GIF89a section 17.
  if (HasAt(head, 0, "GIF87a") || HasAt(head, 0, "GIF89a")) return ImageFormat::kGif;
  // TIFF 6.0 section 2; version 43 is BigTIFF.
  if (HasAt(head, 0, "II*\0"sv) || HasAt(head, 0, "MM\0*"sv) || HasAt(head, 0, "II+\0"sv) ||
      HasAt(head, 0, "MM\0+"sv)) {
    return ImageFormat::kTiff;
  }
  return IsBmp(head) ? ImageFormat::kBmp : ImageFormat::kUnknown;
}

ProbeResult ProbeImage(std::span<const std::byte> file, const ProbeOptions& options) {
  if (file.empty()) return {ProbeVerdict::kEmpty, ImageInfo(), 0, "no bytes"};
  ProbeResult result = ProbeFormat(SniffImageFormat(file), file, options);
  if (result.verdict == ProbeVerdict::kTruncated && result.info.width != 0 &&
      result.info.height != 0) {
    if (options.level == ProbeLevel::kHeader) return {ProbeVerdict::kOk, result.info, 0, ""};
    result.info.flags |= ImageInfo::kTruncated;
    if (options.allow_truncated) result.verdict = ProbeVerdict::kOk;
  }
  return result;
}

}  // namespace shardpack
