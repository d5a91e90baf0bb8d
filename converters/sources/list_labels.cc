#include "converters/sources/list_labels.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "converters/listing/class_names.h"
#include "formats/io/file.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kManyClasses = 20;  // more classes than this, one for each sample, cannot be meant
constexpr size_t kFewTexts = 3;  // may be typing errors if numbers are at least as many times more

// A whole number that fits an int64_t, also with a fraction of zeros; nullopt for anything else.
std::optional<int64_t> WholeNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || text.empty() || text[0] == '+') return std::nullopt;
  std::string_view rest(stop, static_cast<size_t>(end - stop));
  if (rest.empty()) return value;
  if (rest[0] != '.' || rest.size() == 1) return std::nullopt;
  return rest.find_first_not_of('0', 1) == std::string_view::npos ? std::optional(value)
                                                                  : std::nullopt;
}

// A number of any form: 0.25, 1e-3 or nan.
bool IsNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && stop == text.data() + text.size() && error != std::errc::invalid_argument;
}

// 2024-05-31, optionally followed by a time.
bool IsDate(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.size() < kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return false;
  }
  return text.size() == kForm.size() || text[kForm.size()] == 'T' || text[kForm.size()] == ' ';
}

// For numeric labels, sorted: warns about numbers that no sample has.
void WarnAboutGaps(const std::set<int64_t>& numbers, std::string_view file_name, Listing& listing) {
  const uint64_t range = static_cast<uint64_t>(*numbers.rbegin()) + 1;
  if (numbers.size() == range) return;
  int64_t missing = 0;
  while (numbers.contains(missing)) ++missing;
  listing.warnings.push_back(absl::StrCat(
      "the labels of ", EscapeForTerminal(file_name), " are ", numbers.size(),
      " of the numbers 0 to ", range - 1, ": class ", missing,
      range - numbers.size() > 1 ? " is the first without a sample" : " has no sample",
      "; --classes FILE with the numbers that occur, one a line, counts them from 0 without gaps"));
}

// For numeric labels whose class names come from elsewhere: warns about samples in folders named
// after another class.
void WarnAboutFolders(std::string_view file_name, Listing& listing) {
  const std::vector<std::string>& classes = listing.classes;
  std::map<std::string_view, int32_t> by_name;
  for (size_t i = 0; i < classes.size(); ++i) by_name.emplace(classes[i], static_cast<int32_t>(i));
  std::vector<std::set<int32_t>> named(listing.folders.size());
  for (size_t i = 0; i < listing.folders.size(); ++i) {
    for (const std::string& component :
         std::vector<std::string>(absl::StrSplit(listing.folders[i], '/'))) {
      if (const auto found = by_name.find(component); found != by_name.end())
        named[i].insert(found->second);
    }
  }
  uint64_t count = 0, first = 0;
  for (uint64_t row = 0; row < listing.rows(); ++row) {
    const std::set<int32_t>& folder = named[listing.folder[row]];
    if (listing.label[row] < 0 || folder.empty() || folder.contains(listing.label[row])) continue;
    if (count++ == 0) first = row;
  }
  if (count == 0) return;
  listing.warnings.push_back(absl::StrCat(
      count, count == 1 ? " sample of " : " samples of ", EscapeForTerminal(file_name),
      count == 1 ? " lies" : " lie", " in a folder that is named as another class, the first: ",
      EscapeForTerminal(listing.Path(first)), " has the label ", listing.label[first],
      ", which --classes calls ",
      EscapeForTerminal(classes[static_cast<size_t>(listing.label[first])])));
}

std::string NamedTexts(const std::vector<std::string>& texts) {
  std::vector<std::string> named;
  for (const std::string& text : texts) {
    if (named.size() < kFewTexts) named.push_back(EscapeForTerminal(text));
  }
  return absl::StrCat(absl::StrJoin(named, ", "), texts.size() > named.size() ? ", ..." : "");
}

std::string AtLine(std::string_view text, uint64_t line) {
  return absl::StrCat("\"", EscapeForTerminal(text), "\" (line ", line, ")");
}

absl::Status Bad(std::string_view file_name, uint64_t line, std::string_view label,
                 std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(file_name), ":", line,
                                                 ": the label ", EscapeForTerminal(label),
                                                 std::string(why)));
}

}  // namespace

std::string CountedFromOneWarning(std::string_view file_name, std::string_view first_class) {
  return absl::StrCat(
      "no sample ", file_name.empty() ? "" : absl::StrCat("of ", EscapeForTerminal(file_name), " "),
      "has the label 0, which is ", EscapeForTerminal(first_class),
      ", the first of --classes: where the labels count from 1, every sample gets "
      "the name of the class after its own; a line before the first name makes "
      "it class 1");
}

