#include "cli/commands/extract_list.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/commands/out_folder.h"
#include "converters/listing/labels.h"
#include "converters/listing/sidecars.h"
#include "converters/planning/splits.h"
#include "converters/sources/list_labels.h"
#include "formats/core/class_name.h"
#include "formats/io/escape.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/io/relative_path.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/staged_file.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrAppend;
using absl::StrCat;

constexpr size_t kNamedSplits = 10;

std::string ClassesOf(const std::string& list) { return StrCat(list, ".classes"); }

// RFC 4180.
std::string Cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  return StrCat("\"", absl::StrReplaceAll(std::string(text), {{"\"", "\"\""}}), "\"");
}

// Quoted so that it is not parsed as a flag.
std::string Word(const std::string& path) {
  return ShellQuoted(path.starts_with('-') ? StrCat("./", path) : path);
}

std::set<std::string> SplitsOf(const Dataset& dataset) {
  std::set<std::string> splits;
  for (const DatasetShard& shard : dataset.shards()) splits.insert(shard.split);
  return splits;
}

absl::Status CheckIsNew(const std::string& path) {
  ASSIGN_OR_RETURN(const bool there, Exists(path));
  if (!there) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(EscapeForTerminal(path),
             " is there already, and is kept; move it away, or give --list another name"));
}

absl::Status WriteNew(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(std::unique_ptr<StagedFile> staged,
                   StagedFile::Create(StrCat(path, ".part-", ::getpid())));
  RETURN_IF_ERROR(staged->Append(AsBytes(text)));
  return staged->Publish(path);
}

}  // namespace

std::string CommandsWithList(const Dataset& dataset, std::span<const std::string> inputs,
                             const std::string& out, const CommandLine& line) {
  std::string packed, chosen, text;
  for (const std::string& input : inputs) StrAppend(&packed, " ", Word(input));
  if (line.samples().label) StrAppend(&chosen, " --label ", ShellQuoted(*line.samples().label));
  if (line.samples().limit != 0) StrAppend(&chosen, " --limit ", line.samples().limit);
  std::set<std::string> splits = SplitsOf(dataset);
  const bool choose = !line.samples().split.empty() || splits.size() > 1;
  if (!line.samples().split.empty()) splits = {line.samples().split};
  const std::string base = WithoutSlashes(out);
  size_t named = 0;
  for (const std::string& split : splits) {
    if (named++ == kNamedSplits) break;
    const std::string again = StrCat(base, "-", choose ? split : "labelled");
    StrAppend(&text, "\n  ", TypedProgram(), " extract", packed,
              choose ? StrCat(" --split ", ShellQuoted(split)) : "", chosen, " -o ", Word(again),
              " --list ", Word(StrCat(again, ".csv")));
  }
  if (splits.size() > kNamedSplits)
    StrAppend(&text, "\n  and so on for the other ", splits.size() - kNamedSplits, " splits");
  return text;
}

absl::StatusOr<ExtractList> ExtractList::Create(const Dataset& dataset,
                                                std::span<const std::string> inputs,
                                                const std::string& out, const CommandLine& line) {
  ExtractList list(dataset);
  list.file_ = line.samples().list;
  list.out_ = out;
  for (const std::string& input : inputs) {
    if (dataset.manifest() == nullptr || !LiesIn(list.file_, input)) continue;
    return InvalidArgumentError(StrCat("--list ", EscapeForTerminal(list.file_),
                                       " lies in the dataset; give it another place"));
  }
  if (LiesIn(list.file_, out)) {
    return InvalidArgumentError(StrCat("--list ", EscapeForTerminal(list.file_),
                                       " lies among the extracted files; give it a place outside "
                                       "of ",
                                       EscapeForTerminal(out)));
  }
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(list.file_).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    return InvalidArgumentError(StrCat("--list ", EscapeForTerminal(list.file_),
                                       ": there is no such folder to write it to"));
  }
  for (const std::string& file : {list.file_, ClassesOf(list.file_)})
    RETURN_IF_ERROR(CheckIsNew(file));
  const std::set<std::string> splits = SplitsOf(dataset);
  if (line.samples().split.empty() && splits.size() > 1) {
    return InvalidArgumentError(StrCat("a list is of one split, and there are ", splits.size(),
                                       ". Type:", CommandsWithList(dataset, inputs, out, line)));
  }
  list.split_ = line.samples().split.empty() ? *splits.begin() : line.samples().split;
  list.seen_.resize(dataset.classes().size());
  return list;
}

