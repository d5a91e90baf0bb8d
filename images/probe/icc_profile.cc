#include "images/probe/icc_profile.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "images/probe/byte_cursor.h"

namespace shardpack {
namespace {

using Bytes = std::span<const std::byte>;
using Endian = ByteCursor::Endian;

std::string_view Text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// ICC.1:2010, annex B.4: "ICC_PROFILE\0", number of the part from 1, number of parts.
std::vector<std::byte> FromJpeg(Bytes file) {
  constexpr std::string_view kName("ICC_PROFILE\0", 12);
  std::array<Bytes, 256> parts = {};
  size_t count = 0, found = 0;
  ByteCursor cursor(file, Endian::kBig, 2);
  while (cursor.ok()) {
    if (cursor.U8() != 0xFF) break;
    uint8_t marker = cursor.U8();
    while (marker == 0xFF) marker = cursor.U8();  // fill bytes: ITU-T T.81, B.1.1.2
    if (marker == 0xDA || marker == 0xD9) break;
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;
    const uint16_t length = cursor.U16();
    if (length < 2) break;
    const Bytes segment = cursor.Take(length - 2u);
    if (marker != 0xE2 || segment.size() < kName.size() + 2 || !Text(segment).starts_with(kName)) {
      continue;
    }
    const auto number = static_cast<size_t>(segment[kName.size()]);
    const auto total = static_cast<size_t>(segment[kName.size() + 1]);
    if (number == 0 || number > total || (count != 0 && total != count)) return {};
    count = total;
    found += parts[number].data() == nullptr;
    parts[number] = segment.subspan(kName.size() + 2);
  }
  if (count == 0 || found != count) return {};
  std::vector<std::byte> profile;
  for (const Bytes part : parts) profile.insert(profile.end(), part.begin(), part.end());
  return profile;
}

std::vector<std::byte> Inflate(Bytes packed) {
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK) return {};
  std::vector<std::byte> out(std::clamp<size_t>(packed.size() * 4, 4096, kMaxProfileBytes));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int result = Z_OK;
  while (result == Z_OK) {
    if (stream.total_out == out.size()) {
      if (out.size() >= kMaxProfileBytes) break;
      out.resize(std::min<size_t>(out.size() * 2, kMaxProfileBytes));
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + stream.total_out);
    stream.avail_out = static_cast<uInt>(out.size() - stream.total_out);
    result = inflate(&stream, Z_NO_FLUSH);
  }
  out.resize(result == Z_STREAM_END ? stream.total_out : 0);
  inflateEnd(&stream);
  return out;
}

// PNG specification, 11.3.2.3: name, zero, method 0, zlib stream; before PLTE and IDAT.
std::vector<std::byte> FromPng(Bytes file) {
  ByteCursor cursor(file, Endian::kBig, 8);
  while (cursor.ok()) {
    const uint32_t length = cursor.U32();
    const std::string_view type = Text(cursor.Take(4));
    if (type == "IDAT" || type == "IEND") break;
    const Bytes chunk = cursor.Take(length);
    cursor.U32();
    if (type != "iCCP" || !cursor.ok()) continue;
    const size_t name = Text(chunk).substr(0, 80).find('\0');
    if (name == std::string_view::npos || chunk.size() < name + 2) return {};
    return Inflate(chunk.subspan(name + 2));
  }
  return {};
}

// RFC 9649, section 2.7.1.4.
std::vector<std::byte> FromWebp(Bytes file) {
  ByteCursor cursor(file, Endian::kLittle, 12);
  while (cursor.ok()) {
    const std::string_view type = Text(cursor.Take(4));
    const uint32_t length = cursor.U32();
    if (!cursor.ok() || (type != "VP8X" && type != "ICCP")) break;
    const Bytes chunk = cursor.Take(length);
    if (chunk.size() > kMaxProfileBytes) break;
    if (type == "ICCP") return {chunk.begin(), chunk.end()};
    cursor.Skip(length % 2);
  }
  return {};
}

// TIFF 6.0, section 2, and BigTIFF; ICC.1:2010, annex B.3.
std::vector<std::byte> FromTiff(Bytes file) {
  if (file.size() < 16) return {};
  const Endian endian = Text(file).starts_with("II") ? Endian::kLittle : Endian::kBig;
  ByteCursor head(file, endian, 2);
  const bool big = head.U16() == 43;
  if (big) head.Skip(4);
  ByteCursor cursor(file, endian, big ? head.U64() : head.U32());
  const uint64_t count = big ? cursor.U64() : cursor.U16();
  for (uint64_t i = 0; i < count && cursor.ok(); ++i) {
    const uint16_t tag = cursor.U16();
    cursor.U16();  // type: bytes, or undefined
    const uint64_t size_bytes = big ? cursor.U64() : cursor.U32();
    const uint64_t at = big ? cursor.U64() : cursor.U32();
    if (tag != 34675) continue;
    if (!cursor.ok() || size_bytes > kMaxProfileBytes) return {};
    const Bytes profile = ByteCursor(file, endian, at).Take(size_bytes);
    return {profile.begin(), profile.end()};
  }
  return {};
}

}  // namespace

std::vector<std::byte> FindIccProfile(std::span<const std::byte> file, ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return FromJpeg(file);
    case ImageFormat::kPng:
      return FromPng(file);
    case ImageFormat::kWebp:
      return FromWebp(file);
    case ImageFormat::kTiff:
      return FromTiff(file);
    default:
      return {};
  }
}

}  // namespace shardpack
