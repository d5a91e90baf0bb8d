// WebP: RFC 9649 (container in section 2, VP8L header in section 3.4), VP8 header in RFC 6386.
#include <algorithm>
#include <optional>

#include "images/probe/byte_cursor.h"
#include "images/probe/probe_internal.h"

namespace shardpack::probe_internal {
namespace {

using Endian = ByteCursor::Endian;

constexpr uint32_t FourCc(const char (&name)[5]) {
  return uint32_t{static_cast<uint8_t>(name[0])} | uint32_t{static_cast<uint8_t>(name[1])} << 8 |
         uint32_t{static_cast<uint8_t>(name[2])} << 16 |
         uint32_t{static_cast<uint8_t>(name[3])} << 24;
}

class WebpWalk {
 public:
  WebpWalk(Bytes file, const ProbeOptions& options) : file_(file), options_(options) {
    info_.format = ImageFormat::kWebp;
    info_.color_space = ColorSpace::kRgb;
    info_.channels = 3;
    info_.bits_per_channel = 8;
  }

  ProbeResult Run() {
    // RFC 9649 section 2.4: "RIFF", size of what follows it, "WEBP", chunks.
    const uint64_t riff_end = 8 + uint64_t{ByteCursor(file_, Endian::kLittle, 4).U32()};
    if (riff_end < 20) return Result(ProbeVerdict::kNotAnImage, 4, "RIFF size below one chunk");
    const uint64_t end = std::min<uint64_t>(riff_end, file_.size());
    uint64_t offset = 12;
    while (end - offset >= 8) {
      // Section 2.3: name, size, payload, and a pad byte that makes the payload's size even.
      ByteCursor cursor(file_, Endian::kLittle, offset);
      const uint32_t name = cursor.U32(), size = cursor.U32();
      const uint64_t start = cursor.offset();
      const uint64_t in_file = std::min<uint64_t>(size, end - start);
      if (const auto stop = ReadChunk(name, file_.subspan(start, in_file), offset)) return *stop;
      if (in_file < size) {
        return Result(ProbeVerdict::kTruncated, offset, "chunk runs past the end of the file");
      }
      // Some writers omit the last pad byte; libwebp accepts that too.
      offset = std::min<uint64_t>(start + size + (size & 1), end);
    }
    if (riff_end > file_.size()) {
      return Result(ProbeVerdict::kTruncated, file_.size(), "RIFF size is more than the file");
    }
    if (!seen_data_) return Result(ProbeVerdict::kTruncated, end, "no image data chunk");
    return {ProbeVerdict::kOk, info_, 0, ""};
  }

 private:
  ProbeResult Result(ProbeVerdict verdict, uint64_t offset, const char* detail) const {
    return {verdict, info_, offset, detail};
  }

  // nullopt to continue. `data` may be truncated.
  std::optional<ProbeResult> ReadChunk(uint32_t name, Bytes data, uint64_t offset) {
    const bool first = offset == 12;
    if (first && name != FourCc("VP8 ") && name != FourCc("VP8L") && name != FourCc("VP8X")) {
      return Result(ProbeVerdict::kNotAnImage, offset, "first chunk is not VP8, VP8L or VP8X");
    }
    switch (name) {
      case FourCc("VP8X"):
        return first ? ReadExtended(data, offset) : std::nullopt;
      case FourCc("VP8 "):
        return ReadLossy(data, offset);
      case FourCc("VP8L"):
        return ReadLossless(data, offset);
      case FourCc("ALPH"):
        SetAlpha();
        break;
      case FourCc("ANMF"):
        seen_data_ = true;
        if (++frames_ == 2) info_.flags |= ImageInfo::kAnimated;
        break;
      case FourCc("EXIF"):
        info_.orientation = ExifOrientation(data);
        break;
      default:
        break;
    }
    return std::nullopt;
  }

  // Section 2.7: flags, 24 reserved bits, canvas width - 1, canvas height - 1 (24 bits each).
  std::optional<ProbeResult> ReadExtended(Bytes data, uint64_t offset) {
    ByteCursor cursor(data, Endian::kLittle);
    const uint8_t flags = cursor.U8();
    cursor.Skip(3);
    const uint32_t width = cursor.U24() + 1, height = cursor.U24() + 1;
    if (!cursor.ok()) return Result(ProbeVerdict::kTruncated, offset, "VP8X chunk too short");
    if ((flags & 0x10) != 0) SetAlpha();
    return SetSize(width, height, offset);
  }

  // RFC 6386 section 9.1: a 3-byte tag (bit 0 clear: key frame; bits 5..23: size of the first
  // partition), start code 9D 01 2A, 14 bits of width and of height with 2 bits of scale each.
  std::optional<ProbeResult> ReadLossy(Bytes data, uint64_t offset) {
    ByteCursor cursor(data, Endian::kLittle);
    const uint32_t tag = cursor.U24(), start_code = cursor.U24();
    const uint16_t width = cursor.U16() & 0x3FFF, height = cursor.U16() & 0x3FFF;
    if (!cursor.ok()) return Result(ProbeVerdict::kTruncated, offset, "VP8 chunk too short");
    if ((tag & 1) != 0 || start_code != 0x2A019D || width == 0 || height == 0) {
      return Result(ProbeVerdict::kNotAnImage, offset, "bad VP8 frame header");
    }
    if (const auto stop = SetSize(width, height, offset)) return stop;
    if (tag >> 5 > cursor.remaining()) {
      return Result(ProbeVerdict::kTruncated, offset, "VP8 partition runs past its chunk");
    }
    seen_data_ = true;
    return std::nullopt;
  }

  // RFC 9649 section 3.4: 2F, width - 1 and height - 1 (14 bits each), alpha bit, version 0.
  std::optional<ProbeResult> ReadLossless(Bytes data, uint64_t offset) {
    ByteCursor cursor(data, Endian::kLittle);
    const uint8_t signature = cursor.U8();
    const uint32_t bits = cursor.U32();
    if (!cursor.ok()) return Result(ProbeVerdict::kTruncated, offset, "VP8L chunk too short");
    if (signature != 0x2F || bits >> 29 != 0) {
      return Result(ProbeVerdict::kNotAnImage, offset, "bad VP8L header");
    }
    if ((bits >> 28 & 1) != 0) SetAlpha();
    if (const auto stop = SetSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, offset)) {
      return stop;
    }
    seen_data_ = true;
    return std::nullopt;
  }

  // The first size wins (the canvas, if there is one); the limit applies to each.
  std::optional<ProbeResult> SetSize(uint32_t width, uint32_t height, uint64_t offset) {
    if (info_.width == 0) {
      info_.width = width;
      info_.height = height;
    }
    if (!OverPixelLimit(width, height, options_)) return std::nullopt;
    return Result(ProbeVerdict::kPixelLimit, offset, kPixelLimitDetail);
  }

  void SetAlpha() {
    info_.flags |= ImageInfo::kAlpha;
    info_.color_space = ColorSpace::kRgba;
    info_.channels = 4;
  }

  Bytes file_;
  const ProbeOptions& options_;
  ImageInfo info_;
  uint64_t frames_ = 0;
  bool seen_data_ = false;
};

}  // namespace

ProbeResult ProbeWebp(Bytes file, const ProbeOptions& options) {
  return WebpWalk(file, options).Run();
}

}  // namespace shardpack::probe_internal
