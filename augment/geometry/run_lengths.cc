#include "augment/geometry/run_lengths.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

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

}  // namespace shardpack
