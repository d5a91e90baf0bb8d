// ListColumns: columns of a list as fields of its samples: one as text, several as a json object.
//
//   ListColumns columns({{.field = "txt", .columns = {"caption"}}, {.field = "json", .all = true}});
//   absl::Status added = columns.Add(row, ListKind::kCsv);   // for each row of ParseList
//   MadeFields made = columns.TakeMade();
//   made.AppendTo(listing);
//
// Text is the cell's bytes. A json object is on one line without blanks, its members sorted; a cell
// of csv and tsv is a string there, and a member of jsonl the value that it is. A member that is
// null, or not there, gives no text.
//
// Thread-safety: one caller; const from any thread.
// Errors: InvalidArgument with the reason alone, for the caller to add file and line.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LIST_COLUMNS_H_
#define SHARDPACK_CONVERTERS_SOURCES_LIST_COLUMNS_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "converters/listing/made_fields.h"
#include "converters/sources/list_lines.h"

namespace shardpack {

class ListColumns {
 public:
  explicit ListColumns(std::vector<ColumnField> fields);

  absl::Status Add(const ListRow& row, ListKind kind);
  MadeFields TakeMade() { return std::move(made_); }

  // "columns path=file label=class txt=caption; not taken: age, source"; "" when the user has named
  // all of them, and for lists without columns. `labels`: whether they come from the list.
  std::string Describe(const ListOptions& options, bool labels) const;

  // The column that reads like the splits of the samples, and is neither path nor label; "" when
  // there is none.
  std::string SplitColumn() const;

 private:
  absl::Status AddCells(const ListRow& row);
  absl::Status AddMembers(const ListRow& row);
  absl::Status CheckNames(const ListRow& row);
  bool IsTaken(std::string_view column) const;

  const std::vector<ColumnField> fields_;
  MadeFields made_;
  bool takes_all_ = false;
  std::set<std::string, std::less<>> taken_;  // by path, label and text
  std::vector<std::string> columns_;          // in the order of the list
  std::string path_, label_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_COLUMNS_H_
