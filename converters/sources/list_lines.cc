#include "converters/sources/list_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "converters/listing/text_marks.h"
#include "converters/sources/csv_record.h"
#include "converters/sources/list_json_row.h"
#include "converters/sources/list_names.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using RowSink = std::function<absl::Status(const ListRow&)>;

constexpr size_t kShownBytes = 200;  // of a bad line
constexpr size_t kMaxNumberDigits = 8;

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool IsColumnNumber(std::string_view text) {
  return IsDigits(text) && text.size() <= kMaxNumberDigits;
}

// Named columns require a header; numbered ones exclude it.
absl::Status CheckColumns(const ListOptions& options) {
  std::vector<const std::string*> columns = {&options.path, &options.label};
  for (const ColumnField& field : options.fields) {
    for (const std::string& column : field.columns) columns.push_back(&column);
  }
  for (const std::string* column : columns) {
    if (!IsDigits(*column) || IsColumnNumber(*column)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--columns: the number ", EscapeForTerminal(*column),
                     " is too large for a column (columns are counted from 0)"));
  }
  if (!IsColumnNumber(options.path)) return absl::OkStatus();
  for (const std::string* column : columns) {
    if (column->empty() || IsColumnNumber(*column)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--columns path=", options.path, " and ", EscapeForTerminal(*column),
        ": a number and a name; give all as numbers (a file without a header) or as names"));
  }
  return absl::OkStatus();
}

