// The parts that ProbeImage is made of, one function a format; for images/probe*.cc only.
//
//   const ProbeResult result = ProbeJpeg(file, options);
//   if (result.verdict == ProbeVerdict::kTruncated) ...  // options.allow_truncated not applied yet
//   info.orientation = ExifOrientation(exif_block);
//
// Lifetime, thread-safety, errors, units: as probe.h. Each function is called with a file whose
// signature SniffImageFormat has seen. It reports every truncation, at both levels; ProbeImage
// decides what the level and the options make of it.
#ifndef SHARDPACK_IMAGES_PROBE_PROBE_INTERNAL_H_
#define SHARDPACK_IMAGES_PROBE_PROBE_INTERNAL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/core/image_info.h"
#include "images/probe/probe.h"

namespace shardpack::probe_internal {

using Bytes = std::span<const std::byte>;

ProbeResult ProbeJpeg(Bytes file, const ProbeOptions& options);
ProbeResult ProbePng(Bytes file, const ProbeOptions& options);
ProbeResult ProbeWebp(Bytes file, const ProbeOptions& options);
ProbeResult ProbeGif(Bytes file, const ProbeOptions& options);
ProbeResult ProbeBmp(Bytes file, const ProbeOptions& options);
ProbeResult ProbeTiff(Bytes file, const ProbeOptions& options);

// The orientation 1..8 that IFD 0 of an EXIF block states, 1 when it states none. The block starts
// with its TIFF header; "Exif\0\0" before it is skipped. No offset but that of IFD 0 is followed,
// so loops cannot matter; entries of a huge IFD are read as far as the block goes.
uint8_t ExifOrientation(Bytes exif);

// Both factors are below 2^32: the product does not overflow.
inline bool OverPixelLimit(uint64_t width, uint64_t height, const ProbeOptions& options) {
  return width * height > options.max_pixels;
}

constexpr char kPixelLimitDetail[] = "more pixels than the limit";

}  // namespace shardpack::probe_internal

#endif  // SHARDPACK_IMAGES_PROBE_PROBE_INTERNAL_H_
