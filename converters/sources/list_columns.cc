#include "converters/sources/list_columns.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "formats/io/escape.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;
using Json = nlohmann::json;

constexpr size_t kMaxTextBytes = 64 << 10;    // of a cell or a text
constexpr size_t kMaxObjectBytes = 16 << 20;  // of a json field
constexpr size_t kNamedColumns = 20;

std::vector<std::string> Names(const std::vector<ColumnField>& fields) {
  std::vector<std::string> names;
  for (const ColumnField& field : fields) names.push_back(field.field);
  return names;
}

absl::Status CheckText(std::string_view column, std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return InvalidArgumentError(StrCat("the column ", EscapeForTerminal(column), " ", why));
  };
  if (text.size() > kMaxTextBytes)
    return refuse(StrCat("has ", text.size(), " bytes; at most ", kMaxTextBytes, " are taken"));
  if (text.find('\0') != text.npos) return refuse("holds a NUL byte");
  for (std::string_view rest = text; !rest.empty();) {
    const size_t bytes = Utf8SequenceLength(rest);
    if (bytes == 0) return refuse("is not UTF-8");
    rest.remove_prefix(bytes);
  }
  return absl::OkStatus();
}

// Checks every text within the value, including member names.
absl::Status CheckTexts(std::string_view column, const Json& value) {
  if (value.is_string()) return CheckText(column, value.get_ref<const std::string&>());
  if (!value.is_structured()) return absl::OkStatus();
  for (const auto& [name, each] : value.items()) {
    absl::Status fits = value.is_object() ? CheckText(column, name) : absl::OkStatus();
    if (fits.ok()) fits = CheckTexts(column, each);
    if (!fits.ok()) return fits;
  }
  return absl::OkStatus();
}

absl::Status NoColumn(std::string_view column) {
  return InvalidArgumentError(StrCat("no column is named ", EscapeForTerminal(column)));
}

absl::Status CheckObject(const std::string& text) {
  if (text.size() <= kMaxObjectBytes) return absl::OkStatus();
  return InvalidArgumentError(StrCat("the json field has ", text.size(), " bytes; at most ",
                                     kMaxObjectBytes, " are taken"));
}

}  // namespace

ListColumns::ListColumns(std::vector<ColumnField> fields)
    : fields_(std::move(fields)), made_(Names(fields_)) {
  for (const ColumnField& field : fields_) takes_all_ = takes_all_ || field.all;
}

std::string ListColumns::SplitColumn() const {
  for (const std::string& column : columns_) {
    const std::string lower = absl::AsciiStrToLower(column);
    const bool reads_so =
        lower == "split" || lower == "subset" || lower == "partition" || lower == "data_split";
    if (reads_so && column != path_ && column != label_) return column;
  }
  return "";
}

bool ListColumns::IsTaken(std::string_view column) const { return taken_.contains(column); }

absl::Status ListColumns::CheckNames(const ListRow& row) {
  if (path_.empty()) {
    path_ = row.path_column;
    label_ = row.label_column;
    taken_ = {path_, label_};
    for (const ColumnField& field : fields_) {
      if (field.field != kJsonColumns) taken_.insert(field.columns.begin(), field.columns.end());
    }
  }
  if (columns_.size() == row.columns.size()) return absl::OkStatus();
  columns_.assign(row.columns.begin(), row.columns.end());
  if (fields_.empty()) return absl::OkStatus();
  std::set<std::string_view> names;
  for (const std::string& name : columns_) {
    if (names.insert(name).second) continue;
    return InvalidArgumentError(
        StrCat("two columns are named ", EscapeForTerminal(name), "; --columns could mean either"));
  }
  return absl::OkStatus();
}

absl::Status ListColumns::Add(const ListRow& row, ListKind kind) {
  const bool cells = kind == ListKind::kCsv || kind == ListKind::kTsv;
  if (!cells && kind != ListKind::kJsonl) return absl::OkStatus();
  absl::Status status = CheckNames(row);
  if (!status.ok() || fields_.empty()) return status;
  return cells ? AddCells(row) : AddMembers(row);
}

