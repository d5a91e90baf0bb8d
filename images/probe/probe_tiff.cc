// TIFF: Adobe "TIFF Revision 6.0" (1992); section numbers refer to it. BigTIFF as libtiff defines
// it (Aware Systems, "The BigTIFF File Format": version 43, 64-bit offsets and counts).
#include <algorithm>
#include <optional>

#include "images/probe/byte_cursor.h"
#include "images/probe/probe_internal.h"

namespace shardpack::probe_internal {
namespace {

// Section 8 and the sections named.
enum : uint16_t {
  kImageWidth = 256,
  kImageLength = 257,
  kBitsPerSample = 258,
  kPhotometric = 262,
  kStripOffsets = 273,
  kOrientation = 274,
  kSamplesPerPixel = 277,
  kStripByteCounts = 279,
  kTileOffsets = 324,     // section 15
  kTileByteCounts = 325,  // section 15
  kExtraSamples = 338,    // section 18
  kJpegOffset = 513,      // section 22, old-style JPEG
};

// Section 2 "Types"; 16..18 are BigTIFF's. 0: an unknown type.
uint64_t TypeSize(uint16_t type) {
  constexpr uint8_t kSizes[19] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < 19 ? kSizes[type] : 0;
}

// The values of one entry: `count` of `type`, at `offset`, all inside the file.
struct Values {
  uint16_t type = 0;
  uint64_t count = 0, offset = 0;
};

// The content of one image file directory.
struct Directory {
  uint64_t width = 0, height = 0, next = 0;
  uint64_t bits = 1, samples = 1, photometric = 0xFFFF, orientation = 1;  // section 8's defaults
  Values extra_samples, data_offsets, data_sizes;
  uint64_t cut_entry = 0;  // position of an entry whose values run past the end; 0: none
  bool has_jpeg_offset = false;
};

class TiffWalk {
 public:
  TiffWalk(Bytes file, const ProbeOptions& options)
      : file_(file),
        options_(options),
        endian_(file[0] == std::byte{'I'} ? ByteCursor::Endian::kLittle : ByteCursor::Endian::kBig),
        // The directories and tables of a valid file do not overlap, so reading them stays within
        // this budget, which stops crafted files with many directories that share one large table.
        budget_(4 * uint64_t{file.size()} + 4096) {
    info_.format = ImageFormat::kTiff;
  }

  ProbeResult Run() {
    // Section 2 "Image File Header": order, 42, offset. BigTIFF: order, 43, 8, 0, 64-bit offset.
    ByteCursor header = At(2);
    big_ = header.U16() == 43;
    if (big_ && (header.U16() != 8 || header.U16() != 0) && header.ok()) {
      return Result(ProbeVerdict::kNotAnImage, 4, "BigTIFF offsets are not 8 bytes");
    }
    uint64_t offset = big_ ? header.U64() : header.U32();
    if (!header.ok()) return Result(ProbeVerdict::kTruncated, 0, "cut in the header");
    if (offset == 0) return Result(ProbeVerdict::kNotAnImage, 4, "no image file directory");

    // Brent's algorithm: the chain is a loop if it returns to a mark that moves at directory 1, 2,
    // 4, 8, ... A loop ends the chain, as in libtiff.
    uint64_t mark = offset, page = 0, move_mark_at = 1;
    for (;;) {
      Directory directory;
      if (const auto stop = ReadDirectory(offset, &directory)) return *stop;
      if (const auto stop = CheckDirectory(offset, directory, page == 0)) return *stop;
      if (page == 0) {
        if (directory.next != 0 && directory.next != offset) info_.flags |= ImageInfo::kAnimated;
        if (options_.level == ProbeLevel::kHeader) break;
      }
      if (const auto stop = CheckData(offset, directory, page == 0)) return *stop;
      if (directory.next == 0 || directory.next == mark) break;
      offset = directory.next;
      if (++page == move_mark_at) {
        mark = offset;
        move_mark_at *= 2;
      }
    }
    return {ProbeVerdict::kOk, info_, 0, ""};
  }

 private:
  ByteCursor At(uint64_t offset) const { return ByteCursor(file_, endian_, offset); }

  ProbeResult Result(ProbeVerdict verdict, uint64_t offset, const char* detail) const {
    return {verdict, info_, std::min<uint64_t>(offset, file_.size()), detail};
  }

  bool Spend(uint64_t bytes) {
    if (bytes > budget_) return false;
    budget_ -= bytes;
    return true;
  }

  uint64_t ValueAt(const Values& values, uint64_t index) const {
    if (index >= values.count) return 0;
    ByteCursor cursor = At(values.offset + index * TypeSize(values.type));
    switch (values.type) {
      case 1:
        return cursor.U8();
      case 3:
        return cursor.U16();
      case 4:
      case 13:
        return cursor.U32();
      case 16:
      case 18:
        return cursor.U64();
      default:
        return 0;
    }
  }

  // Section 2 "Image File Directory": count, entries of tag, type, count and value or offset, next.
  std::optional<ProbeResult> ReadDirectory(uint64_t offset, Directory* directory) {
    ByteCursor cursor = At(offset);
    const uint64_t entries = big_ ? cursor.U64() : cursor.U16();
    const uint64_t entry_size = big_ ? 20 : 12, inline_size = big_ ? 8 : 4;
    if (!cursor.ok() || entries > cursor.remaining() / entry_size) {
      return Result(ProbeVerdict::kTruncated, offset, "directory runs past the end of the file");
    }
    if (!Spend(entries * entry_size + inline_size)) return Overlap(offset);
    for (uint64_t i = 0; i < entries; ++i) {
      const uint64_t entry_offset = cursor.offset();
      const uint16_t tag = cursor.U16();
      Values values{cursor.U16(), big_ ? cursor.U64() : cursor.U32(), cursor.offset()};
      const uint64_t value = big_ ? cursor.U64() : cursor.U32();
      const uint64_t type_size = TypeSize(values.type);
      if (type_size == 0) continue;
      if (values.count > inline_size / type_size) {
        values.offset = value;
        if (value > file_.size() || values.count > (file_.size() - value) / type_size) {
          directory->cut_entry = entry_offset;
          continue;
        }
      }
      Store(tag, values, directory);
    }
    directory->next = big_ ? cursor.U64() : cursor.U32();
    if (cursor.ok()) return std::nullopt;
    return Result(ProbeVerdict::kTruncated, offset, "directory runs past the end of the file");
  }

