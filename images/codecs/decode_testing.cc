#include "images/codecs/decode_testing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>
// Requires <cstdio> before it.
#include <jpeglib.h>

namespace shardpack {
namespace {

void Configure(const JpegKind& kind, jpeg_compress_struct* jpeg) {
  static constexpr J_COLOR_SPACE kInput[] = {JCS_UNKNOWN, JCS_GRAYSCALE, JCS_UNKNOWN, JCS_RGB,
                                             JCS_CMYK};
  jpeg->in_color_space = kInput[jpeg->input_components];
  jpeg_set_defaults(jpeg);
  if (kind.ycck) jpeg_set_colorspace(jpeg, JCS_YCCK);
  if (kind.rgb_coded) jpeg_set_colorspace(jpeg, JCS_RGB);
  jpeg_set_quality(jpeg, kind.quality, TRUE);
  for (int i = 0; i < jpeg->num_components; ++i) {
    const bool full = i == 0 || i == 3;
    jpeg->comp_info[i].h_samp_factor = full ? kind.sampling.h : kind.chroma.h;
    jpeg->comp_info[i].v_samp_factor = full ? kind.sampling.v : kind.chroma.v;
  }
  jpeg->arith_code = kind.arithmetic ? TRUE : FALSE;
  jpeg->optimize_coding = kind.optimize ? TRUE : FALSE;
  jpeg->restart_in_rows = kind.restart_rows;
  if (kind.progressive) jpeg_simple_progression(jpeg);
}

}  // namespace

TestPixels MakePattern(uint32_t width, uint32_t height, uint32_t channels, uint32_t seed) {
  std::mt19937 random(seed);
  TestPixels made{width, height, channels, Image(size_t{width} * height * channels)};
  size_t at = 0;
  const double pitch = 3.0 + seed % 17;
  std::vector<double> columns;  // of each value of a row
  for (uint32_t x = 0; x < width; ++x) {
    for (uint32_t c = 0; c < channels; ++c)
      columns.push_back(128 + 70 * std::sin((x + c * 5.0) / pitch));
  }
  std::vector<double> row(channels);
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t c = 0; c < channels; ++c) row[c] = 50 * std::cos(y / (pitch + c));
    for (uint32_t x = 0; x < width; ++x) {
      for (uint32_t c = 0; c < channels; ++c) {
        double value = columns[x * channels + c] + row[c];
        if ((x / 23 + y / 19 + c) % 3 == 0) value = 255 - value;
        value += static_cast<double>(random() % 41) - 20;
        if (x % 64 > 60) value = random() % 2 * 255;
        made.bytes[at++] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return made;
}

Image EncodeJpeg(const TestPixels& pixels, const JpegKind& kind) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr error;
  jpeg.err = jpeg_std_error(&error);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size_bytes = 0;
  jpeg_mem_dest(&jpeg, &out, &size_bytes);
  jpeg.image_width = pixels.width;
  jpeg.image_height = pixels.height;
  jpeg.input_components = static_cast<int>(pixels.channels);
  Configure(kind, &jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(pixels.view().Row(jpeg.next_scanline));
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Image made(out, out + size_bytes);
  std::free(out);
  return made;
}

TestPixels CropPixels(const PixelView& view, const PixelRegion& region) {
  const size_t row_bytes = size_t{region.width} * view.channels;
  TestPixels made{region.width, region.height, view.channels, Image(row_bytes * region.height)};
  for (uint32_t y = 0; y < region.height; ++y) {
    std::memcpy(made.bytes.data() + y * row_bytes,
                view.Row(region.top + y) + size_t{region.left} * view.channels, row_bytes);
  }
  return made;
}

TestPixels Copy(const PixelView& view) { return CropPixels(view, {0, 0, view.width, view.height}); }

int LargestDifference(const PixelView& a, const PixelView& b) {
  if (a.width != b.width || a.height != b.height || a.channels != b.channels) return 256;
  int largest = 0;
  for (uint32_t y = 0; y < a.height; ++y) {
    for (uint32_t i = 0; i < a.width * a.channels; ++i) {
      largest = std::max(largest, std::abs(a.Row(y)[i] - b.Row(y)[i]));
    }
  }
  return largest;
}

absl::StatusOr<TestPixels> Decode(const Image& file, const DecodeOptions& options) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[file.size()]);
  if (!file.empty()) std::memcpy(copy.get(), file.data(), file.size());
  ImageDecoder decoder;
  const auto image = decoder.Decode({copy.get(), file.size()}, ImageInfo(), options);
  if (!image.ok()) return image.status();
  return Copy(image->view);
}

}  // namespace shardpack
