// PNG: W3C "Portable Network Graphics (PNG) Specification (Third Edition)", which includes APNG;
// also RFC 2083 where they agree. Section numbers refer to the former.
#include <isa-l/crc.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#include <optional>

#include "images/probe/byte_cursor.h"
#include "images/probe/probe_internal.h"

namespace shardpack::probe_internal {
namespace {

constexpr uint32_t ChunkType(const char (&name)[5]) {
  return uint32_t{static_cast<uint8_t>(name[0])} << 24 |
         uint32_t{static_cast<uint8_t>(name[1])} << 16 |
         uint32_t{static_cast<uint8_t>(name[2])} << 8 | static_cast<uint8_t>(name[3]);
}

// Table 8 (RFC 2083 section 4.1.1): the bit depths allowed for each colour type.
bool ValidDepth(uint8_t color_type, uint8_t depth) {
  switch (color_type) {
    case 0:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
      return depth == 8 || depth == 16;
    default:
      return false;
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx"))) void ClearUpperHalves() { _mm256_zeroupper(); }
#endif

uint32_t Crc(Bytes bytes) {
  const uint32_t crc =
      crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
#if defined(__x86_64__) && defined(__GNUC__)
  // ISA-L 2.30 returns from its AVX-512 code (256 bytes and more) with the upper halves of the
  // vector registers in use, which makes all SSE code of this thread three times slower (measured).
  if (__builtin_cpu_supports("avx")) ClearUpperHalves();
#endif
  return crc;
}

class PngWalk {
 public:
  PngWalk(Bytes file, const ProbeOptions& options) : file_(file), options_(options) {
    info_.format = ImageFormat::kPng;
  }

  ProbeResult Run() {
    // Section 5.3: length, type, data, CRC over type and data.
    ByteCursor cursor(file_, ByteCursor::Endian::kBig, 8);
    for (;;) {
      offset_ = cursor.offset();
      const uint32_t length = cursor.U32();
      const Bytes checked = cursor.Take(uint64_t{length} + 4);
      const uint32_t crc = cursor.U32();
      if (!cursor.ok()) return Result(ProbeVerdict::kTruncated, CutDetail());
      if (options_.level == ProbeLevel::kStructure && Crc(checked) != crc) {
        return Result(ProbeVerdict::kBadCrc, "chunk does not match its CRC");
      }
      const uint32_t type = ByteCursor(checked, ByteCursor::Endian::kBig).U32();
      if (const auto stop = ReadChunk(type, checked.subspan(4))) return *stop;
    }
  }

 private:
  const char* CutDetail() const {
    return offset_ == file_.size() ? "no IEND chunk" : "cut in a chunk";
  }

  ProbeResult Result(ProbeVerdict verdict, const char* detail) const {
    return {verdict, info_, offset_, detail};
  }

  // nullopt to continue.
  std::optional<ProbeResult> ReadChunk(uint32_t type, Bytes data) {
    if (info_.width == 0) {  // section 5.6: IHDR comes first
      if (type != ChunkType("IHDR")) return Result(ProbeVerdict::kNotAnImage, "no IHDR chunk");
      return ReadHeader(data);
    }
    switch (type) {
      case ChunkType("PLTE"):
        seen_palette_ = true;
        break;
      case ChunkType("tRNS"):
        ReadTransparency();
        break;
      case ChunkType("acTL"):
        ReadAnimation(data);
        break;
      case ChunkType("eXIf"):
        info_.orientation = ExifOrientation(data);
        break;
      case ChunkType("IDAT"):
        if (info_.color_space == ColorSpace::kPalette && !seen_palette_) {
          return Result(ProbeVerdict::kNotAnImage, "no PLTE chunk before IDAT");
        }
        seen_data_ = true;
        break;
      case ChunkType("IEND"):
        if (!seen_data_) return Result(ProbeVerdict::kTruncated, "no IDAT chunk");
        return ProbeResult{ProbeVerdict::kOk, info_, 0, ""};
      default:
        break;
    }
    return std::nullopt;
  }

  // Section 11.2.1: width, height, bit depth, colour type, compression, filter, interlace.
  std::optional<ProbeResult> ReadHeader(Bytes data) {
    ByteCursor cursor(data, ByteCursor::Endian::kBig);
    const uint32_t width = cursor.U32(), height = cursor.U32();
    const uint8_t depth = cursor.U8(), color_type = cursor.U8();
    const uint8_t compression = cursor.U8(), filter = cursor.U8(), interlace = cursor.U8();
    // Section 7.1: four-byte integers are limited to 2^31 - 1.
    if (!cursor.ok() || cursor.remaining() != 0 || width - 1 > 0x7FFFFFFEu ||
        height - 1 > 0x7FFFFFFEu || !ValidDepth(color_type, depth) || compression != 0 ||
        filter != 0 || interlace > 1) {
      return Result(ProbeVerdict::kNotAnImage, "bad IHDR chunk");
    }
    info_.width = width;
    info_.height = height;
    info_.bits_per_channel = depth;
    if (interlace == 1) info_.flags |= ImageInfo::kProgressive;
    switch (color_type) {
      case 0:
        SetColor(ColorSpace::kGray, 1);
        break;
      case 2:
        SetColor(ColorSpace::kRgb, 3);
        break;
      case 3:
        SetColor(ColorSpace::kPalette, 3);
        info_.bits_per_channel = 8;  // section 11.2.2: palette entries are three bytes
        break;
      case 4:
        SetColor(ColorSpace::kGrayAlpha, 2);
        info_.flags |= ImageInfo::kAlpha;
        break;
      default:
        SetColor(ColorSpace::kRgba, 4);
        info_.flags |= ImageInfo::kAlpha;
        break;
    }
    if (OverPixelLimit(width, height, options_)) {
      return Result(ProbeVerdict::kPixelLimit, kPixelLimitDetail);
    }
    return std::nullopt;
  }

  void SetColor(ColorSpace color_space, uint8_t channels) {
    info_.color_space = color_space;
    info_.channels = channels;
  }

  // Section 11.3.1.1: not allowed together with an alpha channel, and then ignored; before IDAT
  // only.
  void ReadTransparency() {
    if (info_.alpha() || seen_data_) return;
    info_.flags |= ImageInfo::kAlpha;
    ++info_.channels;
  }

  // Section 11.3.6.1: num_frames, num_plays; before IDAT only.
  void ReadAnimation(Bytes data) {
    const uint32_t frames = ByteCursor(data, ByteCursor::Endian::kBig).U32();
    if (!seen_data_ && frames > 1) info_.flags |= ImageInfo::kAnimated;
  }

  Bytes file_;
  const ProbeOptions& options_;
  ImageInfo info_;
  uint64_t offset_ = 0;  // of the chunk being read
  bool seen_palette_ = false, seen_data_ = false;
};

}  // namespace

ProbeResult ProbePng(Bytes file, const ProbeOptions& options) {
  return PngWalk(file, options).Run();
}

}  // namespace shardpack::probe_internal
