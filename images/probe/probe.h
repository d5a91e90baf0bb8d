// ProbeImage: tells what an encoded image is and whether its structure is whole, without decoding.
//
//   const ProbeResult probe = ProbeImage(file_bytes, ProbeOptions{.max_pixels = 16'000'000});
//   if (probe.verdict != ProbeVerdict::kOk) return SkipSample(probe.verdict, probe.detail);
//   sample.image = probe.info;
//
// Lifetime: results hold no reference to the bytes; `detail` has static storage.
// Thread-safety: pure functions; no state, no allocation, memory use does not depend on the input.
// Errors: never throws; everything about the bytes is a ProbeVerdict. Work is linear in the size.
// Units: pixels as stored (before the EXIF orientation), offsets in bytes from the file's start.
//
// Formats: JPEG, PNG (APNG), WebP, GIF, BMP, TIFF (BigTIFF). Conventions of ImageInfo here:
// - channels counts a transparent colour as an alpha channel (palette with transparency: 4).
// - bits_per_channel of a palette image is that of its colours (8), not of its indexes.
// - YCbCr is kRgb; a gray, RGB or palette image with a transparent colour keeps its colour model.
// - progressive also says: an interlaced PNG or GIF. animated also says: a TIFF of several pages.
// - of EXIF only the orientation is read; loops, bad offsets and odd types leave it 1.
#ifndef SHARDPACK_IMAGES_PROBE_PROBE_H_
#define SHARDPACK_IMAGES_PROBE_PROBE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/core/image_info.h"

namespace shardpack {

enum class ProbeLevel : uint8_t {
  kHeader,     // the facts of ImageInfo only; a cut after width and height is not looked for
  kStructure,  // also walks the whole file: markers, chunks with their CRC, blocks, directories
};

constexpr auto WordsOf(ProbeLevel) {
  return std::to_array<std::string_view>({"header", "structure"});
}

enum class ProbeVerdict : uint8_t {
  kOk,
  kEmpty,       // no bytes
  kNotAnImage,  // no known signature, or headers that no decoder would take
  kTruncated,   // the structure ends early
  kBadCrc,      // a PNG chunk does not match its checksum
  kPixelLimit,  // an image, page or frame of more than max_pixels; found before any pixel is read
};

struct ProbeOptions {
  ProbeLevel level = ProbeLevel::kStructure;
  uint64_t max_pixels = 64'000'000;
  // A truncated image of known width and height is kOk, its info flagged kTruncated.
  bool allow_truncated = false;
};

struct ProbeResult {
  ProbeVerdict verdict = ProbeVerdict::kOk;
  ImageInfo info;           // what was learnt before the trouble, if any
  uint64_t offset = 0;      // where in the file the trouble was seen
  const char* detail = "";  // what it was, for example "no EOI marker"; "" without trouble
};

// What the file is and whether it is whole. Of several troubles the first one met is reported.
// Bytes after the end of the image (a second JPEG, padding) are no trouble. Not found: damage that
// keeps the structure, as a flipped bit in the entropy-coded data of a JPEG.
ProbeResult ProbeImage(std::span<const std::byte> file, const ProbeOptions& options);

// The format that the first bytes announce, kUnknown if none. 18 bytes are enough.
ImageFormat SniffImageFormat(std::span<const std::byte> head);

// The word for a verdict in lists of skipped inputs: "ok", "empty", "not-an-image", "truncated",
// "bad-crc", "pixel-limit". Static storage.
const char* ProbeVerdictName(ProbeVerdict verdict);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_PROBE_H_
