#include "cli/flags/flags.h"

#include <algorithm>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/flags/suggest.h"
#include "cli/terminal/units.h"
#include "formats/io/file.h"

namespace shardpack::cli {

std::vector<const Flag*> FlagsOf(Verb verb) {
  std::vector<const Flag*> flags;
  for (const Flag& flag : AllFlags()) {
    if ((flag.verbs & In(verb)) != 0) flags.push_back(&flag);
  }
  return flags;
}

const Flag* FindFlag(Verb verb, std::string_view name) {
  for (const Flag* flag : FlagsOf(verb)) {
    if (flag->name == name || (!name.empty() && flag->old_name == name)) return flag;
  }
  return nullptr;
}

std::vector<std::string> AllowedValues(const Flag& flag) {
  if (flag.allowed != nullptr) return flag.allowed();
  std::vector<std::string> values;
  const bool is_choice = flag.value.find('|') != std::string_view::npos &&
                         std::none_of(flag.value.begin(), flag.value.end(),
                                      [](char c) { return c >= 'A' && c <= 'Z'; });
  if (is_choice) SplitAt(flag.value, '|', &values);
  return values;
}

std::string ValueWord(const Flag& flag) {
  if (flag.allowed == nullptr) return std::string(flag.value);
  std::string word;
  for (const std::string& value : flag.allowed()) {
    absl::StrAppend(&word, word.empty() ? "" : "|", value);
  }
  return word.empty() ? std::string(flag.value) : word;
}

std::string DefaultWord(const Flag& flag) {
  return flag.fallback == kFirst ? AllowedValues(flag).front() : std::string(flag.fallback);
}

std::string Spelling(const Flag& flag, bool with_letter) {
  std::string text;
  if (with_letter)
    text = flag.letter != 0 ? absl::StrCat("-", std::string(1, flag.letter), ", ") : "    ";
  absl::StrAppend(&text, "--", flag.kind == FlagKind::kNegatable ? "[no-]" : "",
                  std::string(flag.name));
  if (flag.kind == FlagKind::kOptional) {
    absl::StrAppend(&text, " [", ValueWord(flag), "]");
  } else if (!flag.value.empty()) {
    absl::StrAppend(&text, " ", ValueWord(flag));
  }
  return text;
}

// The size of --resize has a flag of its own.
std::string Hint(const Flag& flag, const std::string& value, std::span<const std::string> allowed) {
  if (flag.name == "resize" && !value.empty() && absl::ascii_isdigit(value[0])) {
    const char* const way = value.find('x') == std::string::npos ? "shortest" : "crop";
    return absl::StrCat("; as in --resize ", way, " --size ", EscapeForTerminal(value));
  }
  return DidYouMean(value, allowed);
}

absl::Status StoreFlag(const Flag& flag, const std::string& given, CommandLine& line) {
  const std::vector<std::string> allowed = AllowedValues(flag);
  const bool takes_jpg = std::find(allowed.begin(), allowed.end(), "jpg") != allowed.end();
  const std::string text = takes_jpg && given == "jpeg" ? "jpg" : given;
  if (!allowed.empty()) {
    std::vector<std::string> values;
    if (flag.kind == FlagKind::kRepeated) {
      SplitAt(text, ',', &values);
    } else {
      values.push_back(text);
    }
    for (const std::string& value : values) {
      if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) continue;
      std::string choices;
      for (const std::string& choice : allowed)
        absl::StrAppend(&choices, choices.empty() ? "" : ", ", choice);
      return absl::InvalidArgumentError(absl::StrCat("--", std::string(flag.name), " ",
                                                     EscapeForTerminal(value), ": expected one of ",
                                                     choices, Hint(flag, value, allowed)));
    }
  }
  const absl::Status stored = flag.store(text, line);
  if (!stored.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--", std::string(flag.name), " ",
                                                   text.empty() ? "''" : EscapeForTerminal(text),
                                                   ": ", std::string(stored.message())));
  }
  line.given.insert(std::string(flag.name));
  return stored;
}

}  // namespace shardpack::cli
