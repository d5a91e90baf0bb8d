// Arbitrary bytes as a label map: an error, or labels that are below the classes; the same again
// in 16 bits, and of the part that a crop shows.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "images/augment/label_pipeline.h"
#include "images/probe/probe.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;
  const auto file = std::as_bytes(std::span(data, size));
  constexpr uint64_t kMaxPixels = 1 << 16;
  PixelPipelineOptions pixels;
  pixels.max_pixels = kMaxPixels;
  const auto shown = ShownImageOf(file, {}, pixels);
  if (!shown.ok()) return 0;
  pixels.crop = {.kind = CropKind::kResize, .width = 13, .height = 9};
  const Crop whole = {.box = {0, 0, double(shown->width), double(shown->height)},
                      .flip = size % 2 == 0};
  const LabelMapOptions options = {.legacy = size % 3 == 0, .classes = 100};
  auto narrow = LabelPipeline::Create(pixels, options);
  auto wide =
      LabelPipeline::Create(pixels, {.wide = true, .legacy = size % 3 == 0, .classes = 100});
  uint8_t labels[13 * 9];
  uint16_t wide_labels[13 * 9];
  const bool ran = narrow->Run(file, *shown, whole, labels).ok();
  Check(wide->Run(file, *shown, whole, wide_labels).ok() == ran);
  for (size_t i = 0; ran && i < 13 * 9; ++i) {
    Check(labels[i] == wide_labels[i]);
    Check(labels[i] < 100 || labels[i] == 255);
  }
  return 0;
}