void ListLabels::Add(uint64_t line, std::string_view label) {
  const auto known = known_.find(label);
  if (known != known_.end()) {
    ids_.push_back(known->second);
    return;
  }
  const auto id = static_cast<uint32_t>(names_.size());
  names_.push_back({std::string(label), line});
  known_.emplace(std::string(label), id);
  ids_.push_back(id);
}

void ListLabels::AddNone() { ids_.push_back(kNoName); }

std::vector<std::string> NumberedClasses(int64_t max_label) {
  std::vector<std::string> classes;
  for (int64_t label = 0; label <= max_label; ++label) classes.push_back(absl::StrCat(label));
  return classes;
}

absl::Status ListLabels::RefuseMeasurements(const ListLabelOptions& options,
                                            std::string_view file_name) const {
  const Name* first = nullptr;  // that is not a whole number
  for (const Name& name : names_) {
    const bool whole = WholeNumber(name.text).has_value();
    if (!whole && !IsNumber(name.text) && !IsDate(name.text)) return absl::OkStatus();
    if (!whole && (first == nullptr || name.line < first->line)) first = &name;
  }
  if (first == nullptr) return absl::OkStatus();
  const std::string where =
      options.column.empty() ? ""
                             : absl::StrCat(" of the column ", EscapeForTerminal(options.column));
  return Bad(
      file_name, first->line, first->text,
      absl::StrCat(where,
                   " is not a whole number, and all labels are numbers or dates: measurements, "
                   "and hardly the names of classes. ",
                   options.column.empty() ? "" : "--columns label=NAME takes another column, ",
                   "--label-from dir the folders of the paths, --label-from none no label, "
                   "and --label-from column makes a class of each value"));
}

// A text among numbers would make names of all of them, which are numbered in another way.
absl::Status ListLabels::RefuseSlips(std::string_view file_name) const {
  std::vector<const Name*> texts;
  for (const Name& name : names_) {
    if (!WholeNumber(name.text)) texts.push_back(&name);
  }
  const size_t numbers = names_.size() - texts.size();
  if (texts.empty() || texts.size() > kFewTexts ||
      numbers < std::max<size_t>(2, texts.size() * kFewTexts - 1)) {
    return absl::OkStatus();
  }
  std::vector<std::string> shown;
  for (const Name* name : texts) shown.push_back(AtLine(name->text, name->line));
  return absl::InvalidArgumentError(absl::StrCat(
      "the labels of ", EscapeForTerminal(file_name), " are whole numbers but for ",
      absl::StrJoin(shown, ", "),
      ". Correct the list; or --label-from column takes all labels for names, which are numbered "
      "in the order of their text"));
}

// Texts that count as classes, but may be mistakes.
void ListLabels::WarnAboutSlips(std::string_view file_name, Listing& listing) const {
  std::vector<std::string> empty;
  for (const Name& name : names_) {
    if (StandsForNoValue(name.text)) empty.push_back(AtLine(name.text, name.line));
  }
  if (empty.empty()) return;
  listing.warnings.push_back(absl::StrCat(
      "the labels of ", EscapeForTerminal(file_name), " have ",
      empty.size() == 1 ? "a class" : "classes", " named ", absl::StrJoin(empty, ", "),
      ", as programs write where there is no value; leave such lines out if they have no class"));
}

// Per name: whether any file of its samples exists.
std::vector<bool> ListLabels::NamesOfFiles(const Listing& listing) const {
  std::vector<bool> there(names_.size(), false);
  auto skip = listing.skips.begin();
  for (uint64_t row = 0; row < ids_.size(); ++row) {
    const bool skipped = skip != listing.skips.end() && skip->row == row;
    if (ids_[row] != kNoName && (!skipped || skip->reason != SkipReason::kVanished))
      there[ids_[row]] = true;
    if (skipped) ++skip;
  }
  return there;
}

