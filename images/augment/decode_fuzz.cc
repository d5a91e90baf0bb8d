// Arbitrary bytes: decoding stays within them (sanitizers check); a region equals that part of the
// whole image; the pipeline accepts what the decoder accepts; an inspection explains missing
// pixels.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "images/augment/pixel_pipeline.h"
#include "images/codecs/decode.h"
#include "images/codecs/inspect.h"
#include "images/probe/probe.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

// A part of the image, derived from the file's bytes.
shardpack::PixelRegion ChooseRegion(const uint8_t* data, size_t size, uint32_t width,
                                    uint32_t height) {
  const uint32_t a = data[size - 1], b = data[size / 2];
  shardpack::PixelRegion region;
  region.left = a * 31 % width;
  region.top = b * 29 % height;
  region.width = 1 + (a + b) * 7 % (width - region.left);
  region.height = 1 + (a ^ b) * 5 % (height - region.top);
  return region;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shardpack::ImageDecoder, shardpack::ImageInfo, shardpack::PixelPipeline;
  const auto file = std::as_bytes(std::span(data, size));
  constexpr uint64_t kMaxPixels = 1 << 16;
  const auto info = shardpack::KnownImageInfo(file, ImageInfo(), kMaxPixels);
  if (!info.ok()) return 0;
  ImageDecoder decoder, part_decoder;
  const auto whole = decoder.Decode(file, *info, {.orient = false, .max_pixels = kMaxPixels});
  const auto region = ChooseRegion(data, size, info->width, info->height);
  const auto part = part_decoder.Decode(
      file, *info, {.region = region, .orient = false, .max_pixels = kMaxPixels});
  if (whole.ok()) {
    Check(whole->view.width == info->width && whole->view.height == info->height);
    Check(part.ok());
    Check(part->view.width == region.width && part->view.height == region.height);
    for (uint32_t y = 0; y < region.height; ++y) {
      Check(std::memcmp(part->view.Row(y), whole->view.Row(region.top + y) + region.left * 3,
                        region.width * 3) == 0);
    }
  }
  shardpack::ImageInspector inspector;
  const shardpack::ImageReport report = inspector.Inspect(file, {.max_pixels = kMaxPixels});
  Check(report.decoded ? whole.ok() : !report.notes.empty());
  shardpack::PixelPipelineOptions options;
  options.crop.width = 9;
  options.crop.height = 7;
  options.channels = size % 2 == 0 ? 3 : 1;
  options.fast = size % 3 == 0;
  options.max_pixels = kMaxPixels;
  static std::vector<std::byte> slot;
  auto pipeline = PixelPipeline::Create(options);
  slot.resize(pipeline->output_bytes());
  const bool ran = pipeline->Run(file, *info, {1, 2, size}, slot.data()).ok();
  if (whole.ok()) Check(ran);
  return 0;
}
