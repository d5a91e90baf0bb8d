// ParseList: the lines of a list of images: a path each, and a label where the list has one.
//
//   absl::Status parsed = ParseList(text, {.kind = ListKind::kCsv}, "train.csv", on_row);
//   // on_row(row) sees row.line, row.path, row.label, row.columns
//
// Kinds: `lst` index TAB label TAB path (MXNet's im2rec, whose labels are written as 3.000000);
// `text` path SPACE label (Caffe; the label follows the last blank); `paths` one path a line, or
// ended by NUL; csv (RFC 4180: quotes, quotes doubled inside, line ends inside) and tsv (no quotes)
// with a header line, unless columns are given by number; jsonl. A byte order mark, CRLF and empty
// lines at the end are fine.
//
// Lifetime: a row's texts are valid during the call.
// Thread-safety: a pure function.
// Errors: InvalidArgument "FILE:LINE: why: the text of the line", and whatever the callback
// answers.
// Memory: one line's.
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

// The field that is made of several columns.
inline constexpr std::string_view kJsonColumns = "json";

// A field of the samples that columns give: "txt" is one column's text, kJsonColumns an object.
struct ColumnField {
  std::string field;
  std::vector<std::string> columns = {};
  bool all = false;  // every column that nothing else takes
};

struct ListOptions {
  ListKind kind = ListKind::kText;
  // Of csv and tsv: a name of the header or a number from 0; of jsonl: a member. "" = the usual
  // names.
  std::string path = {}, label = {};
  std::vector<ColumnField> fields = {};
  // Of csv, tsv and jsonl: an empty label, or null, is that of a sample without one; else an error.
  bool empty_labels = false;
};

// "path=file,label=class,txt=caption,json=a,b" or "json=*" into `options`.
absl::Status ParseColumns(std::string_view text, ListOptions* options);

struct ListRow {
  uint64_t line = 0;      // from 1, of its first line
  std::string_view text;  // the line, for messages
  std::string_view path;
  std::optional<std::string_view> label;
  // Of csv, tsv and jsonl: where path and label stand, by name or number; "" for none.
  std::string_view path_column = {}, label_column = {};
  // All columns: those of the header or their numbers; of jsonl the members of this line and those
  // before, the first 1000.
  std::span<const std::string> columns = {};
  std::span<const std::string> cells = {};  // of csv and tsv, one a column
  // The columns of csv and tsv whose names have blanks around them: these are dropped, and those
  // around their cells.
  std::span<const std::string> trimmed = {};
};

absl::Status ParseList(std::string_view text, const ListOptions& options,
                       std::string_view file_name,
                       const std::function<absl::Status(const ListRow& row)>& on_row);

// Whether the first line of a list says so of its paths: "path", "Filename", "image" and the like.
bool IsPathHeader(std::string_view path);

// "FILE:LINE: why: the text of the line".
absl::Status BadLine(std::string_view file_name, uint64_t line, std::string_view why,
                     std::string_view text);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_LINES_H_