absl::Status ListLabels::Finish(const ListLabelOptions& options, std::string_view file_name,
                                Listing& listing) const {
  const std::vector<std::string>& classes = options.classes;
  listing.classes = classes;
  listing.label.assign(ids_.size(), -1);
  if (names_.empty()) return absl::OkStatus();
  if (classes.empty() && !options.asked) {
    RETURN_IF_ERROR(RefuseMeasurements(options, file_name));
    RETURN_IF_ERROR(RefuseSlips(file_name));
  }
  std::vector<int32_t> label_of(names_.size(), -1);
  const bool all_numbers = std::all_of(names_.begin(), names_.end(), [](const Name& name) {
    return WholeNumber(name.text).has_value();
  });
  // If a class is named by a number, labels are names, whichever labels occur.
  const bool as_numbers =
      all_numbers && std::none_of(classes.begin(), classes.end(), [](const std::string& name) {
        return WholeNumber(name).has_value();
      });
  RETURN_IF_ERROR(as_numbers ? NumberLabels(classes, file_name, listing, label_of)
                             : NameLabels(options, file_name, listing, label_of));
  for (uint64_t row = 0; row < ids_.size(); ++row) {
    if (ids_[row] != kNoName) listing.label[row] = label_of[ids_[row]];
  }
  if (as_numbers && !classes.empty()) WarnAboutFolders(file_name, listing);
  if (classes.empty() && !options.asked && names_.size() == ids_.size() &&
      names_.size() >= kManyClasses) {
    listing.warnings.push_back(
        absl::StrCat("each of the ", ids_.size(), " samples of ", EscapeForTerminal(file_name),
                     " has a label of its own, which is hardly a class",
                     options.column.empty() ? "" : "; --columns label=NAME takes another column"));
  }
  return absl::OkStatus();
}

absl::Status ListLabels::NumberLabels(const std::vector<std::string>& classes,
                                      std::string_view file_name, Listing& listing,
                                      std::vector<int32_t>& label_of) const {
  std::set<int64_t> numbers;
  for (size_t i = 0; i < names_.size(); ++i) {
    const int64_t number = *WholeNumber(names_[i].text);
    if (number < 0) return Bad(file_name, names_[i].line, names_[i].text, " is negative");
    if (number > kMaxNumberLabel) {
      return Bad(file_name, names_[i].line, names_[i].text,
                 absl::StrCat(" is larger than ", kMaxNumberLabel,
                              ", the largest number that is taken for a class"));
    }
    if (!classes.empty() && static_cast<uint64_t>(number) >= classes.size()) {
      return Bad(file_name, names_[i].line, names_[i].text,
                 absl::StrCat(" is beyond the ", classes.size(),
                              " classes of --classes (labels count from 0)"));
    }
    label_of[i] = static_cast<int32_t>(number);
    numbers.insert(number);
  }
  if (classes.empty()) {
    listing.classes = NumberedClasses(*numbers.rbegin());
    WarnAboutGaps(numbers, file_name, listing);
  } else if (!numbers.contains(0)) {
    listing.warnings.push_back(CountedFromOneWarning(file_name, classes[0]));
  }
  return absl::OkStatus();
}

absl::Status ListLabels::NameLabels(const ListLabelOptions& options, std::string_view file_name,
                                    Listing& listing, std::vector<int32_t>& label_of) const {
  const std::vector<std::string>& classes = options.classes;
  if (classes.empty()) {
    WarnAboutSlips(file_name, listing);
    const std::vector<bool> there = NamesOfFiles(listing);
    std::vector<std::string> gone;
    for (const auto& [name, id] : known_) (there[id] ? listing.classes : gone).push_back(name);
    if (!gone.empty()) {
      listing.warnings.push_back(absl::StrCat(
          "no file is there of the samples of ", EscapeForTerminal(file_name), " labelled ",
          NamedTexts(gone), ", which ", gone.size() == 1 ? "gets no number" : "get no numbers",
          "; --classes FILE with the names of all, one a line, keeps their numbers"));
    }
    if (options.order == ClassOrder::kNatural)
      std::sort(listing.classes.begin(), listing.classes.end(), NaturalLess);
  }
  std::map<std::string_view, int32_t> by_name;
  for (size_t i = 0; i < listing.classes.size(); ++i)
    by_name.emplace(listing.classes[i], static_cast<int32_t>(i));
  for (size_t i = 0; i < names_.size(); ++i) {
    auto found = by_name.find(names_[i].text);
    const std::optional<int64_t> number = WholeNumber(names_[i].text);
    const std::string plain = number ? absl::StrCat(*number) : "";  // 3.000000 is 3
    if (found == by_name.end() && number) found = by_name.find(plain);
    if (found == by_name.end() && classes.empty()) continue;  // none of its rows exists
    if (found == by_name.end()) {
      return Bad(file_name, names_[i].line, names_[i].text,
                 absl::StrCat(" is not among the classes of --classes",
                              AlikeClass(classes, names_[i].text)));
    }
    label_of[i] = found->second;
  }
  return absl::OkStatus();
}

}  // namespace shardpack
