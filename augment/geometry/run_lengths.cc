#include "augment/geometry/run_lengths.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

// Calls `run(first, count)` for each run of pixels inside, numbered column after column.
template <typename Run>
void ForEachInside(const RunLengths& mask, const Run& run) {
  uint64_t at = 0;
  for (size_t i = 0; i < mask.counts.size(); ++i) {
    if (i % 2 == 1 && mask.counts[i] > 0) run(at, uint64_t{mask.counts[i]});
    at += mask.counts[i];
  }
}

// One number of the text, from `at` on; false if there is none.
bool TakeNumber(std::string_view text, size_t& at, int64_t& number) {
  number = 0;
  for (int shift = 0; shift < 40; shift += 5) {
    if (at == text.size()) return false;
    const int bits = static_cast<unsigned char>(text[at]) - '0';
    if (bits < 0 || bits > 63) return false;
    ++at;
    number |= int64_t{bits & 31} << shift;
    if ((bits & 32) != 0) continue;
    if ((bits & 16) != 0) number -= int64_t{1} << (shift + 5);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<RunLengths> CheckedRunLengths(std::vector<uint32_t> counts, uint32_t height,
                                             uint32_t width) {
  const uint64_t pixels = uint64_t{height} * width;
  uint64_t sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    sum += counts[i];
    if (sum > pixels) {
      return absl::InvalidArgumentError(absl::StrCat("run lengths: count ", i, " leads beyond the ",
                                                     width, " x ", height, " pixels of the mask"));
    }
  }
  if (sum != pixels) {
    return absl::InvalidArgumentError(
        absl::StrCat("run lengths: they are of ", sum, " pixels, not ", width, " x ", height));
  }
  return RunLengths{height, width, std::move(counts)};
}

absl::StatusOr<RunLengths> ParseRunLengths(std::string_view text, uint32_t height, uint32_t width) {
  std::vector<uint32_t> counts;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = at;
    int64_t count = 0;
    const bool is_number = TakeNumber(text, at, count);
    if (is_number && counts.size() > 2) count += counts[counts.size() - 2];
    if (!is_number || count < 0 || count > UINT32_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat("run lengths: the text has no count at character ", begin));
    }
    counts.push_back(static_cast<uint32_t>(count));
  }
  return CheckedRunLengths(std::move(counts), height, width);
}

uint64_t AreaOf(const RunLengths& mask) {
  uint64_t area = 0;
  ForEachInside(mask, [&](uint64_t, uint64_t count) { area += count; });
  return area;
}

PixelBox HullOf(const RunLengths& mask) {
  uint64_t left = mask.width, right = 0, top = mask.height, bottom = 0;
  ForEachInside(mask, [&](uint64_t first, uint64_t count) {
    const uint64_t last = first + count - 1;
    left = std::min(left, first / mask.height);
    right = std::max(right, last / mask.height + 1);
    const bool one_column = first / mask.height == last / mask.height;
    top = std::min(top, one_column ? first % mask.height : 0);
    bottom = std::max(bottom, one_column ? last % mask.height + 1 : mask.height);
  });
  if (right == 0) return {};
  return {double(left), double(top), double(right), double(bottom)};
}

void Paint(const RunLengths& mask, uint8_t label, std::span<uint8_t> map) {
  ForEachInside(mask, [&](uint64_t first, uint64_t count) {
    uint64_t x = first / mask.height, y = first % mask.height;
    for (uint64_t i = 0; i < count; ++i) {
      map[y * mask.width + x] = label;
      if (++y == mask.height) {
        y = 0;
        ++x;
      }
    }
  });
}

}  // namespace shardpack
