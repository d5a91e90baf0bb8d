#include "converters/sources/list_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "converters/listing/hidden_entries.h"
#include "converters/listing/path_filter.h"
#include "converters/sources/folder_access.h"
#include "converters/sources/folder_meaning.h"
#include "converters/sources/list_columns.h"
#include "converters/sources/list_labels.h"
#include "converters/sources/listed_files.h"
#include "formats/io/file.h"
#include "formats/io/list_folder.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr uint64_t kMaxListBytes = uint64_t{16} << 30;
constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kMaxEntries = 100'000;

absl::StatusOr<std::string> ReadStandardInput() {
  std::string text;
  for (;;) {
    const size_t at = text.size();
    text.resize(at + kReadBytes);
    const ssize_t got = ::read(STDIN_FILENO, text.data() + at, kReadBytes);
    if (got < 0 && errno != EINTR) return IoStatus("read", "standard input", errno);
    text.resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    if (text.size() > kMaxListBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("the list on standard input has more than ", kMaxListBytes, " bytes"));
    }
  }
}

absl::StatusOr<std::string> ReadList(const std::string& list) {
  if (list == "-") return ReadStandardInput();
  absl::StatusOr<std::string> text = ReadWholeFile(list, kMaxListBytes);
  if (absl::IsNotFound(text.status()) || absl::IsOutOfRange(text.status())) {
    return absl::InvalidArgumentError(text.status().message());
  }
  return text;
}

// Collects the rows of a list.
class Rows {
 public:
  Rows(const std::string& root, std::string_view file_name, bool wants_labels,
       const ListOptions& format)
      : columns(format.fields),
        file_name_(file_name),
        wants_labels_(wants_labels),
        kind_(format.kind) {
    listing.root = root;
  }

  absl::Status Add(const ListRow& row) {
    const absl::StatusOr<std::string> path = PathBelowRoot(row.path, listing.root);
    if (!path.ok())
      return BadLine(file_name_, row.line, std::string(path.status().message()), row.text);
    const size_t slash = path->rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path->substr(0, slash);
    const auto [known, added] =
        folders_.try_emplace(folder, static_cast<uint32_t>(listing.folders.size()));
    if (added) listing.folders.push_back(folder);
    listing.folder.push_back(known->second);
    listing.names.append(slash == std::string::npos ? *path : path->substr(slash + 1));
    listing.name_ends.push_back(listing.names.size());
    lines_.push_back(row.line);
    const absl::Status taken = columns.Add(row, kind_);
    if (!taken.ok()) return BadLine(file_name_, row.line, std::string(taken.message()), row.text);
    path_column = row.path_column;
    if (trimmed.empty()) trimmed.assign(row.trimmed.begin(), row.trimmed.end());
    label_column = row.label_column;
    if (!wants_labels_) return absl::OkStatus();
    if (row.label && row.label->empty()) labels.AddNone();
    if (row.label && !row.label->empty()) labels.Add(row.line, *row.label);
    if (labels.rows() != 0 && labels.rows() != lines_.size()) {
      return BadLine(file_name_, row.line,
                     row.label ? "a label, where the lines before have none"
                               : "no label, where the lines before have one",
                     row.text);
    }
    return absl::OkStatus();
  }

  // A repeated path would give two samples with the same name.
  absl::Status CheckUnique() const {
    std::vector<uint32_t> rows(lines_.size());
    std::iota(rows.begin(), rows.end(), uint32_t{0});
    const auto place = [&](uint32_t row) {
      return std::pair(listing.folder[row], listing.Name(row));
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](uint32_t a, uint32_t b) { return place(a) < place(b); });
    uint32_t first = 0, second = 0;  // the second one that comes first in the list
    for (size_t i = 1; i < rows.size(); ++i) {
      if (place(rows[i - 1]) == place(rows[i]) && (second == 0 || rows[i] < second)) {
        first = rows[i - 1];
        second = rows[i];
      }
    }
    if (second == 0) return absl::OkStatus();
    return BadLine(file_name_, lines_[second],
                   absl::StrCat("the path stands on line ", lines_[first], " already"),
                   listing.Path(second));
  }

  Listing listing;
  ListLabels labels;
  ListColumns columns;
  std::string path_column, label_column;  // of the last row; "" if there are no names
  std::vector<std::string> trimmed;       // names of columns that had blanks around them

  // A header was taken for a sample, because the columns are numbered or the kind has no header.
  absl::Status CheckHeader() const {
    const std::string first = listing.Path(0);
    const bool vanished = !listing.skips.empty() && listing.skips[0].row == 0 &&
                          listing.skips[0].reason == SkipReason::kVanished;
    if (!vanished || !IsPathHeader(first)) return absl::OkStatus();
    const bool cells = kind_ == ListKind::kCsv || kind_ == ListKind::kTsv;
    return BadLine(file_name_, lines_[0],
                   cells ? "there is no such file, and it reads like a header; --columns with the "
                           "names of its columns, as in path=NAME,label=NAME, takes it as one"
                         : "there is no such file, and it reads like a header; leave the line out",
                   first);
  }

 private:
  const std::string_view file_name_;
  const bool wants_labels_;
  const ListKind kind_;
  absl::flat_hash_map<std::string, uint32_t> folders_;
  std::vector<uint64_t> lines_;
};

