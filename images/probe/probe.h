// ProbeImage: reads an image's headers and checks that its structure is complete, without decoding.
//
//   const ProbeResult probe = ProbeImage(file_bytes, ProbeOptions{.max_pixels = 16'000'000});
//   if (probe.verdict != ProbeVerdict::kOk) return SkipSample(probe.verdict, probe.detail);
//   sample.image = probe.info;
//
// Lifetime: results hold no reference to the bytes; `detail` has static storage.
// Thread-safety: pure functions; no state, no allocation, memory use independent of the input.
// Errors: never throws; every problem with the bytes is a ProbeVerdict. Time is linear in the size.
// Units: pixels as stored (before the EXIF orientation), offsets in bytes from the file's start.
//
// Formats: JPEG, PNG (APNG), WebP, GIF, BMP, TIFF (BigTIFF). Conventions for ImageInfo here:
// - channels counts a transparent colour as an alpha channel (palette with transparency: 4).
// - bits_per_channel of a palette image refers to its colours (8), not its indexes.
// - YCbCr is kRgb; a gray, RGB or palette image with a transparent colour keeps its colour model.
// - progressive includes interlaced PNG and GIF; animated includes multi-page TIFF.
// - only the orientation is read from EXIF; loops, bad offsets and odd types leave it 1.
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
  kHeader,     // only the facts of ImageInfo; does not detect truncation after width and height
  kStructure,  // also walks the whole file: markers, chunks with CRCs, blocks, directories
};

constexpr auto WordsOf(ProbeLevel) {
  return std::to_array<std::string_view>({"header", "structure"});
}

enum class ProbeVerdict : uint8_t {
  kOk,
  kEmpty,       // no bytes
  kNotAnImage,  // no known signature, or headers that no decoder would accept
  kTruncated,   // the structure ends early
  kBadCrc,      // a PNG chunk does not match its checksum
  kPixelLimit,  // an image, page or frame above max_pixels; detected before any pixel is read
};

struct ProbeOptions {
  ProbeLevel level = ProbeLevel::kStructure;
  uint64_t max_pixels = 64'000'000;
  // A truncated image with known width and height is kOk, with kTruncated set in its info.
  bool allow_truncated = false;
};

struct ProbeResult {
  ProbeVerdict verdict = ProbeVerdict::kOk;
  ImageInfo info;           // as far as it was read before the problem
  uint64_t offset = 0;      // file offset of the problem
  const char* detail = "";  // a description such as "no EOI marker"; "" if there is no problem
};

// Determines the format and whether the file is complete; reports the first problem found. Bytes
// after the end of the image (a second JPEG, padding) are allowed. Does not detect damage that
// leaves the structure intact, such as a flipped bit in a JPEG's entropy-coded data.
ProbeResult ProbeImage(std::span<const std::byte> file, const ProbeOptions& options);

// The format according to the first bytes, kUnknown if none matches. 18 bytes are enough.
ImageFormat SniffImageFormat(std::span<const std::byte> head);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PROBE_PROBE_H_
