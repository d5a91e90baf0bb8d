// Test images for decoding: patterns, JPEGs of them with any sampling, and comparisons.
//
//   const JpegKind kind = {.sampling = {2, 2}, .progressive = true};
//   const Image jpeg = EncodeJpeg(MakePattern(97, 61, 3), kind);
//   EXPECT_LE(LargestDifference(a->view, b->view), 1);
//
// Errors: a libjpeg error ends the process.
// Units: as images/pixels/pixels.h.
#ifndef SHARDPACK_IMAGES_CODECS_DECODE_TESTING_H_
#define SHARDPACK_IMAGES_CODECS_DECODE_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "images/codecs/decode.h"
#include "images/pixels/pixels.h"
#include "images/probe/probe_testing.h"

namespace shardpack {

struct TestPixels {
  uint32_t width = 0, height = 0, channels = 3;
  Image bytes;

  PixelView view() const {
    return {bytes.data(), width, height, channels, width * size_t{channels}};
  }
};

// Waves, edges and noise, to expose errors of any filter. The same for the same arguments.
TestPixels MakePattern(uint32_t width, uint32_t height, uint32_t channels, uint32_t seed = 1);

struct JpegKind {
  // Of the luma (first) component; chroma is 1 x 1 by default.
  struct Sampling {
    int h = 1, v = 1;
  };
  Sampling sampling = {};
  Sampling chroma = {};
  bool progressive = false, arithmetic = false, optimize = false;
  int restart_rows = 0;
  int quality = 85;
  bool ycck = false;       // for four channels: YCCK instead of CMYK
  bool rgb_coded = false;  // for three channels: without conversion to YCbCr
};

// Channels 1: gray, 3: RGB, 4: CMYK in Adobe's convention.
Image EncodeJpeg(const TestPixels& pixels, const JpegKind& kind);

// A copy without gaps between rows.
TestPixels Copy(const PixelView& view);
TestPixels CropPixels(const PixelView& view, const PixelRegion& region);
// 256 if the sizes differ.
int LargestDifference(const PixelView& a, const PixelView& b);

// Decodes a copy of exactly the file's size, so that ASan detects reads past its end.
absl::StatusOr<TestPixels> Decode(const Image& file, const DecodeOptions& options = {});

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_CODECS_DECODE_TESTING_H_