void ExtractList::Add(const std::string& path, int64_t label, std::span<const std::string> parts) {
  const auto [known, fresh] = labels_.emplace(Xxh3_64(AsBytes(path)), label);
  if (!fresh) {
    if (known->second != label)
      unsayable_ = StrCat("samples of two labels have the file ", EscapeForTerminal(path));
    return;
  }
  const auto classes = dataset_.classes();
  const std::string name = ClassName(classes, label);
  const auto place = static_cast<uint64_t>(label);
  if (label < kNoLabel || (classes.empty() && label > kMaxNumberLabel) ||
      (label >= 0 && !classes.empty() && place >= classes.size())) {
    unsayable_ = StrCat(EscapeForTerminal(path), " has the label ", label);
  } else if (label >= 0 && (name.empty() || name.find('\0') != name.npos)) {
    unsayable_ = StrCat("class ", label, " is named \"", EscapeForTerminal(name), "\"");
  }
  if (label >= 0 && place < seen_.size()) seen_[place] = true;
  if (label >= 0) ++labelled_;
  StrAppend(&rows_, Cell(path), ",", Cell(name), "\n");
  StrAppend(&plain_rows_, Cell(path), "\n");
  for (const std::string& part : parts) ++parts_[part];
}

// A class file has one name per line. Names that it cannot hold are fine if the list alone gives
// the same numbers: the names are sorted, and each has an image.
absl::StatusOr<bool> ExtractList::NeedsClassFile() const {
  const auto classes = dataset_.classes();
  if (classes.empty() || labelled_ == 0) return false;
  std::string text;
  for (const std::string& name : classes) StrAppend(&text, name, "\n");
  const absl::StatusOr<std::vector<std::string>> read = ParseClasses(text, "");
  if (read.ok() && std::ranges::equal(*read, classes)) return true;
  const bool alike = std::ranges::all_of(seen_, [](bool seen) { return seen; }) &&
                     std::ranges::adjacent_find(classes, std::greater_equal<>()) == classes.end();
  if (alike) return false;
  return InvalidArgumentError(
      "a name of a class has characters that a file for --classes cannot hold");
}

absl::StatusOr<std::string> ExtractList::Write() const {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgumentError(StrCat(EscapeForTerminal(file_), " is not written: ",
                                       std::string(why), ", which a list cannot say"));
  };
  if (!unsayable_.empty()) return refuse(unsayable_);
  const absl::StatusOr<bool> class_file = NeedsClassFile();
  if (!class_file.ok()) return refuse(std::string(class_file.status().message()));
  if (*class_file) {
    std::string text;
    for (const std::string& name : dataset_.classes()) StrAppend(&text, name, "\n");
    RETURN_IF_ERROR(WriteNew(ClassesOf(file_), text));
  }
  RETURN_IF_ERROR(WriteNew(
      file_, labelled_ == 0 ? StrCat("path\n", plain_rows_) : StrCat("path,label\n", rows_)));
  return Command(*class_file);
}

std::string ExtractList::Command(bool class_file) const {
  std::string text = StrCat(TypedProgram(), " ", Word(file_), " --root ", Word(out_));
  if (!absl::EndsWithIgnoreCase(file_, ".csv")) StrAppend(&text, " --input-format csv");
  if (labelled_ == 0) {
    StrAppend(&text, " --label-from none");
  } else if (class_file) {
    StrAppend(&text, " --classes ", Word(ClassesOf(file_)));
  } else if (!dataset_.classes().empty()) {
    StrAppend(&text, " --label-from column");
  }
  std::string sidecars, others;
  bool lacking = labelled_ > 0 && labelled_ < images();
  for (const auto& [part, count] : parts_) {
    // A text with this name would be taken for a label.
    if (part == "cls" || !ParseSidecars(part).ok()) {
      StrAppend(&others, others.empty() ? "" : ", ", "*.", EscapeForTerminal(part));
      continue;
    }
    StrAppend(&sidecars, sidecars.empty() ? "" : ",", part);
    lacking = lacking || count < images();
  }
  if (!sidecars.empty()) StrAppend(&text, " --fields ", ShellQuoted(sidecars));
  if (lacking) StrAppend(&text, " --missing-part keep");
  if (split_ != "train" && IsPortableSplitName(split_)) StrAppend(&text, " --split ", split_, "=1");
  return StrCat(text, " -o ", ShellQuoted(OutFor(file_)),
                others.empty() ? "" : StrCat("\nwhich leaves out the files ", others));
}

}  // namespace shardpack::cli
