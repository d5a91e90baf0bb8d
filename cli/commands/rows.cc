#include "cli/commands/rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/terminal/terminal.h"

namespace shardpack::cli {

std::string Rows::Text() const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], std::min(kWidest, DisplayColumns(row[i])));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      if (i > 0) line += "  ";
      const size_t width = DisplayColumns(row[i]);
      const std::string blanks(width < widths[i] ? widths[i] - width : 0, ' ');
      line += columns_[i] == Align::kRight ? blanks + row[i] : row[i] + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string BarOf(double share, size_t width, bool utf8) {
  const auto full = static_cast<size_t>(std::lround(share * static_cast<double>(width)));
  const size_t length = share > 0 ? std::max<size_t>(1, full) : 0;
  std::string bar;
  for (size_t i = 0; i < length; ++i) bar += utf8 ? "\u2588" : "#";
  return bar;
}

std::string Sparkline(const std::vector<uint64_t>& counts, bool utf8) {
  static constexpr std::array<const char*, 8> kBlocks = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                         "\u2585", "\u2586", "\u2587", "\u2588"};
  static constexpr std::array<const char*, 8> kPlain = {".", ".", ":", ":", "+", "+", "#", "#"};
  const uint64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::string line;
  for (const uint64_t count : counts) {
    // 8 heights; only 0 is blank.
    const auto height = static_cast<size_t>(std::ceil(
        8 * static_cast<double>(count) / static_cast<double>(std::max<uint64_t>(1, most))));
    line += height == 0 ? " " : (utf8 ? kBlocks : kPlain)[height - 1];
  }
  return line;
}

}  // namespace shardpack::cli
