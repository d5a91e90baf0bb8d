#include "images/probe/extras.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "images/probe/byte_cursor.h"
#include "images/probe/marker_scan.h"

namespace shardpack {
namespace {

using Bytes = std::span<const std::byte>;
using Endian = ByteCursor::Endian;

void AddPiece(std::string_view name, uint64_t offset, uint64_t bytes, ImageExtras* extras) {
  extras->ancillary_bytes += bytes;
  if (bytes <= extras->max_bytes) return;
  extras->max_bytes = bytes;
  extras->max_offset = offset;
  extras->max_name = {};
  std::copy_n(name.begin(), std::min(name.size(), extras->max_name.size() - 1),
              extras->max_name.begin());
}

void AddTrailing(Bytes file, uint64_t end, ImageExtras* extras) {
  if (end < file.size()) AddPiece("trailing", end, file.size() - end, extras);
}

// ITU-T T.81 table B.1: APPn are E0 to EF, COM is FE, SOS is DA, EOI is D9.
void MeasureJpeg(Bytes file, ImageExtras* extras) {
  for (uint64_t offset = 2;;) {
    offset = FindJpegMarker(file, offset);
    if (offset == file.size()) return;
    const uint8_t code = std::to_integer<uint8_t>(file[offset + 1]);
    if (code == 0xD9) return AddTrailing(file, offset + 2, extras);
    if (code == 0x01) {  // TEM has no segment
      offset += 2;
      continue;
    }
    if (code < 0xC0 || code == 0xD8) return;
    ByteCursor cursor(file, Endian::kBig, offset + 2);
    const uint16_t length = cursor.U16();
    if (!cursor.ok() || length < 2 || !cursor.Skip(length - 2)) return;
    if (code == 0xDA) ++extras->scans;
    if (code == 0xFE) AddPiece("COM", offset, uint64_t{2} + length, extras);
    if (code >= 0xE0 && code <= 0xEF) {
      char name[6];
      std::snprintf(name, sizeof(name), "APP%d", code - 0xE0);
      AddPiece(name, offset, uint64_t{2} + length, extras);
    }
    offset = cursor.offset();
  }
}

// How much inflated text and profile counts at most, since a few bytes can inflate to gigabytes.
constexpr uint64_t kMaxInflatedBytes = uint64_t{64} << 20;

uint64_t InflatedBytes(Bytes data, uint64_t max_bytes) {
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK) return 0;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  static thread_local std::array<Bytef, 64 << 10> ignored;
  uint64_t bytes = 0;
  for (int state = Z_OK; state == Z_OK && bytes < max_bytes;) {
    stream.next_out = ignored.data();
    stream.avail_out = static_cast<uInt>(ignored.size());
    state = inflate(&stream, Z_NO_FLUSH);
    bytes += ignored.size() - stream.avail_out;
  }
  inflateEnd(&stream);
  return bytes;
}

// The zlib stream of a chunk, empty if there is none (sections 11.3.3.3 to 11.3.3.5): after a
// keyword, its zero and a method; in iTXt a flag comes first, and two more texts follow.
Bytes CompressedPart(std::string_view name, Bytes data) {
  const auto behind_zero = [](Bytes text) {
    const auto zero = std::ranges::find(text, std::byte{0});
    return zero == text.end() ? Bytes() : Bytes(zero + 1, text.end());
  };
  if (name != "zTXt" && name != "iCCP" && name != "iTXt") return {};
  data = behind_zero(data);
  if (name != "iTXt") return data.size() < 1 ? Bytes() : data.subspan(1);
  if (data.size() < 2 || data[0] != std::byte{1}) return {};
  return behind_zero(behind_zero(data.subspan(2)));
}

// PNG (Third Edition) section 5.4: a lower-case first letter marks a chunk that decoders may skip.
// fcTL and fdAT are such chunks but hold an animation's frames; tRNS affects the pixels.
void MeasurePng(Bytes file, ImageExtras* extras) {
  uint64_t inflated_bytes = 0;
  ByteCursor cursor(file, Endian::kBig, 8);
  for (;;) {
    const uint64_t offset = cursor.offset();
    const uint32_t length = cursor.U32();
    const Bytes type = cursor.Take(4);
    const Bytes data = cursor.Take(length);
    if (!cursor.Skip(4)) return;
    const std::string_view name(reinterpret_cast<const char*>(type.data()), type.size());
    if (name == "IEND") return AddTrailing(file, cursor.offset(), extras);
    if (name[0] >= 'a' && name[0] <= 'z' && name != "fcTL" && name != "fdAT" && name != "tRNS") {
      const uint64_t max_bytes = kMaxInflatedBytes - std::min(kMaxInflatedBytes, inflated_bytes);
      const uint64_t inflated = InflatedBytes(CompressedPart(name, data), max_bytes);
      inflated_bytes += inflated;
      AddPiece(name, offset, std::max(uint64_t{length}, inflated) + 12, extras);
    }
  }
}

// RFC 9649 section 2.3: chunks of a four-letter name, a size, and a pad byte after odd sizes.
void MeasureWebp(Bytes file, ImageExtras* extras) {
  ByteCursor riff(file, Endian::kLittle, 4);
  const uint64_t end = std::min<uint64_t>(uint64_t{riff.U32()} + 8, file.size());
  ByteCursor cursor(file.first(end), Endian::kLittle, 12);
  while (cursor.remaining() >= 8) {
    const uint64_t offset = cursor.offset();
    const Bytes type = cursor.Take(4);
    const uint32_t length = cursor.U32();
    if (!cursor.Skip(length)) return;
    cursor.Skip(length % 2);  // the last one may lack it
    const std::string_view name(reinterpret_cast<const char*>(type.data()), type.size());
    static constexpr std::string_view kPicture[] = {"VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF"};
    if (std::ranges::find(kPicture, name) == std::end(kPicture)) {
      AddPiece(name, offset, uint64_t{length} + 8, extras);
    }
  }
  AddTrailing(file, (end + 1) & ~uint64_t{1}, extras);
}

// Skips data sub-blocks (GIF89a section 15); false at the end of the file.
bool SkipSubBlocks(ByteCursor* cursor) {
  for (;;) {
    const uint8_t size = cursor->U8();
    if (!cursor->ok()) return false;
    if (size == 0) return true;
    if (!cursor->Skip(size)) return false;
  }
}

uint64_t ColorTableBytes(uint8_t packed) {
  return (packed & 0x80) == 0 ? 0 : uint64_t{3} << ((packed & 7) + 1);
}

void MeasureGif(Bytes file, ImageExtras* extras) {
  ByteCursor cursor(file, Endian::kLittle, 10);
  const uint8_t screen = cursor.U8();
  if (!cursor.Skip(2 + ColorTableBytes(screen))) return;
  for (;;) {
    const uint64_t offset = cursor.offset();
    const uint8_t kind = cursor.U8();
    if (!cursor.ok()) return;
    if (kind == 0x3B) return AddTrailing(file, cursor.offset(), extras);
    if (kind == 0x2C) {
      cursor.Skip(8);
      const uint8_t packed = cursor.U8();
      if (!cursor.Skip(ColorTableBytes(packed) + 1) || !SkipSubBlocks(&cursor)) return;
    } else if (kind == 0x21) {
      const uint8_t label = cursor.U8();
      if (!cursor.ok() || !SkipSubBlocks(&cursor)) return;
      const std::string_view name = label == 0xFE   ? "comment"
                                    : label == 0xFF ? "app"
                                    : label == 0xF9 ? ""
                                                    : "other";
      if (!name.empty()) AddPiece(name, offset, cursor.offset() - offset, extras);
    } else {
      return;
    }
  }
}

}  // namespace

ImageExtras MeasureExtras(Bytes file, ImageFormat format) {
  ImageExtras extras;
  switch (format) {
    case ImageFormat::kJpeg:
      MeasureJpeg(file, &extras);
      break;
    case ImageFormat::kPng:
      MeasurePng(file, &extras);
      break;
    case ImageFormat::kWebp:
      MeasureWebp(file, &extras);
      break;
    case ImageFormat::kGif:
      MeasureGif(file, &extras);
      break;
    default:
      break;
  }
  return extras;
}

}  // namespace shardpack