size_t ToNumber(std::string_view text) {
  size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Lines end with LF or CRLF, which is not part of them.
template <typename OnLine>
absl::Status ForEachLine(std::string_view text, char end_mark, OnLine on_line) {
  for (uint64_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find(end_mark);
    std::string_view each = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (end_mark == '\n' && each.ends_with('\r')) each.remove_suffix(1);
    RETURN_IF_ERROR(on_line(line, each));
  }
  return absl::OkStatus();
}

class ListParser {
 public:
  ListParser(const ListOptions& options, std::string_view file_name, const RowSink& on_row)
      : options_(options), file_name_(file_name), on_row_(on_row) {}

  absl::Status Parse(std::string_view text) {
    if (BeginsWithUtf16Mark(text)) {
      return BadLine(file_name_, 1, "the file is UTF-16; lists are taken as UTF-8", "");
    }
    text = WithoutByteOrderMark(text);
    const bool by_nul =
        options_.kind == ListKind::kPaths && text.find('\0') != std::string_view::npos;
    if (!by_nul) {
      const size_t end = text.find_last_not_of("\r\n");
      text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
    }
    switch (options_.kind) {
      case ListKind::kCsv:
        return ParseCells(text, ',');
      case ListKind::kTsv:
        return ParseCells(text, '\t');
      default:
        return ForEachLine(text, by_nul ? '\0' : '\n', [&](uint64_t line, std::string_view each) {
          return ParseLine(line, each);
        });
    }
  }

 private:
  absl::Status ParseLine(uint64_t line, std::string_view text) {
    row_ = {.line = line,
            .text = text,
            .path = {},
            .label = std::nullopt,
            .path_column = {},
            .label_column = {}};
    if (text.find('\0') != std::string_view::npos) return Bad("a NUL byte");
    if (text.empty()) return Bad("an empty line");
    switch (options_.kind) {
      case ListKind::kLst:
        return ParseLst(text);
      case ListKind::kText:
        return ParseText(text);
      case ListKind::kJsonl:
        return ParseJson(text);
      default:
        row_.path = text;
        return Emit();
    }
  }

  absl::Status ParseLst(std::string_view text) {
    const size_t first = text.find('\t'), last = text.rfind('\t');
    if (first == std::string_view::npos || first == last)
      return Bad("expected index TAB label TAB path");
    const std::string_view index = text.substr(0, first),
                           label = text.substr(first + 1, last - first - 1);
    if (!IsColumnNumber(index) && (index.size() > 19 || index.empty() ||
                                   index.find_first_not_of("0123456789") != index.npos)) {
      return Bad("the index is not a number");
    }
    if (label.find('\t') != std::string_view::npos) return Bad("more than one label; one is taken");
    if (label.empty()) return Bad("the label is empty");
    row_.label = label;
    row_.path = text.substr(last + 1);
    return Emit();
  }

  absl::Status ParseText(std::string_view text) {
    const size_t last = text.find_last_of(" \t");
    if (last == std::string_view::npos) {
      row_.path = text;
      return Emit();
    }
    const size_t end = text.find_last_not_of(" \t", last);
    if (last + 1 == text.size())
      return Bad("nothing follows the blank at its end, where the label is expected");
    if (end == std::string_view::npos) return Bad("a label without a path");
    row_.path = text.substr(0, end + 1);
    row_.label = text.substr(last + 1);
    return Emit();
  }

  absl::Status ParseCells(std::string_view text, char separator) {
    RETURN_IF_ERROR(CheckColumns(options_));
    CsvReader csv(text, separator);
    const bool numbers = IsColumnNumber(options_.path);
    bool header = !numbers;
    std::optional<size_t> path, label;
    if (numbers) path = ToNumber(options_.path);
    if (numbers && !options_.label.empty()) label = ToNumber(options_.label);
    if (numbers) path_column_ = options_.path;
    if (label) label_column_ = options_.label;
    while (csv.Next()) {
      row_ = {.line = csv.line(),
              .text = csv.record(),
              .path = {},
              .label = std::nullopt,
              .path_column = path_column_,
              .label_column = label_column_};
      if (row_.text.find('\0') != std::string_view::npos) return Bad("a NUL byte");
      if (header) {
        header = false;
        TakeHeader(csv.cells());
        RETURN_IF_ERROR(FindColumns(column_names_, &path, &label));
        path_column_ = column_names_[*path];
        if (label) label_column_ = column_names_[*label];
        continue;
      }
      const std::span<const std::string> cells = Trimmed(csv.cells());
      if (column_names_.empty()) {
        for (size_t i = 0; i < cells.size(); ++i) column_names_.push_back(absl::StrCat(i));
      }
      if (row_.text.empty()) return Bad("an empty line");
      if (cells.size() != column_names_.size()) {
        return Bad(
            absl::StrCat(cells.size(), " columns, the first line has ", column_names_.size()));
      }
      if (*path >= cells.size() || (label && *label >= cells.size())) {
        return Bad(absl::StrCat("there is no column ", std::max(*path, label.value_or(0)),
                                " (columns are counted from 0)"));
      }
      row_.path = cells[*path];
      if (label) row_.label = cells[*label];
      row_.path_column = column_names_[*path];
      if (label) row_.label_column = column_names_[*label];
      row_.columns = column_names_;
      row_.cells = cells;
      row_.trimmed = trimmed_names_;
      if (label && cells[*label].empty() && !options_.empty_labels) return Bad(EmptyLabel("empty"));
      RETURN_IF_ERROR(Emit());
    }
    if (csv.error().empty()) return absl::OkStatus();
    return BadLine(file_name_, csv.line(), csv.error(), csv.record());
  }

  void TakeHeader(std::span<const std::string> cells) {
    for (const std::string& cell : cells) {
      std::string& name = column_names_.emplace_back(cell);
      absl::StripAsciiWhitespace(&name);
      trims_.push_back(name != cell);
      if (name != cell) trimmed_names_.push_back(cell);
    }
  }

  // The cells, without blanks around those of columns whose name has blanks around it.
  std::span<const std::string> Trimmed(std::span<const std::string> cells) {
    if (trimmed_names_.empty()) return cells;
    trimmed_cells_.assign(cells.begin(), cells.end());
    for (size_t i = 0; i < std::min(cells.size(), trims_.size()); ++i) {
      if (trims_[i]) absl::StripAsciiWhitespace(&trimmed_cells_[i]);
    }
    return trimmed_cells_;
  }

  // Why the header has no column of that name; "" = no column is named path.
  std::string NoColumn(std::span<const std::string> cells, const std::string& name) const {
    if (cells.size() == 1 && cells[0].find('\t') != std::string::npos)
      return "the columns are divided by tabs: --input-format tsv takes those";
    if (cells.size() == 1 && cells[0].find(';') != std::string::npos) {
      return "the columns are divided by semicolons, which are not taken; write the file with "
             "commas";
    }
    if (!name.empty()) return absl::StrCat("no column is named ", EscapeForTerminal(name));
    return "no column is named path; --columns path=NAME says which one it is, or path=0 for a "
           "file without a header";
  }

  absl::Status FindColumns(std::span<const std::string> cells, std::optional<size_t>* path,
                           std::optional<size_t>* label) const {
    UsualName usual_path(kPathNames), usual_label(kLabelNames);
    std::string path_name = options_.path, label_name = options_.label;
    absl::StripAsciiWhitespace(&path_name);
    absl::StripAsciiWhitespace(&label_name);
    for (size_t i = 0; i < cells.size(); ++i) {
      if (options_.path.empty() ? usual_path.Beats(cells[i]) : cells[i] == path_name) *path = i;
      if (options_.label.empty() ? usual_label.Beats(cells[i]) : cells[i] == label_name) *label = i;
    }
    if (!*path) {
      return Bad(NoColumn(cells, options_.path));
    }
    if (!*label && !options_.label.empty()) {
      return Bad(absl::StrCat("no column is named ", EscapeForTerminal(options_.label)));
    }
    for (const std::optional<size_t>& used : {*path, *label}) {
      if (!used) continue;
      const auto first = std::find(cells.begin(), cells.end(), cells[*used]);
      const auto other = std::find(first + 1, cells.end(), cells[*used]);
      if (other == cells.end()) continue;
      return Bad(absl::StrCat("the columns ", first - cells.begin() + 1, " and ",
                              other - cells.begin() + 1, " are both named ",
                              EscapeForTerminal(cells[*used]), "; rename one of them"));
    }
    return absl::OkStatus();
  }

  absl::Status ParseJson(std::string_view text);

  absl::Status Emit() {
    if (row_.path.empty()) return Bad("the path is empty");
    if (row_.path.find('\0') != std::string_view::npos) return Bad("a NUL byte in the path");
    return on_row_(row_);
  }
  absl::Status Bad(std::string_view why) const {
    return BadLine(file_name_, row_.line, why, row_.text);
  }

  const ListOptions& options_;
  const std::string_view file_name_;
  const RowSink& on_row_;
  ListRow row_;
  std::string path_column_, label_column_;
  std::vector<std::string> column_names_;
  std::vector<std::string> trimmed_names_, trimmed_cells_;  // names as in the header
  std::vector<bool> trims_;                                 // per column
};

absl::Status ListParser::ParseJson(std::string_view text) {
  const JsonListRow row = ParseJsonRow(text, options_, column_names_);
  if (!row.error.empty()) return Bad(row.error);
  row_.path = *row.path;
  row_.path_column = row.path_name;
  if (row.label) row_.label = *row.label;
  if (row.label) row_.label_column = row.label_name;
  row_.columns = column_names_;
  return Emit();
}

}  // namespace