  void Store(uint16_t tag, const Values& values, Directory* directory) const {
    switch (tag) {
      case kImageWidth:
        directory->width = ValueAt(values, 0);
        break;
      case kImageLength:
        directory->height = ValueAt(values, 0);
        break;
      case kBitsPerSample:
        directory->bits = ValueAt(values, 0);
        break;
      case kPhotometric:
        directory->photometric = ValueAt(values, 0);
        break;
      case kOrientation:
        directory->orientation = ValueAt(values, 0);
        break;
      case kSamplesPerPixel:
        directory->samples = ValueAt(values, 0);
        break;
      case kExtraSamples:
        directory->extra_samples = values;
        break;
      case kStripOffsets:
      case kTileOffsets:
        directory->data_offsets = values;
        break;
      case kStripByteCounts:
      case kTileByteCounts:
        directory->data_sizes = values;
        break;
      case kJpegOffset:
        directory->has_jpeg_offset = true;
        break;
      default:
        break;
    }
  }

  std::optional<ProbeResult> CheckDirectory(uint64_t offset, const Directory& directory,
                                            bool first) {
    const uint64_t width = directory.width, height = directory.height;
    if (width - 1 >= UINT32_MAX || height - 1 >= UINT32_MAX) {
      // Later pages may be thumbnails in another format; the first must be an image.
      if (!first) return std::nullopt;
      return Result(ProbeVerdict::kNotAnImage, offset, "no width or height");
    }
    if (first) {
      info_.width = static_cast<uint32_t>(width);
      info_.height = static_cast<uint32_t>(height);
      SetColor(directory);
    }
    if (!OverPixelLimit(width, height, options_)) return std::nullopt;
    return Result(ProbeVerdict::kPixelLimit, offset, kPixelLimitDetail);
  }

  void SetColor(const Directory& directory) {
    info_.bits_per_channel = static_cast<uint8_t>(std::min<uint64_t>(directory.bits, 255));
    info_.channels = static_cast<uint8_t>(std::clamp<uint64_t>(directory.samples, 1, 4));
    if (directory.orientation >= 1 && directory.orientation <= 8) {
      info_.orientation = static_cast<uint8_t>(directory.orientation);
    }
    // Section 18: 1 is associated alpha, 2 unassociated; alpha is the first extra sample.
    const uint64_t extra = ValueAt(directory.extra_samples, 0);
    const bool alpha = (extra == 1 || extra == 2) && directory.photometric != 5;
    if (alpha) info_.flags |= ImageInfo::kAlpha;
    switch (directory.photometric) {
      case 0:  // WhiteIsZero
      case 1:  // BlackIsZero
        info_.color_space = alpha ? ColorSpace::kGrayAlpha : ColorSpace::kGray;
        info_.channels = alpha ? 2 : 1;
        break;
      case 2:  // RGB
      case 6:  // YCbCr, section 21
        info_.color_space = alpha ? ColorSpace::kRgba : ColorSpace::kRgb;
        info_.channels = alpha ? 4 : 3;
        break;
      case 3:  // palette
        info_.color_space = ColorSpace::kPalette;
        info_.channels = alpha ? 4 : 3;
        info_.bits_per_channel = 8;
        break;
      case 5:  // separated, section 16
        if (directory.samples >= 4) info_.color_space = ColorSpace::kCmyk;
        break;
      default:
        break;
    }
  }

  // Checks that all values of entries, and every strip or tile, are inside the file.
  std::optional<ProbeResult> CheckData(uint64_t offset, const Directory& directory, bool first) {
    if (directory.cut_entry != 0) {
      return Result(ProbeVerdict::kTruncated, directory.cut_entry,
                    "values of an entry run past the end of the file");
    }
    const Values& offsets = directory.data_offsets;
    const Values& sizes = directory.data_sizes;
    if (offsets.count == 0 && first && !directory.has_jpeg_offset) {
      return Result(ProbeVerdict::kTruncated, offset, "no strips or tiles");
    }
    if (!Spend(offsets.count * 8)) return Overlap(offset);
    for (uint64_t i = 0; i < offsets.count; ++i) {
      const uint64_t start = ValueAt(offsets, i);
      // If there is no size (some old writers), one byte must be there; sparse files have size 0.
      const uint64_t size = i < sizes.count ? ValueAt(sizes, i) : 1;
      if (size != 0 && (start >= file_.size() || size > file_.size() - start)) {
        return Result(ProbeVerdict::kTruncated, start,
                      "strip or tile runs past the end of the file");
      }
    }
    return std::nullopt;
  }

  ProbeResult Overlap(uint64_t offset) const {
    return Result(ProbeVerdict::kNotAnImage, offset, "directories share their tables");
  }

  Bytes file_;
  const ProbeOptions& options_;
  const ByteCursor::Endian endian_;
  uint64_t budget_;
  ImageInfo info_;
  bool big_ = false;
};

}  // namespace

ProbeResult ProbeTiff(Bytes file, const ProbeOptions& options) {
  return TiffWalk(file, options).Run();
}

}  // namespace shardpack::probe_internal
