// JPEG: markers of ITU-T T.81 (09/92), annex B. Like libjpeg, skips bytes between segments that
// belong to nothing (its next_marker()), unknown APPn, and COM.
#include <algorithm>
#include <cstring>
#include <optional>

#include "images/probe/byte_cursor.h"
#include "images/probe/marker_scan.h"
#include "images/probe/probe_internal.h"

namespace shardpack::probe_internal {
namespace {

// Marker codes, T.81 table B.1.
enum : uint8_t {
  kTem = 0x01,
  kSof0 = 0xC0,
  kDht = 0xC4,
  kJpg = 0xC8,
  kDac = 0xCC,
  kSof15 = 0xCF,
  kSoi = 0xD8,
  kEoi = 0xD9,
  kSos = 0xDA,
  kDnl = 0xDC,
  kDhp = 0xDE,
  kApp1 = 0xE1,
  kApp14 = 0xEE,
};

// Frame headers; DHP has their syntax and gives the size of a hierarchical image (B.3.2).
bool IsFrameHeader(uint8_t code) {
  if (code == kDhp) return true;
  return code >= kSof0 && code <= kSof15 && code != kDht && code != kJpg && code != kDac;
}

class JpegWalk {
 public:
  JpegWalk(Bytes file, const ProbeOptions& options) : file_(file), options_(options) {
    info_.format = ImageFormat::kJpeg;
  }

  ProbeResult Run() {
    uint64_t offset = 2;  // after SOI
    for (;;) {
      const uint64_t from = offset;
      offset = FindJpegMarker(file_, offset);
      offset_ = offset;
      if (offset == file_.size()) return Result(ProbeVerdict::kTruncated, "no EOI marker");
      const uint8_t code = std::to_integer<uint8_t>(file_[offset + 1]);
      if (in_scan_) {
        if (offset == from) return Result(ProbeVerdict::kTruncated, "scan without data");
        in_scan_ = false;
        // B.2.5: a frame header with 0 lines needs DNL right after its first scan.
        if (info_.height == 0 && code != kDnl) {
          return Result(ProbeVerdict::kNotAnImage, "height 0 and no DNL marker");
        }
      }
      if (code == kEoi) return AtEnd();
      if (code == kSoi) return Malformed("second SOI before the EOI marker");
      if (code == kTem) {
        offset += 2;
        continue;
      }
      // 02..BF are reserved; decoders give up here (libjpeg: JERR_UNKNOWN_MARKER).
      if (code < kSof0) return Malformed("reserved marker");

      ByteCursor cursor(file_, ByteCursor::Endian::kBig, offset + 2);
      const uint16_t length = cursor.U16();  // B.1.1.4: counts itself
      if (!cursor.ok()) return Result(ProbeVerdict::kTruncated, "cut in a marker segment");
      if (length < 2) return Malformed("marker segment length below 2");
      const Bytes segment = cursor.Take(length - 2);
      if (!cursor.ok()) return Result(ProbeVerdict::kTruncated, "cut in a marker segment");
      offset = cursor.offset();
      if (const auto stop = ReadSegment(code, segment)) return *stop;
    }
  }

 private:
  ProbeResult Result(ProbeVerdict verdict, const char* detail) const {
    return {verdict, info_, offset_, detail};
  }

  // After a frame header, a decoder makes an image of what precedes the damage.
  ProbeResult Malformed(const char* detail) const {
    return Result(seen_frame_ ? ProbeVerdict::kTruncated : ProbeVerdict::kNotAnImage, detail);
  }

  ProbeResult AtEnd() const {
    if (!seen_frame_) return Result(ProbeVerdict::kNotAnImage, "no frame header");
    if (!seen_scan_) return Result(ProbeVerdict::kTruncated, "no scan before the EOI marker");
    return {ProbeVerdict::kOk, info_, 0, ""};
  }

  // nullopt to continue.
  std::optional<ProbeResult> ReadSegment(uint8_t code, Bytes segment) {
    if (code == kSos) return ReadScanHeader(segment);
    if (code == kDnl) return ReadLineCount(segment);
    if (IsFrameHeader(code)) return seen_frame_ ? std::nullopt : ReadFrameHeader(code, segment);
    if (seen_scan_) return std::nullopt;
    if (code == kApp1) ReadExif(segment);
    if (code == kApp14) ReadAdobe(segment);
    return std::nullopt;
  }