absl::Status ParseColumns(std::string_view text, ListOptions* options) {
  const auto refuse = [] {
    return absl::InvalidArgumentError(
        "expected path=COLUMN, label=COLUMN, txt=COLUMN, json=COLUMN,... or json=*, as in "
        "path=file,label=class,txt=caption,json=*");
  };
  ColumnField* list = nullptr;  // where a word without "=" is added
  std::set<std::string_view> named;
  options->fields.clear();
  options->fields.reserve(2);
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
    const size_t equals = part.find('=');
    const std::string_view what = part.substr(0, equals);
    if (equals == part.npos) {
      if (list == nullptr || list->all || part.empty()) return refuse();
      list->columns.emplace_back(part);
      continue;
    }
    const std::string column(part.substr(equals + 1));
    if (column.empty()) return refuse();
    list = nullptr;
    if (what == "path" || what == "label") {
      if (!named.insert(what).second) return refuse();
      (what == "path" ? options->path : options->label) = column;
      continue;
    }
    if (what != "txt" && what != kJsonColumns) return refuse();
    for (const ColumnField& field : options->fields) {
      if (field.field == what) return refuse();
    }
    ColumnField field{.field = std::string(what)};
    field.all = what == kJsonColumns && column == "*";
    if (!field.all) field.columns.push_back(column);
    options->fields.push_back(std::move(field));
    if (what == kJsonColumns) list = &options->fields.back();
  }
  return absl::OkStatus();
}

bool IsPathHeader(std::string_view path) {
  static constexpr std::array<std::string_view, 5> kMore = {"img", "img_path", "image_id",
                                                            "image_name", "imagepath"};
  std::string lower = absl::AsciiStrToLower(std::string(path));
  absl::StripAsciiWhitespace(&lower);
  return std::find(kPathNames.begin(), kPathNames.end(), lower) != kPathNames.end() ||
         std::find(kMore.begin(), kMore.end(), lower) != kMore.end();
}

absl::Status BadLine(std::string_view file_name, uint64_t line, std::string_view why,
                     std::string_view text) {
  text = text.substr(0, text.find('\0'));  // what follows is not text
  const std::string shown = EscapeForTerminal(text.substr(0, kShownBytes));
  return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(file_name), ":", line, ": ",
                                                 std::string(why), shown.empty() ? "" : ": ", shown,
                                                 text.size() > kShownBytes ? "..." : ""));
}

absl::Status ParseList(std::string_view text, const ListOptions& options,
                       std::string_view file_name, const RowSink& on_row) {
  return ListParser(options, file_name, on_row).Parse(text);
}

}  // namespace shardpack
