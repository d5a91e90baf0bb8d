// Any bytes as run lengths: the first two are the size. An error, or a mask that paints as many
// pixels as it says, and nothing elsewhere.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "augment/geometry/run_lengths.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;
  if (size < 2) return 0;
  const uint32_t height = data[0], width = data[1];
  const auto mask =
      ParseRunLengths({reinterpret_cast<const char*>(data) + 2, size - 2}, height, width);
  if (!mask.ok()) return 0;
  std::vector<uint8_t> map(size_t{height} * width, 0);
  Paint(*mask, 1, map);
  const auto inside = std::count(map.begin(), map.end(), uint8_t{1});
  if (static_cast<uint64_t>(inside) != AreaOf(*mask)) std::abort();
  const PixelBox hull = HullOf(*mask);
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      if (map[y * width + x] == 1 &&
          (x < hull.left || x >= hull.right || y < hull.top || y >= hull.bottom)) {
        std::abort();
      }
    }
  }
  return 0;
}
