// Any bytes as run lengths: the first two are the size. An error, or runs that ascend within the
// mask.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "augment/geometry/run_lengths.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;
  if (size < 2) return 0;
  const uint32_t height = data[0], width = data[1];
  const auto mask =
      ParseRunLengths({reinterpret_cast<const char*>(data) + 2, size - 2}, height, width);
  if (!mask.ok()) return 0;
  uint64_t last = 0;
  ForEachRun(*mask, [&](uint64_t begin, uint64_t end) {
    if (begin < last || end <= begin) std::abort();
    last = end;
  });
  if (last > uint64_t{height} * width) std::abort();
  return 0;
}
