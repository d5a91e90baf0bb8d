// The parts of ProbeImage, one function per format; internal to images/probe/probe*.cc.
//
//   const ProbeResult result = ProbeJpeg(file, options);
//   if (result.verdict == ProbeVerdict::kTruncated) ...  // options.allow_truncated not applied yet
//   info.orientation = ExifOrientation(exif_block);
//
// Each function requires a file whose signature SniffImageFormat has recognised, and reports every
// truncation, at both levels; ProbeImage then applies the level and the options.
//
// Lifetime, thread-safety, errors, units: as probe.h.
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

// The orientation 1..8 in IFD 0 of an EXIF block, 1 if absent. The block starts with its TIFF
// header, without the preceding "Exif\0\0". Only the offset of IFD 0 is followed, so loops are
// impossible; entries of a huge IFD are read up to the end of the block.
uint8_t ExifOrientation(Bytes exif);

// Both factors are below 2^32, so the product cannot overflow.
inline bool OverPixelLimit(uint64_t width, uint64_t height, const ProbeOptions& options) {
  return width * height > options.max_pixels;
}

constexpr char kPixelLimitDetail[] = "more pixels than the limit";

}  // namespace shardpack::probe_internal

#endif  // SHARDPACK_IMAGES_PROBE_PROBE_INTERNAL_H_
