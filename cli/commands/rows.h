// Rows: a table for people, in columns as wide as their widest cells.
//
//   Rows rows({Align::kLeft, Align::kRight});
//   rows.Add({"class", "samples"});
//   rows.Add({"cat", "1,200"});
//   results.Write(rows.Text());
//
// Cells are for a terminal: the caller escapes their harmful characters.
//
// Lifetime: owns its cells.
// Thread-safety: one caller at a time.
// Errors: none; a row may have fewer cells than there are columns.
// Units: columns of the terminal.
#ifndef SHARDPACK_CLI_COMMANDS_ROWS_H_
#define SHARDPACK_CLI_COMMANDS_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardpack::cli {

enum class Align : uint8_t { kLeft, kRight };

class Rows {
 public:
  explicit Rows(std::vector<Align> columns) : columns_(std::move(columns)) {}
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string Text() const;  // no blanks at the ends of lines

 private:
  // A longer cell is kept, and moves those after it.
  static constexpr size_t kWidest = 48;
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A bar of `share` (0 to 1) of this width; not empty if the share is above 0.
std::string BarOf(double share, size_t width, bool utf8);
// One character per count, as high as the count: a histogram in a line.
std::string Sparkline(const std::vector<uint64_t>& counts, bool utf8);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_ROWS_H_
