// Arbitrary bytes as an ICC profile: inspecting it and converting with it stay within them
// (sanitizers check), and a second conversion yields the same pixels.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "images/transform/color_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shardpack::ColorConverter, shardpack::PixelView, shardpack::ProfileModel;
  const auto profile = std::as_bytes(std::span(data, size));
  const ProfileModel model = shardpack::ProfileModelOf(profile);
  if (model == ProfileModel::kNone || model == ProfileModel::kUnusable) return 0;
  const uint32_t colors = model == ProfileModel::kGray ? 1 : model == ProfileModel::kRgb ? 3 : 4;
  const bool ink = model == ProfileModel::kCmyk;
  // With alpha and 16 bits, if possible.
  const uint32_t channels = colors + (!ink && size % 2 == 0 ? 1 : 0);
  const uint32_t sample_bytes = !ink && size % 3 == 0 ? 2 : 1;
  constexpr uint32_t kSide = 6;
  std::vector<uint8_t> pixels(size_t{kSide} * kSide * channels * sample_bytes);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  const PixelView view{pixels.data(), kSide, kSide, channels, pixels.size() / kSide, sample_bytes};
  std::vector<uint8_t> first(pixels.size()), second(pixels.size());
  ColorConverter converter, fresh;
  const bool converted = converter.ToSrgb(profile, model, view, first.data()).ok();
  if (fresh.ToSrgb(profile, model, view, second.data()).ok() != converted) std::abort();
  if (converted && first != second) std::abort();
  return 0;
}
