#include "converters/sources/csv_record.h"

#include <algorithm>

namespace shardpack {

bool CsvReader::Fail(std::string_view why) {
  error_ = why;
  record_ = record_.substr(0, std::min(record_.find('\n'), record_.size()));
  return false;
}

bool CsvReader::Next() {
  count_ = 0;
  if (left_.empty() || !error_.empty()) return false;
  line_ = next_line_;
  record_ = left_;
  for (;;) {
    if (count_ == cells_.size()) cells_.emplace_back();
    if (!ReadCell(cells_[count_])) return false;
    ++count_;
    if (!left_.starts_with(separator_)) break;
    left_.remove_prefix(1);
  }
  record_ = record_.substr(0, record_.size() - left_.size());
  if (left_.starts_with('\r')) left_.remove_prefix(1);
  if (left_.starts_with('\n')) left_.remove_prefix(1);
  ++next_line_;
  return true;
}

bool CsvReader::ReadCell(std::string& cell) {
  if (separator_ != '\t' && left_.starts_with('"')) return ReadQuoted(cell);
  size_t end = 0;
  while (end < left_.size() && left_[end] != separator_ && left_[end] != '\n') {
    if (left_[end] == '"' && separator_ != '\t')
      return Fail("a quote inside a cell that does not begin with one");
    ++end;
  }
  size_t bytes = end;
  // Strips the CR of CRLF; a lone CR is part of the text.
  if (bytes > 0 && left_[bytes - 1] == '\r' && (end == left_.size() || left_[end] == '\n')) --bytes;
  cell.assign(left_.substr(0, bytes));
  left_.remove_prefix(bytes);
  return true;
}

bool CsvReader::ReadQuoted(std::string& cell) {
  cell.clear();
  left_.remove_prefix(1);
  for (;;) {
    const size_t quote = left_.find('"');
    if (quote == std::string_view::npos) return Fail("a quoted cell that does not end");
    const std::string_view part = left_.substr(0, quote);
    next_line_ += static_cast<uint64_t>(std::count(part.begin(), part.end(), '\n'));
    cell.append(part);
    left_.remove_prefix(quote + 1);
    if (!left_.starts_with('"')) break;
    cell.push_back('"');
    left_.remove_prefix(1);
  }
  const bool ends = left_.empty() || left_.starts_with(separator_) || left_.starts_with('\n') ||
                    left_.starts_with("\r\n") || left_ == "\r";
  return ends || Fail("something follows the closing quote of a cell");
}

}  // namespace shardpack
