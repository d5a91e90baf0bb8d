// GIF: CompuServe "Graphics Interchange Format, Version 89a" (1990); section numbers refer to it.
#include <optional>

#include "images/probe/byte_cursor.h"
#include "images/probe/probe_internal.h"

namespace shardpack::probe_internal {
namespace {

class GifWalk {
 public:
  GifWalk(Bytes file, const ProbeOptions& options)
      : options_(options), cursor_(file, ByteCursor::Endian::kLittle, 6) {
    info_.format = ImageFormat::kGif;
    info_.color_space = ColorSpace::kPalette;
    info_.channels = 3;
    info_.bits_per_channel = 8;  // sections 19 and 21: colour tables have three bytes per entry
  }

  ProbeResult Run() {
    // Section 18: logical screen width, height, packed fields, background, aspect ratio.
    info_.width = cursor_.U16();
    info_.height = cursor_.U16();
    const uint8_t packed = cursor_.U8();
    cursor_.Skip(2);
    if (OverPixelLimit(info_.width, info_.height, options_)) {
      return Result(ProbeVerdict::kPixelLimit, kPixelLimitDetail);
    }
    if (!cursor_.ok()) return Result(ProbeVerdict::kTruncated, "cut in the screen descriptor");
    SkipColorTable(packed);
    for (;;) {
      block_offset_ = cursor_.offset();
      const uint8_t introducer = cursor_.U8();
      if (!cursor_.ok()) return Result(ProbeVerdict::kTruncated, "no trailer");
      switch (introducer) {
        case 0x00:
          break;  // stray terminators are common between blocks; decoders skip them
        case 0x21:
          ReadExtension();
          break;
        case 0x2C:
          if (const auto stop = ReadImage()) return *stop;
          break;
        case 0x3B:  // section 27
          if (frames_ == 0) return Result(ProbeVerdict::kTruncated, "no image before the trailer");
          return {ProbeVerdict::kOk, info_, 0, ""};
        default:
          return Result(ProbeVerdict::kTruncated, "unknown block instead of the trailer");
      }
      if (!cursor_.ok()) return Result(ProbeVerdict::kTruncated, "cut in a block");
    }
  }

 private:
  ProbeResult Result(ProbeVerdict verdict, const char* detail) const {
    return {verdict, info_, block_offset_, detail};
  }

  // Bit 7: there is a table; bits 0..2: it has 2^(n + 1) entries.
  void SkipColorTable(uint8_t packed) {
    if ((packed & 0x80) != 0) cursor_.Skip(uint64_t{3} << ((packed & 7) + 1));
  }

  // Section 15: sub-blocks of 1..255 bytes, ended by an empty one.
  void SkipSubBlocks() {
    for (uint8_t size = cursor_.U8(); size != 0; size = cursor_.U8()) cursor_.Skip(size);
  }

  void ReadExtension() {
    if (cursor_.U8() == 0xF9) {  // section 23, graphic control: size 4, packed; bit 0 transparency
      ByteCursor control = cursor_;
      if (control.U8() == 4 && (control.U8() & 1) != 0 && control.ok()) {
        info_.flags |= ImageInfo::kAlpha;
        info_.channels = 4;
      }
    }
    SkipSubBlocks();
  }

  // Section 20: left, top, width, height, packed; then colour table, code size, data.
  std::optional<ProbeResult> ReadImage() {
    cursor_.Skip(4);
    const uint16_t width = cursor_.U16(), height = cursor_.U16();
    const uint8_t packed = cursor_.U8();
    if (!cursor_.ok()) return std::nullopt;  // the caller checks
    if (OverPixelLimit(width, height, options_)) {
      return Result(ProbeVerdict::kPixelLimit, kPixelLimitDetail);
    }
    if (++frames_ == 2) info_.flags |= ImageInfo::kAnimated;
    if (frames_ == 1) {
      if ((packed & 0x40) != 0) info_.flags |= ImageInfo::kProgressive;
      // Some encoders write a screen of size 0; decoders then use the first image's size.
      if (info_.width == 0 || info_.height == 0) {
        info_.width = width;
        info_.height = height;
      }
      if (info_.width == 0 || info_.height == 0) {
        return Result(ProbeVerdict::kNotAnImage, "image without pixels");
      }
    }
    SkipColorTable(packed);
    cursor_.Skip(1);
    SkipSubBlocks();
    return std::nullopt;
  }

  const ProbeOptions& options_;
  ByteCursor cursor_;
  ImageInfo info_;
  uint64_t block_offset_ = 6;
  uint64_t frames_ = 0;
};

}  // namespace

ProbeResult ProbeGif(Bytes file, const ProbeOptions& options) {
  return GifWalk(file, options).Run();
}

}  // namespace shardpack::probe_internal
