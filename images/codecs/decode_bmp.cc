#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "formats/io/status_macros.h"
#include "images/codecs/decode_internal.h"
#include "images/probe/bmp_headers.h"
#include "images/probe/byte_cursor.h"

// The layout follows Microsoft's "Bitmap Storage" (wingdi.h), and OS/2 for the short headers.
namespace shardpack::decode_internal {
namespace {

constexpr size_t kFileHeaderBytes = 14, kCoreHeaderBytes = 12, kInfoHeaderBytes = 40;
constexpr size_t kAlphaHeaderBytes = 56;  // with an alpha mask

enum Compression : uint32_t {
  kNone = 0,
  kRle8 = 1,
  kRle4 = 2,
  kBitFields = 3,
  kAlphaBitFields = 6
};

// One colour of a 16- or 32-bit pixel.
struct BitField {
  uint32_t mask = 0;
  int shift = 0;
  uint32_t most = 1;

  explicit BitField(uint32_t bits)
      : mask(bits),
        shift(bits == 0 ? 0 : std::countr_zero(bits)),
        most(bits == 0 ? 1 : bits >> shift) {}
  uint8_t Of(uint32_t pixel) const {
    return static_cast<uint8_t>((uint64_t{(pixel & mask) >> shift} * 255 + most / 2) / most);
  }
};

struct Bitmap {
  uint64_t pixels_offset = 0, header_bytes = 0;
  int64_t width = 0, height = 0;  // negative height: rows from the top
  uint32_t bits = 0, compression = kNone;
  std::array<uint32_t, 4> masks = {};                   // red, green, blue, alpha
  std::array<std::array<uint8_t, 3>, 256> colors = {};  // colours missing from the file are black

  uint64_t stride_bytes() const { return (static_cast<uint64_t>(width) * bits + 31) / 32 * 4; }
};

ByteCursor At(Bytes file, uint64_t offset) {
  return ByteCursor(file, ByteCursor::Endian::kLittle, offset);
}

Bitmap ReadHeader(Bytes file) {
  Bitmap bitmap;
  bitmap.pixels_offset = At(file, 10).U32();
  ByteCursor cursor = At(file, kFileHeaderBytes);
  bitmap.header_bytes = cursor.U32();
  const bool core = bitmap.header_bytes == kCoreHeaderBytes;
  bitmap.width = core ? cursor.U16() : static_cast<int32_t>(cursor.U32());
  bitmap.height = core ? cursor.U16() : static_cast<int32_t>(cursor.U32());
  cursor.U16();  // planes
  bitmap.bits = cursor.U16();
  if (bitmap.header_bytes >= kInfoHeaderBytes) bitmap.compression = cursor.U32();
  if (bitmap.bits == 16) bitmap.masks = {0x7C00, 0x03E0, 0x001F, 0};
  if (bitmap.bits == 32) bitmap.masks = {0xFF0000, 0x00FF00, 0x0000FF, 0};
  if (bitmap.compression == kBitFields || bitmap.compression == kAlphaBitFields) {
    // After a 40-byte header, or at the same place in a longer one.
    ByteCursor masks = At(file, kFileHeaderBytes + kInfoHeaderBytes);
    for (size_t c = 0; c < 3; ++c) bitmap.masks[c] = masks.U32();
    const bool has_alpha =
        bitmap.header_bytes >= kAlphaHeaderBytes || bitmap.compression == kAlphaBitFields;
    if (has_alpha) bitmap.masks[3] = masks.U32();
  }
  if (bitmap.pixels_offset == 0) {
    const bool says_colors = bitmap.header_bytes >= kInfoHeaderBytes - 4;
    bitmap.pixels_offset =
        BmpHeaders{.header_bytes = static_cast<uint32_t>(bitmap.header_bytes),
                   .bits = bitmap.bits,
                   .compression = bitmap.compression,
                   .colors_used = says_colors ? At(file, kFileHeaderBytes + 32).U32() : 0}
            .end();
  }
  return bitmap;
}

void ReadColors(Bytes file, Bitmap* bitmap) {
  const uint64_t entry_bytes = bitmap->header_bytes == kCoreHeaderBytes ? 3 : 4;
  const uint64_t start = kFileHeaderBytes + bitmap->header_bytes;
  const uint64_t end = std::min<uint64_t>(bitmap->pixels_offset, file.size());
  const uint64_t most = uint64_t{1} << bitmap->bits;
  const uint64_t count = end > start ? std::min((end - start) / entry_bytes, most) : 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* entry = file.data() + start + i * entry_bytes;
    for (size_t c = 0; c < 3; ++c) bitmap->colors[i][c] = static_cast<uint8_t>(entry[2 - c]);
  }
}

absl::Status CheckKind(const Bitmap& bitmap) {
  const bool fields = bitmap.compression == kBitFields || bitmap.compression == kAlphaBitFields;
  if (bitmap.compression == kRle8 || bitmap.compression == kRle4) {
    return absl::UnimplementedError("BMP: run-length compression");
  }
  if (bitmap.compression != kNone && !(fields && (bitmap.bits == 16 || bitmap.bits == 32))) {
    return absl::UnimplementedError(
        absl::StrCat("BMP: compression ", bitmap.compression, " of ", bitmap.bits, " bits"));
  }
  switch (bitmap.bits) {
    case 1:
    case 4:
    case 8:
    case 16:
    case 24:
    case 32:
      return absl::OkStatus();
    default:
      return absl::UnimplementedError(absl::StrCat("BMP: ", bitmap.bits, " bits a pixel"));
  }
}

// `row` has the bitmap's stride.
void PutRow(const Bitmap& bitmap, const uint8_t* row, uint32_t width, uint8_t* to) {
  const uint32_t bits = bitmap.bits;
  if (bits <= 8) {
    for (uint32_t x = 0; x < width; ++x, to += 3) {
      const uint32_t at = x * bits, down = 8 - bits - at % 8;
      std::ranges::copy(bitmap.colors[row[at / 8] >> down & ((1u << bits) - 1)], to);
    }
    return;
  }
  if (bits == 24) {
    for (uint32_t x = 0; x < width; ++x, to += 3, row += 3) std::reverse_copy(row, row + 3, to);
    return;
  }
  const BitField fields[3] = {BitField(bitmap.masks[0]), BitField(bitmap.masks[1]),
                              BitField(bitmap.masks[2])};
  for (uint32_t x = 0; x < width; ++x, row += bits / 8) {
    uint32_t pixel = row[0] | uint32_t{row[1]} << 8;
    if (bits == 32) pixel |= uint32_t{row[2]} << 16 | uint32_t{row[3]} << 24;
    for (const BitField& field : fields) *to++ = field.Of(pixel);
  }
}

// The same with an alpha value after each pixel.
void PutAlphaRow(const Bitmap& bitmap, const uint8_t* row, uint32_t width, uint8_t* to) {
  PutRow(bitmap, row, width, to);
  // From the end: no pixel moves to the left.
  const BitField alpha(bitmap.masks[3]);
  for (uint32_t x = width; x-- > 0;) {
    uint8_t opacity = 255;
    if (alpha.mask != 0) {
      const uint8_t* at = row + size_t{x} * bitmap.bits / 8;
      uint32_t pixel = at[0] | uint32_t{at[1]} << 8;
      if (bitmap.bits == 32) pixel |= uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
      opacity = alpha.Of(pixel);
    }
    std::memmove(to + size_t{4} * x, to + size_t{3} * x, 3);
    to[size_t{4} * x + 3] = opacity;
  }
}

}  // namespace

