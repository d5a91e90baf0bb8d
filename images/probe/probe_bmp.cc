// BMP: Microsoft "Bitmap Storage" with BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV4HEADER and
// BITMAPV5HEADER (wingdi.h); OS/2 2.x headers as in "OS/2 Bitmap File Format" (IBM, 1992).
#include <algorithm>
#include <bit>
#include <optional>

#include "images/probe/bmp_headers.h"
#include "images/probe/byte_cursor.h"
#include "images/probe/probe_internal.h"

namespace shardpack {
namespace {

// biCompression.
enum : uint32_t {
  kRgb = 0,
  kRle8 = 1,
  kRle4 = 2,
  kBitFields = 3,  // in an OS/2 2.x header: Huffman 1D
  kJpeg = 4,       // in an OS/2 2.x header: RLE24
  kPng = 5,
  kAlphaBitFields = 6,
};

constexpr uint64_t kFileHeaderSize = 14;

}  // namespace

uint64_t BmpHeaders::mask_bytes() const {
  if (header_bytes != 40) return 0;
  return compression == kBitFields ? 12 : compression == kAlphaBitFields ? 16 : 0;
}

uint64_t BmpHeaders::palette_bytes() const {
  if (bits == 0 || bits > 8) return 0;
  const uint64_t entries = uint64_t{1} << bits;
  if (header_bytes == 12) return 3 * entries;
  return 4 * (colors_used == 0 ? entries : std::min<uint64_t>(colors_used, entries));
}

uint64_t BmpHeaders::end() const {
  return kFileHeaderSize + header_bytes + mask_bytes() + palette_bytes();
}

namespace probe_internal {
namespace {

using Endian = ByteCursor::Endian;

class BmpProbe {
 public:
  BmpProbe(Bytes file, const ProbeOptions& options) : file_(file), options_(options) {
    info_.format = ImageFormat::kBmp;
  }

  ProbeResult Run() {
    ByteCursor cursor(file_, Endian::kLittle, 10);
    data_offset_ = cursor.U32();
    header_size_ = cursor.U32();
    header_size_ == 12 ? ReadCoreHeader(cursor) : ReadInfoHeader(cursor);
    if (!cursor.ok()) return Result(ProbeVerdict::kTruncated, file_.size(), "cut in the header");
    if (const char* trouble = HeaderTrouble()) {
      return Result(ProbeVerdict::kNotAnImage, kFileHeaderSize, trouble);
    }
    info_.width = static_cast<uint32_t>(width_);
    info_.height = static_cast<uint32_t>(height_);
    SetColor();
    if (OverPixelLimit(info_.width, info_.height, options_)) {
      return Result(ProbeVerdict::kPixelLimit, 18, kPixelLimitDetail);
    }
    const uint64_t headers_end = Headers().end();
    if (headers_end > file_.size()) {
      return Result(ProbeVerdict::kTruncated, file_.size(), "cut in the palette");
    }
    data_offset_ = data_offset_ == 0 ? headers_end : data_offset_;
    return CheckPixels();
  }

 private:
  ProbeResult Result(ProbeVerdict verdict, uint64_t offset, const char* detail) const {
    return {verdict, info_, offset, detail};
  }

  // Width, height, planes, bits: 16 bits each.
  void ReadCoreHeader(ByteCursor& cursor) {
    width_ = cursor.U16();
    height_ = cursor.U16();
    planes_ = cursor.U16();
    bits_ = cursor.U16();
  }

  // An OS/2 2.x header may end after any field from 16 bytes on; missing fields are 0.
  void ReadInfoHeader(ByteCursor& cursor) {
    width_ = static_cast<int32_t>(cursor.U32());
    // A negative height means rows from top to bottom.
    const int64_t height = static_cast<int32_t>(cursor.U32());
    height_ = height < 0 ? -height : height;
    planes_ = cursor.U16();
    bits_ = cursor.U16();
    if (header_size_ >= 20) compression_ = cursor.U32();
    if (header_size_ >= 24) data_size_ = cursor.U32();
    if (header_size_ >= 36) {
      cursor.Skip(8);  // pixels per metre
      colors_used_ = cursor.U32();
    }
    if (header_size_ >= 40) cursor.Skip(4);  // important colours
    const uint64_t masks =
        IsWindowsV2OrLater() ? (header_size_ == 52 ? 3 : 4) : Headers().mask_bytes() / 4;
    for (uint64_t i = 0; i < masks; ++i) masks_[i] = cursor.U32();
    if (header_size_ == 124) {
      // BITMAPV5HEADER: bV5CSType at 56, bV5ProfileData at 112, bV5ProfileSize at 116.
      embedded_profile_ = ByteCursor(file_, Endian::kLittle, 70).U32() == 0x4D424544;  // 'MBED'
      ByteCursor profile(file_, Endian::kLittle, kFileHeaderSize + 112);
      profile_end_ = kFileHeaderSize + uint64_t{profile.U32()};
      profile_end_ += profile.U32();
    }
    if (cursor.ok()) cursor = ByteCursor(file_, Endian::kLittle, kFileHeaderSize + header_size_);
  }

