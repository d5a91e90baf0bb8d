#include "converters/listing/labels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "converters/listing/class_names.h"
#include "converters/listing/text_marks.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"

namespace shardpack {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

// The folder at level `index` of a folder's path; nullopt if the path is not that deep.
std::optional<std::string_view> Component(std::string_view folder, int index) {
  for (; !folder.empty(); --index) {
    const size_t slash = folder.find('/');
    if (index == 0) return folder.substr(0, slash);
    if (slash == std::string_view::npos) break;
    folder.remove_prefix(slash + 1);
  }
  return std::nullopt;
}

absl::Status WithoutClass(const LabelOptions& options, const Listing& listing, uint64_t row,
                          uint64_t count) {
  return absl::InvalidArgumentError(absl::StrCat(
      EscapeForTerminal(listing.Path(row)), " has no class: ",
      options.component == 0
          ? "it lies beside the class folders"
          : absl::StrCat("its path has no folder number ", options.component, " (counted from 0)"),
      count > 1 ? absl::StrCat(" (", count, " such files)") : "",
      "; every sample needs one, or none may have one: leave it out with --exclude, or pack "
      "without labels with --label-from none"));
}

// Warns if byte order and number order differ, which surprises users with numbered folders.
void WarnAboutNumbers(const std::vector<std::string>& classes, Listing& listing) {
  if (!std::all_of(classes.begin(), classes.end(), AllDigits)) return;
  const auto wrong =
      std::adjacent_find(classes.begin(), classes.end(),
                         [](const auto& a, const auto& b) { return NaturalLess(b, a); });
  if (wrong == classes.end()) return;
  listing.warnings.push_back(absl::StrCat(
      "the class folders are numbers, and labels follow their byte order (", *wrong, " before ",
      *(wrong + 1), "), as in torchvision; --class-order natural orders them by value"));
}

void WarnAboutEmptyFolders(const LabelOptions& options, std::span<const std::string> empty_folders,
                           Listing& listing) {
  std::set<std::string_view> empty;
  const std::set<std::string_view> known(listing.classes.begin(), listing.classes.end());
  for (const std::string& folder : empty_folders) {
    const auto name = Component(folder, options.component);
    if (name && !known.contains(*name)) empty.insert(*name);
  }
  if (empty.empty()) return;
  listing.warnings.push_back(
      absl::StrCat(empty.size() == 1 ? "the folder "
                                     : absl::StrCat(empty.size(), " folders, the first of them "),
                   EscapeForTerminal(*empty.begin()),
                   empty.size() == 1 ? " holds no images and gets no label"
                                     : ", hold no images and get no label",
                   "; --classes FILE keeps a label for every class in the file"));
}

}  // namespace

std::vector<uint64_t> ImagesByFolder(const LabelOptions& options, const Listing& listing) {
  std::vector<uint64_t> images(listing.folders.size(), 0);
  auto skip = listing.skips.begin();
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    const bool skipped = skip != listing.skips.end() && skip->row == row;
    const bool outside = skipped && skip->reason == SkipReason::kOutsideRoot;
    if (skipped) ++skip;
    if (outside && !options.outside_counts) continue;
    if (!options.parts.empty() && SidecarOf(options.parts, listing.Name(row))) continue;
    ++images[listing.folder[row]];
  }
  return images;
}

bool NaturalLess(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (!IsDigit(a[0]) || !IsDigit(b[0])) {
      if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto take_number = [](std::string_view& text) {
      size_t end = 0;
      while (end < text.size() && IsDigit(text[end])) ++end;
      std::string_view number = text.substr(0, end);
      text.remove_prefix(end);
      number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
      return number;
    };
    const std::string_view number_a = take_number(a), number_b = take_number(b);
    if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
    if (number_a != number_b) return number_a < number_b;
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "01" and "1": equal by value
}

UnreadClasses::UnreadClasses(const Listing& listing) {
  for (const std::string& name : listing.classes) has_samples_[name] = false;
  std::vector<int32_t> label_of_folder(listing.folders.size(), -1);
  auto skip = listing.skips.begin();
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    if (skip != listing.skips.end() && skip->row == row) {
      ++skip;
    } else {
      label_of_folder[listing.folder[row]] = listing.label[row];
    }
  }
  std::set<int> levels;  // at which each folder so far has the name of its class
  bool any = false;
  for (size_t i = 0; i < listing.folders.size(); ++i) {
    const auto label = static_cast<size_t>(label_of_folder[i]);
    if (label_of_folder[i] < 0 || label >= listing.classes.size()) continue;
    has_samples_[listing.classes[label]] = true;
    std::set<int> here;
    for (int level = 0; const auto name = Component(listing.folders[i], level); ++level) {
      if (*name == listing.classes[label] && (!any || levels.contains(level))) here.insert(level);
    }
    levels = std::move(here);
    any = true;
  }
  if (!levels.empty()) component_ = *levels.begin();
}

UnreadClasses::Have UnreadClasses::Of(const UnreadFolder& folder) const {
  const auto name = component_ < 0 ? std::nullopt : Component(folder.path, component_);
  const auto found = name ? has_samples_.find(*name) : has_samples_.end();
  if (found == has_samples_.end()) return Have::kNothing;
  return found->second ? Have::kSamples : Have::kNumber;
}