absl::Status DecodeBmp(Bytes file, const CodecRequest& request, PixelBuffer* buffer) {
  Bitmap bitmap = ReadHeader(file);
  const int64_t rows = std::abs(bitmap.height);
  if (bitmap.width != request.width || rows != request.height) {
    return OtherSize(static_cast<uint64_t>(std::abs(bitmap.width)), static_cast<uint64_t>(rows),
                     request);
  }
  RETURN_IF_ERROR(CheckKind(bitmap));
  if (request.stored && bitmap.bits > 8) return Damaged("BMP", "no palette");
  const uint64_t stride_bytes = bitmap.stride_bytes();
  // Below 2^28 bytes per row and 2^31 rows.
  if (bitmap.pixels_offset > file.size() ||
      stride_bytes * request.height > file.size() - bitmap.pixels_offset) {
    return Damaged("BMP", "the pixels end early");
  }
  if (bitmap.bits <= 8) ReadColors(file, &bitmap);
  if (!buffer->Reserve(WholeImageBytes(request))) return NoMemory();
  const auto* pixels = reinterpret_cast<const uint8_t*>(file.data()) + bitmap.pixels_offset;
  for (uint32_t y = 0; y < request.region.top + request.region.height; ++y) {
    const uint64_t stored = bitmap.height < 0 ? y : request.height - 1 - y;
    const uint8_t* const row = pixels + stored * stride_bytes;
    uint8_t* const to = buffer->data() + size_t{y} * request.width * PixelBytes(request);
    if (request.stored) {
      UnpackRow(row, bitmap.bits, request.width, to);
    } else {
      (request.alpha ? PutAlphaRow : PutRow)(bitmap, row, request.width, to);
    }
  }
  return absl::OkStatus();
}

}  // namespace shardpack::decode_internal
