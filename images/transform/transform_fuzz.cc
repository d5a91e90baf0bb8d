// Arbitrary bytes and options: the transform stays within the bytes (sanitizers check), its output
// is an image of the announced size, and a second run yields the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "images/probe/probe.h"
#include "images/transform/transform.h"

namespace {

using namespace shardpack;  // NOLINT: a program of its own

void Check(bool holds) {
  if (!holds) std::abort();
}

// Options derived from the file's last bytes.
TransformOptions ChooseOptions(const uint8_t* end, size_t size) {
  const auto at = [&](size_t i) { return i < size ? end[-1 - static_cast<ptrdiff_t>(i)] : 0u; };
  TransformOptions options;
  options.resize = static_cast<ResizeMode>(at(0) % 6);
  if (options.resize != ResizeMode::kOff) {
    options.width = 1 + at(1) % 64;
    options.height = 1 + at(2) % 64;
    const bool side =
        options.resize == ResizeMode::kShortest || options.resize == ResizeMode::kLongest;
    if (side) options.height = options.width;
    options.only_if_bigger = at(3) % 2 == 1;
  }
  options.interpolation = static_cast<Interpolation>(at(4) % 5);
  options.exact = at(5) % 2 == 1;
  // WebP is slow, and the others process the same pixels.
  options.encode = static_cast<EncodeAs>(at(6) % 16 == 0 ? 3 : at(6) % 3 == 2 ? 4 : at(6) % 3);
  options.color = static_cast<ColorChange>(at(7) % 3);
  options.depth8 = at(8) % 2 == 1;
  options.alpha = static_cast<AlphaChange>(at(9) % 4);
  options.orient = static_cast<OrientChange>(at(10) % 3);
  options.profile = static_cast<ProfileChange>(at(11) % 3);
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kMaxPixels = 1 << 14;
  const auto file = std::as_bytes(std::span(data, size));
  const ProbeResult probe =
      ProbeImage(file, {.level = ProbeLevel::kHeader, .max_pixels = kMaxPixels});
  if (probe.verdict != ProbeVerdict::kOk) return 0;
  const auto transform = ImageTransform::Create(ChooseOptions(data + size, size),
                                                {.max_pixels = kMaxPixels, .max_scans = 20});
  if (!transform.ok()) return 0;
  const TransformOptions& options = transform->options();
  const uint32_t longer = std::max(probe.info.width, probe.info.height);
  const uint32_t shorter = std::max(1u, std::min(probe.info.width, probe.info.height));
  // A thin image whose shorter side is enlarged takes long and tests nothing new.
  if (options.resize == ResizeMode::kShortest && longer / shorter > 64) return 0;
  const TransformTarget target = transform->Decide(file, probe.info);
  (void)ImageTransform::WorkingBytes(probe.info, target);
  static TransformScratch scratch;
  const auto image = transform->Run(file, probe.info, target, scratch);
  if (!image.ok()) return 0;
  if (!ChangesPixels(image->changes)) {
    Check(image->bytes.data() == file.data() && image->bytes.size() == file.size());
    return 0;
  }
  if (const auto shape = RawShape(options)) Check(image->bytes.size() == shape->bytes());
  const std::vector<std::byte> first(image->bytes.begin(), image->bytes.end());
  TransformScratch fresh;
  const auto again = transform->Run(file, probe.info, fresh);
  Check(again.ok() && std::ranges::equal(again->bytes, first));
  // A second transform with the same options must leave the result unchanged.
  if (image->info.format == ImageFormat::kRaw) return 0;
  const auto second = transform->Run(first, image->info, fresh);
  Check(second.ok());
  return 0;
}