  bool IsOs2() const { return header_size_ < 40 || header_size_ == 64; }
  bool IsWindowsV2OrLater() const { return header_size_ > 40 && header_size_ != 64; }

  BmpHeaders Headers() const {
    return {.header_bytes = header_size_,
            .bits = bits_,
            .compression = compression_,
            .colors_used = colors_used_};
  }

  const char* HeaderTrouble() const {
    if (width_ <= 0 || height_ == 0) return "no pixels";
    if (planes_ != 1) return "planes is not 1";
    switch (bits_) {
      case 0:
        return !IsOs2() && (compression_ == kJpeg || compression_ == kPng) ? nullptr
                                                                           : "bad bit count";
      case 1:
      case 2:
      case 4:
      case 8:
      case 16:
      case 24:
      case 32:
        break;
      default:
        return "bad bit count";
    }
    if (compression_ > kAlphaBitFields) return "unknown compression";
    if (compression_ == kRle8 && bits_ != 8) return "RLE8 with a bit count other than 8";
    if (compression_ == kRle4 && bits_ != 4) return "RLE4 with a bit count other than 4";
    if (!IsOs2() && (compression_ == kBitFields || compression_ == kAlphaBitFields) &&
        bits_ != 16 && bits_ != 32) {
      return "colour masks with a bit count other than 16 or 32";
    }
    return nullptr;
  }

  void SetColor() {
    info_.channels = 3;
    info_.bits_per_channel = 8;
    info_.color_space = bits_ != 0 && bits_ <= 8 ? ColorSpace::kPalette : ColorSpace::kRgb;
    if (bits_ == 16) info_.bits_per_channel = 5;  // without masks: 5 bits each
    if (IsOs2() || (compression_ != kBitFields && compression_ != kAlphaBitFields)) return;
    const int widest =
        std::max({std::popcount(masks_[0]), std::popcount(masks_[1]), std::popcount(masks_[2])});
    info_.bits_per_channel = static_cast<uint8_t>(widest);
    if (masks_[3] != 0) {
      info_.color_space = ColorSpace::kRgba;
      info_.channels = 4;
      info_.flags |= ImageInfo::kAlpha;
    }
  }

  ProbeResult CheckPixels() const {
    const bool raw = compression_ == kRgb ||
                     (!IsOs2() && (compression_ == kBitFields || compression_ == kAlphaBitFields));
    // Rows are padded to four bytes. No overflow: at most 2^31 * 32 bits, times 2^31 rows / 8.
    const uint64_t row_bytes = (static_cast<uint64_t>(width_) * bits_ + 31) / 32 * 4;
    const uint64_t height = static_cast<uint64_t>(height_);
    const uint64_t in_file = data_offset_ < file_.size() ? file_.size() - data_offset_ : 0;
    if (raw ? in_file / row_bytes < height : in_file < data_size_) {
      return Result(ProbeVerdict::kTruncated, file_.size(), "pixel data runs past the end");
    }
    if (embedded_profile_ && profile_end_ > file_.size()) {
      return Result(ProbeVerdict::kTruncated, file_.size(), "colour profile runs past the end");
    }
    if (options_.level == ProbeLevel::kStructure && data_size_ == 0 &&
        (compression_ == kRle8 || compression_ == kRle4) && !RleEnds()) {
      return Result(ProbeVerdict::kTruncated, file_.size(), "no end of bitmap in the RLE data");
    }
    return {ProbeVerdict::kOk, info_, 0, ""};
  }

  // "Bitmap Compression": pairs (count, colour). After a count of 0: 0 end of line, 1 end of
  // bitmap, 2 move by two bytes, n >= 3: n pixels follow, padded to 16 bits.
  bool RleEnds() const {
    ByteCursor cursor(file_, Endian::kLittle, data_offset_);
    while (cursor.ok()) {
      const uint8_t count = cursor.U8(), value = cursor.U8();
      if (!cursor.ok()) return false;
      if (count != 0 || value == 0) continue;
      if (value == 1) return true;
      const uint64_t bytes = compression_ == kRle8 ? value : (value + 1) / 2;
      cursor.Skip(value == 2 ? 2 : (bytes + 1) / 2 * 2);
    }
    return false;
  }

  Bytes file_;
  const ProbeOptions& options_;
  ImageInfo info_;
  uint64_t data_offset_ = 0, profile_end_ = 0;
  int64_t width_ = 0, height_ = 0;
  uint32_t header_size_ = 0, compression_ = 0, data_size_ = 0, colors_used_ = 0;
  uint32_t masks_[4] = {};
  uint16_t planes_ = 0, bits_ = 0;
  bool embedded_profile_ = false;
};

}  // namespace

ProbeResult ProbeBmp(Bytes file, const ProbeOptions& options) {
  return BmpProbe(file, options).Run();
}

}  // namespace probe_internal
}  // namespace shardpack
