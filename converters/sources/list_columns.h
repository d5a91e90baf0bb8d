// ListColumns: makes fields from columns of a list: one column as text, several as a json object.
//
//   ListColumns columns(
//       {{.field = "txt", .columns = {"caption"}}, {.field = "json", .all = true}});
//   absl::Status added = columns.Add(row, ListKind::kCsv);   // for each row of ParseList
//   MadeFields made = columns.TakeMade();
//   made.AppendTo(listing);
//
// Text is the cell's bytes. A json object is one line without blanks, its members sorted; a cell of
// csv or tsv becomes a string, a member of jsonl keeps its type. A member that is null or missing
// gives no text.
//
// Thread-safety: one caller at a time; const from any thread.
// Errors: InvalidArgument with the reason only; the caller adds file and line.
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

  // "columns path=file label=class txt=caption; not taken: age, source"; "" if the user has named
  // all of them, and for lists without columns. `labels`: whether labels come from the list.
  std::string Describe(const ListOptions& options, bool labels) const;

  // A column whose name suggests the samples' splits, and that is neither path nor label; "" if
  // none.
  std::string SplitColumn() const;

 private:
  absl::Status AddCells(const ListRow& row);
  absl::Status AddMembers(const ListRow& row);
  absl::Status CheckNames(const ListRow& row);
  bool IsTaken(std::string_view column) const;

  const std::vector<ColumnField> fields_;
  MadeFields made_;
  bool takes_all_ = false;
  std::set<std::string, std::less<>> taken_;  // used for path, label and text
  std::vector<std::string> columns_;          // in list order
  std::string path_, label_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_COLUMNS_H_