  // B.2.2: P, Y, X, Nf, then three bytes per component.
  std::optional<ProbeResult> ReadFrameHeader(uint8_t code, Bytes segment) {
    ByteCursor cursor(segment, ByteCursor::Endian::kBig);
    const uint8_t precision = cursor.U8();
    const uint16_t height = cursor.U16(), width = cursor.U16();
    const uint8_t components = cursor.U8();
    if (!cursor.ok() || cursor.remaining() != 3u * components) {
      return Malformed("bad frame header length");
    }
    if (width == 0 || components == 0) return Malformed("frame without samples");
    if (precision < 2 || precision > 16) return Malformed("bad sample precision");
    seen_frame_ = true;
    info_.width = width;
    info_.height = height;
    info_.bits_per_channel = precision;
    info_.channels = std::min<uint8_t>(components, 4);
    // Table B.1: SOF2, SOF6, SOF10 and SOF14 are progressive.
    if (code != kDhp && (code & 3) == 2) info_.flags |= ImageInfo::kProgressive;
    SetColorSpace();
    if (OverPixelLimit(width, height, options_)) {
      return Result(ProbeVerdict::kPixelLimit, kPixelLimitDetail);
    }
    return std::nullopt;
  }

  // B.2.3: Ns, two bytes per component, Ss, Se, Ah/Al.
  std::optional<ProbeResult> ReadScanHeader(Bytes segment) {
    if (!seen_frame_) return Malformed("scan before the frame header");
    const uint8_t components = segment.empty() ? 0 : std::to_integer<uint8_t>(segment[0]);
    if (components < 1 || components > 4 || segment.size() != 4u + 2u * components) {
      return Malformed("bad scan header");
    }
    seen_scan_ = true;
    in_scan_ = true;
    if (options_.level == ProbeLevel::kHeader && info_.height != 0) {
      return ProbeResult{ProbeVerdict::kOk, info_, 0, ""};
    }
    return std::nullopt;
  }

  // B.2.5.
  std::optional<ProbeResult> ReadLineCount(Bytes segment) {
    if (info_.height != 0 || !seen_scan_) return std::nullopt;
    info_.height = ByteCursor(segment, ByteCursor::Endian::kBig).U16();
    if (info_.height == 0) return Result(ProbeVerdict::kNotAnImage, "DNL of 0 lines");
    if (OverPixelLimit(info_.width, info_.height, options_)) {
      return Result(ProbeVerdict::kPixelLimit, kPixelLimitDetail);
    }
    if (options_.level == ProbeLevel::kHeader) {
      return ProbeResult{ProbeVerdict::kOk, info_, 0, ""};
    }
    return std::nullopt;
  }

  // Exif 2.32 section 4.7.2: APP1 with the identifier "Exif", 0 and one pad byte.
  void ReadExif(Bytes segment) {
    if (seen_exif_ || segment.size() < 6 || std::memcmp(segment.data(), "Exif\0", 5) != 0) return;
    seen_exif_ = true;
    info_.orientation = ExifOrientation(segment);
  }

  // Adobe technical note 5116, section 18: "Adobe", version, flags0, flags1 (16 bits each),
  // transform. May come before or after the frame header.
  void ReadAdobe(Bytes segment) {
    if (segment.size() < 12 || std::memcmp(segment.data(), "Adobe", 5) != 0) return;
    adobe_transform_ = std::to_integer<uint8_t>(segment[11]);
    if (seen_frame_) SetColorSpace();
  }

  void SetColorSpace() {
    switch (info_.channels) {
      case 1:
        info_.color_space = ColorSpace::kGray;
        break;
      case 3:
        info_.color_space = ColorSpace::kRgb;
        break;
      // Note 5116: transform 2 is YCCK, 0 is CMYK; without the marker, libjpeg assumes CMYK.
      case 4:
        info_.color_space = adobe_transform_ == 2 ? ColorSpace::kYcck : ColorSpace::kCmyk;
        break;
      default:
        info_.color_space = ColorSpace::kUnknown;
        break;
    }
  }

  Bytes file_;
  const ProbeOptions& options_;
  ImageInfo info_;
  uint64_t offset_ = 0;  // of the marker being read
  bool seen_frame_ = false, seen_scan_ = false, in_scan_ = false, seen_exif_ = false;
  uint8_t adobe_transform_ = 0;
};

}  // namespace

ProbeResult ProbeJpeg(Bytes file, const ProbeOptions& options) {
  return JpegWalk(file, options).Run();
}

}  // namespace shardpack::probe_internal
