// CsvReader: reads a csv or tsv file record by record, split into cells.
//
//   CsvReader csv(text, ',');
//   while (csv.Next()) Use(csv.line(), csv.cells());
//   if (!csv.error().empty()) ...
//
// RFC 4180, strictly: a cell may be quoted, a quote inside is doubled, only the separator or the
// line end follows the closing quote, and a quote inside an unquoted cell is an error. Line ends
// are LF or CRLF. A tab as the separator means tsv, where quotes are ordinary characters.
//
// Lifetime: borrows the text; cells are valid until the next call.
// Thread-safety: one caller at a time.
// Errors: `error` describes the bad record at which reading stopped.
// Memory: one record's cells.
#ifndef SHARDPACK_CONVERTERS_SOURCES_CSV_RECORD_H_
#define SHARDPACK_CONVERTERS_SOURCES_CSV_RECORD_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

class CsvReader {
 public:
  CsvReader(std::string_view text, char separator) : left_(text), separator_(separator) {}

  // False at the end and on an error.
  bool Next();
  std::span<const std::string> cells() const { return std::span(cells_).first(count_); }
  uint64_t line() const { return line_; }              // where the record begins, from 1
  std::string_view record() const { return record_; }  // its text, without the line end
  std::string_view error() const { return error_; }    // empty if there is none

 private:
  bool ReadCell(std::string& cell);
  bool ReadQuoted(std::string& cell);
  bool Fail(std::string_view why);

  std::string_view left_, record_, error_;
  const char separator_;
  uint64_t line_ = 0, next_line_ = 1;
  std::vector<std::string>
      cells_;  // reused, to keep their memory; the first count_ belong to this record
  size_t count_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_CSV_RECORD_H_
