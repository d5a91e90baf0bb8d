// ParseList: parses a list of images: each line has a path, and a label if the list has labels.
//
//   absl::Status parsed = ParseList(text, {.kind = ListKind::kCsv}, "train.csv", on_row);
//   // on_row(row) sees row.line, row.path, row.label, row.columns
//
// Kinds: `lst` index TAB label TAB path (MXNet's im2rec, with labels like 3.000000); `text` path
// SPACE label (Caffe; the label follows the last blank); `paths` one path per line, or terminated
// by NUL; csv (RFC 4180: quotes, doubled quotes, line ends inside quotes) and tsv (no quotes) with
// a header line, unless columns are given by number; jsonl. A byte order mark, CRLF and trailing
// empty lines are allowed.
//
// Lifetime: a row's texts are valid during the call.
// Thread-safety: a pure function.
// Errors: InvalidArgument "FILE:LINE: why: the text of the line", and errors of the callback.
// Memory: one line.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LIST_LINES_H_
#define SHARDPACK_CONVERTERS_SOURCES_LIST_LINES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace shardpack {

enum class ListKind : uint8_t { kLst, kText, kPaths, kCsv, kTsv, kJsonl };

// The field made from several columns.
inline constexpr std::string_view kJsonColumns = "json";

// A sample field made from columns: "txt" is one column's text, kJsonColumns an object.
struct ColumnField {
  std::string field;
  std::vector<std::string> columns = {};
  bool all = false;  // every column that is not used elsewhere
};

struct ListOptions {
  ListKind kind = ListKind::kText;
  // For csv and tsv: a name in the header or a number from 0; for jsonl: a member. "" = the usual
  // names.
  std::string path = {}, label = {};
  std::vector<ColumnField> fields = {};
  // For csv, tsv and jsonl: an empty label, or null, means a sample without one; else it is an
  // error.
  bool empty_labels = false;
};

// Parses "path=file,label=class,txt=caption,json=a,b" or "json=*" into `options`.
absl::Status ParseColumns(std::string_view text, ListOptions* options);

struct ListRow {
  uint64_t line = 0;      // number of its first line, from 1
  std::string_view text;  // the line, for messages
  std::string_view path;
  std::optional<std::string_view> label;
  // For csv, tsv and jsonl: the columns of path and label, by name or number; "" for none.
  std::string_view path_column = {}, label_column = {};
  // All columns: those of the header, or their numbers; for jsonl the first 1000 members of this
  // and earlier lines.
  std::span<const std::string> columns = {};
  std::span<const std::string> cells = {};  // of csv and tsv, one per column
  // Columns of csv and tsv whose names have blanks around them: these blanks are dropped, and those
  // around their cells too.
  std::span<const std::string> trimmed = {};
};

absl::Status ParseList(std::string_view text, const ListOptions& options,
                       std::string_view file_name,
                       const std::function<absl::Status(const ListRow& row)>& on_row);

// Whether this path is a header: "path", "Filename", "image" and similar words in the first line.
bool IsPathHeader(std::string_view path);

// "FILE:LINE: why: the text of the line".
absl::Status BadLine(std::string_view file_name, uint64_t line, std::string_view why,
                     std::string_view text);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_LINES_H_