// The first entries of a folder; none where it cannot be read.
std::vector<std::string> EntriesOf(int root, const std::string& folder) {
  std::vector<std::string> names;
  const int opened = OpenBelow(root, folder, O_RDONLY | O_DIRECTORY);
  const absl::Status read = ListOpenFolder(opened, folder, [&](const dirent& entry) {
    if (!IsHiddenFolder(entry.d_name)) names.emplace_back(entry.d_name);
    return names.size() < kMaxEntries;
  });
  if (!read.ok()) names.clear();
  return names;
}

bool HoldsImages(int root, const std::string& folder) {
  static const PathFilter images({}, false, {}, {});
  const std::vector<std::string> names = EntriesOf(root, folder);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return images.HasInputExtension(name); });
}

// Finds folders beside those that the classes are named after: if the list covers part of a source,
// its classes have other numbers than those of the whole.
void WarnAboutOtherClasses(const std::string& file_name, int root, int component,
                           Listing& listing) {
  std::set<std::string> parents = {""};
  if (component == 1) {
    parents.clear();
    for (const std::string& folder : listing.folders)
      if (!folder.empty()) parents.insert(folder.substr(0, folder.find('/')));
  } else if (component > 1) {
    return;
  }
  std::set<std::string> all(listing.classes.begin(), listing.classes.end());
  for (const std::string& parent : parents) {
    for (const std::string& name : EntriesOf(root, parent)) {
      const std::string folder = parent.empty() ? name : absl::StrCat(parent, "/", name);
      if (!all.contains(name) && HoldsImages(root, folder)) all.insert(name);
    }
  }
  for (size_t label = 0; label < listing.classes.size(); ++label) {
    const std::string& name = listing.classes[label];
    const auto whole = std::distance(all.begin(), all.find(name));
    if (static_cast<size_t>(whole) == label) continue;
    listing.warnings.push_back(
        absl::StrCat(EscapeForTerminal(file_name), " names images of ", listing.classes.size(),
                     " of ", all.size(), " class folders, and classes are numbered among these: ",
                     EscapeForTerminal(name), " is ", label, ", of all it would be ", whole,
                     "; --classes FILE with the names of all, one a line, keeps their numbers"));
    return;
  }
}

// As programs of old Macs did.
bool EndsLinesWithReturns(std::string_view text) {
  const size_t first = text.find('\r');
  return first < text.size() - 1 && text.find('\n') == std::string_view::npos &&
         text.find('\0') == std::string_view::npos;
}

// The text of the list, whose lines end as those of today.
absl::StatusOr<std::string> ReadLines(const std::string& list, const std::string& file_name) {
  ASSIGN_OR_RETURN(std::string text, ReadList(list));
  if (!EndsLinesWithReturns(text)) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("the list ", EscapeForTerminal(file_name),
                   " ends its lines with carriage returns alone, and so has one line; write it "
                   "with line feeds, as `tr '\\r' '\\n'` does"));
}

void WarnAboutColumns(const Rows& rows, const std::string& file_name, Listing& listing) {
  if (!rows.trimmed.empty()) {
    listing.warnings.push_back(absl::StrCat(
        "names of columns of ", EscapeForTerminal(file_name), " have blanks around them: \"",
        EscapeForTerminal(absl::StrJoin(rows.trimmed, "\", \"")),
        "\"; they are taken without these, and so are the cells of such columns"));
  }
  if (const std::string column = rows.columns.SplitColumn(); !column.empty()) {
    listing.warnings.push_back(absl::StrCat(
        "the column ", EscapeForTerminal(column), " of ", EscapeForTerminal(file_name),
        " reads like splits, and is not taken as such: all its samples are packed alike. To keep "
        "the splits, write a list for each and pack each by itself, with the same --classes FILE: "
        "else each list numbers the classes that it has"));
  }
}