absl::StatusOr<std::vector<std::string>> ParseClasses(std::string_view text,
                                                      std::string_view file_name) {
  std::vector<std::string> classes;
  std::map<std::string_view, size_t> lines;
  const auto fail = [&](size_t line, std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeForTerminal(file_name), ":", line, ": ", std::string(why)));
  };
  text = WithoutByteOrderMark(text);
  if (BeginsWithUtf16Mark(text)) {
    return fail(1, "the file is UTF-16; class names are taken as UTF-8");
  }
  size_t end_of_names = text.find_last_not_of("\r\n");
  text = text.substr(0, end_of_names == std::string_view::npos ? 0 : end_of_names + 1);
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    std::string_view name = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (name.ends_with('\r')) name.remove_suffix(1);
    if (name.find('\0') != std::string_view::npos) return fail(line, "a NUL byte in a class name");
    if (name.empty()) return fail(line, "an empty line; each line is one class");
    if (name.find('\r') != std::string_view::npos) {
      return fail(line, "a carriage return inside a line; lines end with a line feed");
    }
    // It would be class 0, and every other class would have another number.
    if (name.starts_with("# ")) {
      return fail(line, "a comment, and each line is one class; take it out");
    }
    const auto [known, added] = lines.emplace(name, line);
    if (!added) {
      return fail(line, absl::StrCat("the class ", EscapeForTerminal(name), " stands on line ",
                                     known->second, " already"));
    }
    classes.emplace_back(name);
  }
  if (classes.empty()) return fail(1, "no class in the file");
  return classes;
}

absl::Status AssignLabels(const LabelOptions& options, std::span<const std::string> empty_folders,
                          Listing& listing) {
  const uint64_t rows = listing.rows();
  listing.label.assign(rows, -1);
  listing.classes = options.classes;
  for (const std::string& name : options.classes) {
    if (name.find('/') == std::string::npos) continue;
    return absl::InvalidArgumentError(absl::StrCat("the class ", EscapeForTerminal(name),
                                                   " of --classes has a slash: no folder's name"));
  }

  const std::vector<uint64_t> images = ImagesByFolder(options, listing);
  std::map<std::string_view, int32_t> labels;
  std::set<std::string_view> labelled_splits;
  for (size_t i = 0; i < listing.folders.size(); ++i) {
    const auto name = Component(listing.folders[i], options.component);
    if (!name || images[i] == 0) continue;
    labels.emplace(*name, -1);
    labelled_splits.insert(*Component(listing.folders[i], 0));
  }
  if (labels.empty()) {
    if (options.component_given) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--label-from dir:", options.component, ": no file lies that deep, the first is ",
          rows == 0 ? "missing" : EscapeForTerminal(listing.Path(0)),
          "; folders are counted from 0, --label-from none packs without labels"));
    }
    if (!options.classes.empty()) {
      return absl::InvalidArgumentError(
          "--classes names classes, but no file lies in a class folder; leave it out");
    }
    return absl::OkStatus();
  }

  if (listing.classes.empty()) {
    for (const auto& [name, label] : labels) listing.classes.emplace_back(name);
    if (options.order == ClassOrder::kNatural) {
      std::sort(listing.classes.begin(), listing.classes.end(), NaturalLess);
    } else {
      WarnAboutNumbers(listing.classes, listing);
    }
  }
  for (size_t i = 0; i < listing.classes.size(); ++i) {
    const auto found = labels.find(listing.classes[i]);
    if (found != labels.end()) found->second = static_cast<int32_t>(i);
  }
  for (const auto& [name, label] : labels) {
    if (label >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the folder \"", EscapeForTerminal(name), "\" is not among the classes of --classes",
        AlikeClass(listing.classes, std::string(name)),
        "; add it there, or leave it out with --exclude ",
        ShellQuoted(absl::StrCat(std::string(name), "/"))));
  }

  std::vector<int32_t> folder_label(listing.folders.size(), -1);
  std::vector<bool> may_lack(listing.folders.size(), false);
  for (size_t i = 0; i < listing.folders.size(); ++i) {
    const auto name = Component(listing.folders[i], options.component);
    const auto found = name ? labels.find(*name) : labels.end();
    if (found != labels.end()) folder_label[i] = found->second;
    const auto split = Component(listing.folders[i], 0);
    may_lack[i] = options.below_splits && split && !labelled_splits.contains(*split);
  }
  uint64_t without = 0, first_without = 0;
  size_t next_skip = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    listing.label[row] = folder_label[listing.folder[row]];
    const bool skipped =
        next_skip < listing.skips.size() && listing.skips[next_skip].row == row && ++next_skip > 0;
    if (listing.label[row] >= 0 || skipped || may_lack[listing.folder[row]]) continue;
    if (without++ == 0) first_without = row;
  }
  if (without > 0) return WithoutClass(options, listing, first_without, without);
  WarnAboutEmptyFolders(options, empty_folders, listing);
  return absl::OkStatus();
}

}  // namespace shardpack
