// ParseJsonRow: path and label from one line of a jsonl list.
//
//   std::vector<std::string> members;
//   const JsonListRow row = ParseJsonRow(R"({"path": "a.jpg", "label": 1})", options, members);
//
// Errors: `error`; the line is only checked beyond path and label.
// Memory: nesting is bounded.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LIST_JSON_ROW_H_
#define SHARDPACK_CONVERTERS_SOURCES_LIST_JSON_ROW_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/sources/list_lines.h"

namespace shardpack {

struct JsonListRow {
  std::string error = {};                  // why the line is bad; "" if it is not
  std::optional<std::string> path, label;  // without an error there is a path
  std::string path_name, label_name;       // names of their members
};

// Adds new members of the line to `members`, up to 1000.
JsonListRow ParseJsonRow(std::string_view text, const ListOptions& options,
                         std::vector<std::string>& members);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_JSON_ROW_H_