// Classes by the folders in which the listed files are.
absl::Status LabelByFolder(const FolderSourceOptions& options, int root,
                           const std::string& file_name, Listing& listing) {
  LabelOptions labels = LabelOptionsOf(options);
  labels.parts.clear();  // everything in a list is an image
  RETURN_IF_ERROR(AssignFolders(options, labels, {}, SourceKind::kList, listing));
  if (options.classes.empty() && options.class_order == ClassOrder::kLexical) {
    const int component =
        listing.split_by_folder ? std::max(labels.component, 1) : labels.component;
    WarnAboutOtherClasses(file_name, root, component, listing);
  }
  return absl::OkStatus();
}

}  // namespace

ListSource::ListSource(ListSourceOptions options, FolderSourceOptions folder, IoPool& pool)
    : options_(std::move(options)),
      folder_options_(std::move(folder)),
      root_(RootOf(options_.root, options_.list)),
      folder_(root_, folder_options_, pool),
      pool_(pool) {}

absl::StatusOr<Listing> ListSource::List() {
  using Labels = ListSourceOptions::Labels;
  const Descriptor root(OpenAt(AT_FDCWD, root_.c_str(), O_PATH | O_DIRECTORY));
  if (!root.ok() && !IsAboutThePath(errno)) return IoStatus("open", root_, errno);
  if (!root.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the root ", EscapeForTerminal(root_), " of the list is not a folder that can be opened"));
  }
  const std::unique_ptr<char, decltype(&free)> real(realpath(root_.c_str(), nullptr), &free);
  const std::string root_path =
      DescriptorPath(root.get()).value_or(real != nullptr ? real.get() : root_);
  const std::string file_name = options_.list == "-" ? "standard input" : options_.list;
  ASSIGN_OR_RETURN(std::string text, ReadLines(options_.list, file_name));
  const bool wants_labels = options_.labels == Labels::kAuto || options_.labels == Labels::kColumn;
  Rows rows(root_path, file_name, wants_labels, options_.format);
  RETURN_IF_ERROR(ParseList(text, options_.format, file_name,
                            [&](const ListRow& row) { return rows.Add(row); }));
  RETURN_IF_ERROR(rows.CheckUnique());
  text = std::string();
  Listing& listing = rows.listing;
  const uint64_t count = listing.name_ends.size();
  if (count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the list ", EscapeForTerminal(file_name), " names no image"));
  }

  if (std::string columns = rows.columns.Describe(options_.format, wants_labels); !columns.empty())
    listing.notes.push_back(std::move(columns));
  RETURN_IF_ERROR(LookAtFiles(root.get(), folder_options_, pool_, listing, listed_));
  RETURN_IF_ERROR(CheckFound(root.get(), file_name, listing));
  RETURN_IF_ERROR(rows.CheckHeader());
  WarnAboutColumns(rows, file_name, listing);
  made_ = rows.columns.TakeMade();
  made_.AppendTo(listing);
  RETURN_IF_ERROR(SettleMissingParts(folder_options_.missing, listing));

  const bool from_column = wants_labels && rows.labels.rows() > 0;
  if (options_.labels == Labels::kColumn && !from_column) {
    return absl::InvalidArgumentError(
        absl::StrCat("the list ", EscapeForTerminal(file_name),
                     " has no labels; --label-from dir takes the folders of the paths, none "
                     "packs without"));
  }
  if (from_column) {
    RETURN_IF_ERROR(
        rows.labels.Finish({.classes = folder_options_.classes,
                            .order = folder_options_.class_order,
                            .column = rows.label_column,
                            .asked = options_.labels == Labels::kColumn || options_.recorded},
                           file_name, listing));
  } else if (options_.labels == Labels::kNone) {
    listing.label.assign(count, -1);
  } else {
    RETURN_IF_ERROR(LabelByFolder(folder_options_, root.get(), file_name, listing));
  }
  return std::move(listing);
}

}  // namespace shardpack
