#include "converters/list_labels.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"

namespace shardpack {
namespace {

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

absl::Status Bad(std::string_view file_name, uint64_t line, std::string_view label,
                 std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(EscapeForTerminal(file_name), ":", line,
                                                 ": the label ", EscapeForTerminal(label),
                                                 std::string(why)));
}

}  // namespace

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

std::vector<std::string> NumberedClasses(int64_t largest_label) {
  std::vector<std::string> classes;
  for (int64_t label = 0; label <= largest_label; ++label) classes.push_back(absl::StrCat(label));
  return classes;
}

absl::Status ListLabels::Finish(const std::vector<std::string>& classes, ClassOrder order,
                                std::string_view file_name, Listing& listing) const {
  std::vector<int32_t> label_of(names_.size(), -1);
  std::map<std::string_view, int32_t> by_name;
  for (size_t i = 0; i < classes.size(); ++i) by_name.emplace(classes[i], static_cast<int32_t>(i));
  const bool all_numbers = std::all_of(names_.begin(), names_.end(), [](const Name& name) {
    return WholeNumber(name.text).has_value();
  });
  // Where the name of a class is a number the names decide, whichever labels occur.
  const bool as_numbers =
      all_numbers && std::none_of(classes.begin(), classes.end(), [](const std::string& name) {
        return WholeNumber(name).has_value();
      });
  listing.classes = classes;
  if (as_numbers) {
    int64_t largest = -1;
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
      largest = std::max(largest, number);
    }
    if (classes.empty()) listing.classes = NumberedClasses(largest);
  } else {
    if (classes.empty()) {
      for (const auto& [name, id] : known_) listing.classes.push_back(name);
      if (order == ClassOrder::kNatural)
        std::sort(listing.classes.begin(), listing.classes.end(), NaturalLess);
      for (size_t i = 0; i < listing.classes.size(); ++i)
        by_name.emplace(listing.classes[i], static_cast<int32_t>(i));
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto found = by_name.find(names_[i].text);
      if (found == by_name.end()) {
        return Bad(file_name, names_[i].line, names_[i].text,
                   " is not among the classes of --classes");
      }
      label_of[i] = found->second;
    }
  }
  listing.label.clear();
  listing.label.reserve(ids_.size());
  for (const uint32_t id : ids_) listing.label.push_back(label_of[id]);
  return absl::OkStatus();
}

}  // namespace shardpack
