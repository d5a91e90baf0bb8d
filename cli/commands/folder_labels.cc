#include "cli/commands/folder_labels.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "cli/terminal/units.h"
#include "formats/core/class_name.h"
#include "formats/io/file.h"

namespace shardpack::cli {
namespace {

using absl::StrCat;

// True if a folder of the path has the class's name; the names of nested classes contain slashes.
bool IsAFolderOf(std::string_view path, const std::string& name) {
  return StrCat("/", std::string(path)).find(StrCat("/", name, "/")) != std::string::npos;
}

}  // namespace

void FolderLabels::Add(std::string_view path, int64_t label, bool in_file) {
  if (label < 0) {
    ++without_;
    return;
  }
  seen_.insert(label);
  if (in_file) {
    ++in_files_;
    return;
  }
  const std::string name = ClassName(classes_, label);
  if (!IsAFolderOf(path, name) && elsewhere_++ == 0)
    first_elsewhere_ = StrCat(EscapeForTerminal(path), " is ", EscapeForTerminal(name));
}

// Folders are numbered in the order of their names, so the numbers may change.
std::string FolderLabels::OtherNumbers() const {
  if (!whole_ || classes_.empty()) return "";
  std::map<std::string, int64_t> sorted;
  for (const int64_t label : seen_) sorted.emplace(ClassName(classes_, label), label);
  int64_t number = 0;
  for (const auto& [name, label] : sorted) {
    if (label == number++) continue;
    return StrCat("packing the folders of the files would give their classes other numbers (",
                  EscapeForTerminal(name), " has ", label, ", and would have ", number - 1, ")");
  }
  return "";
}

std::string FolderLabels::Doubt() const {
  if (elsewhere_ > 0) {
    return StrCat(elsewhere_ == 1 ? "the label of " : "the labels of ", FormatCount(elsewhere_),
                  elsewhere_ == 1 ? " sample is not a folder of its path ("
                                  : " samples are not the folders of their paths (the first: ",
                  first_elsewhere_, ")");
  }
  if (in_files_ > 0) {
    return StrCat("the labels of ", Counted(in_files_, "sample", "samples"),
                  " are in files .cls, which packing the folder does not take for labels");
  }
  if (without_ > 0 && !seen_.empty()) {
    return StrCat(Counted(without_, "sample has", "samples have"),
                  " no label, and packing the folder would take one from the path");
  }
  return OtherNumbers();
}

}  // namespace shardpack::cli
