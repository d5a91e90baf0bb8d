#include "images/pixels/blend.h"

#include "images/pixels/luma.h"

namespace shardpack {
namespace {

template <typename Sample>
void Blend(const PixelView& view, const uint32_t* background, Sample* to) {
  constexpr uint32_t kMost = sizeof(Sample) == 1 ? 255 : 65535;
  const uint32_t colors = view.channels - 1;
  for (uint32_t y = 0; y < view.height; ++y) {
    const Sample* from = reinterpret_cast<const Sample*>(view.Row(y));
    for (uint32_t x = 0; x < view.width; ++x, from += view.channels, to += colors) {
      const uint64_t alpha = from[colors], rest = kMost - alpha;
      for (uint32_t c = 0; c < colors; ++c) {
        to[c] = static_cast<Sample>((from[c] * alpha + background[c] * rest + kMost / 2) / kMost);
      }
    }
  }
}

template <typename Sample>
void Recolor(const PixelView& view, uint32_t colors, Sample* to) {
  const uint32_t had = view.channels <= 2 ? 1 : 3, alpha = view.channels - had;
  for (uint32_t y = 0; y < view.height; ++y) {
    const Sample* from = reinterpret_cast<const Sample*>(view.Row(y));
    for (uint32_t x = 0; x < view.width; ++x, from += view.channels, to += colors + alpha) {
      const Sample green = from[had == 3 ? 1 : 0], blue = from[had == 3 ? 2 : 0];
      to[0] = colors == 1 ? static_cast<Sample>(WideLuma(from[0], green, blue)) : from[0];
      if (colors == 3) {
        to[1] = green;
        to[2] = blue;
      }
      if (alpha == 1) to[colors] = from[had];
    }
  }
}

}  // namespace

PixelView BlendAlpha(const PixelView& view, uint32_t background, uint8_t* out) {
  uint32_t colors[3] = {background >> 16 & 255, background >> 8 & 255, background & 255};
  if (view.channels == 2) colors[0] = Luma(colors[0], colors[1], colors[2]);
  if (view.sample_bytes == 2) {
    for (uint32_t& color : colors) color *= 257;
    Blend(view, colors, reinterpret_cast<uint16_t*>(out));
  } else {
    Blend(view, colors, out);
  }
  PixelView opaque = view;
  opaque.pixels = out;
  opaque.channels = view.channels - 1;
  opaque.stride_bytes = size_t{view.width} * opaque.channels * view.sample_bytes;
  return opaque;
}

void ChangeColors(const PixelView& view, uint32_t colors, uint8_t* out) {
  if (view.sample_bytes == 2) {
    Recolor(view, colors, reinterpret_cast<uint16_t*>(out));
  } else {
    Recolor(view, colors, out);
  }
}

}  // namespace shardpack