absl::Status ListColumns::AddCells(const ListRow& row) {
  const auto find = [&](const std::string& name) -> std::optional<size_t> {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found == columns_.end()) return std::nullopt;
    return static_cast<size_t>(found - columns_.begin());
  };
  for (const ColumnField& field : fields_) {
    Json object = Json::object();
    for (size_t i = 0; i < (field.all ? columns_.size() : field.columns.size()); ++i) {
      if (field.all && IsTaken(columns_[i])) continue;
      const std::string& name = field.all ? columns_[i] : field.columns[i];
      const std::optional<size_t> at = find(name);
      if (!at) return NoColumn(name);
      absl::Status fits = CheckText(name, row.cells[*at]);
      if (fits.ok()) fits = CheckText(name, name);
      if (!fits.ok()) return fits;
      if (field.field == kJsonColumns) {
        object[name] = row.cells[*at];
      } else {
        made_.Add(row.cells[*at]);
      }
    }
    if (field.field != kJsonColumns) continue;
    const std::string text = object.dump();
    RETURN_IF_ERROR(CheckObject(text));
    made_.Add(text);
  }
  return absl::OkStatus();
}

absl::Status ListColumns::AddMembers(const ListRow& row) {
  // ParseList has already parsed it: it is an object, and not nested too deeply.
  const Json line = Json::parse(row.text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) return InvalidArgumentError("not JSON");
  for (const ColumnField& field : fields_) {
    if (field.field == kJsonColumns) {
      Json object = Json::object();
      for (const auto& [name, value] : line.items()) {
        const bool named =
            std::find(field.columns.begin(), field.columns.end(), name) != field.columns.end();
        if (field.all ? IsTaken(name) : !named) continue;
        absl::Status fits = CheckText(name, name);
        if (fits.ok()) fits = CheckTexts(name, value);
        if (!fits.ok()) return fits;
        object[name] = value;
      }
      const std::string text = object.dump();
      RETURN_IF_ERROR(CheckObject(text));
      made_.Add(text);
      continue;
    }
    const std::string& name = field.columns[0];
    const auto found = line.find(name);
    if (found == line.end() || found->is_null()) {
      made_.AddMissing();
      continue;
    }
    if (found->is_structured()) {
      return InvalidArgumentError(StrCat("the member ", EscapeForTerminal(name), " is ",
                                         found->is_array() ? "an array" : "an object",
                                         ", not a text; json=", EscapeForTerminal(name),
                                         " takes it"));
    }
    const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
    RETURN_IF_ERROR(CheckText(name, text));
    made_.Add(text);
  }
  return absl::OkStatus();
}

std::string ListColumns::Describe(const ListOptions& options, bool labels) const {
  if (path_.empty()) return "";
  std::string text = StrCat("columns path=", EscapeForTerminal(path_));
  const std::string label = labels ? label_ : "";
  if (!label.empty()) absl::StrAppend(&text, " label=", EscapeForTerminal(label));
  std::set<std::string_view> named = {path_, label};
  for (const ColumnField& field : fields_) {
    absl::StrAppend(&text, " ", field.field, "=", field.all ? "*" : "");
    for (size_t i = 0; i < field.columns.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",", EscapeForTerminal(field.columns[i]));
      named.insert(field.columns[i]);
    }
  }
  std::string others;
  size_t count = 0;
  for (const std::string& column : columns_) {
    if (takes_all_ || named.contains(column)) continue;
    if (++count <= kNamedColumns)
      absl::StrAppend(&others, others.empty() ? "" : ", ", EscapeForTerminal(column));
  }
  if (count > kNamedColumns) absl::StrAppend(&others, ", ...");
  const bool guessed = options.path.empty() || (options.label.empty() && !label.empty());
  if (others.empty() && !guessed) return "";
  if (!others.empty()) {
    absl::StrAppend(&text, "; not taken: ", others,
                    " (--columns txt=COLUMN takes one as text, json=* all)");
  }
  return text;
}

}  // namespace shardpack
