#include "cli/parse.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "cli/flags.h"
#include "cli/suggest.h"
#include "formats/io/file.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

// The values of each flag as they were typed, in order.
using Values = std::map<const Flag*, std::vector<std::string>>;

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string HelpHint(const CommandLine& line) {
  return StrCat(" (pack ", std::string(SpecOf(line.verb).name), " --help lists the flags)");
}

// Takes the verb off the words.
absl::Status TakeVerb(CommandLine* line, std::vector<std::string>* words) {
  if (words->empty()) {
    line->help = true;
    return InvalidArgumentError("nothing to do");
  }
  const std::string first = words->front();
  if (const VerbSpec* verb = FindVerb(first)) {
    line->verb = verb->verb;
    line->given.insert("verb");
    words->erase(words->begin());
    return absl::OkStatus();
  }
  if (first.starts_with("-") || Exists(first)) return absl::OkStatus();
  if (first == "help") {
    words->front() = "--help";
    if (words->size() > 1) std::swap((*words)[0], (*words)[1]);
    return TakeVerb(line, words);
  }
  const std::string meant = Nearest(first, VerbNames());
  if (meant.empty()) return absl::OkStatus();  // a source that is not there: build says so
  return InvalidArgumentError(StrCat("there is no verb and no folder ", EscapeForTerminal(first),
                                     "; did you mean pack ", meant, "?"));
}

absl::Status UnknownFlag(const std::string& word, const CommandLine& line) {
  const size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  const std::string name = word.substr(dashes, word.find('=') - dashes);
  std::vector<std::string> names;
  for (const Flag* flag : FlagsOf(line.verb)) {
    names.push_back(StrCat("--", std::string(flag->name)));
    if (flag->kind == FlagKind::kNegatable)
      names.push_back(StrCat("--no-", std::string(flag->name)));
  }
  const std::string verb(SpecOf(line.verb).name);
  const std::string message =
      StrCat("unknown flag ", EscapeForTerminal(word.substr(0, word.find('='))));
  if (FindFlag(line.verb, name) != nullptr) {
    return InvalidArgumentError(StrCat(message, "; long flags have two dashes: --", name));
  }
  for (const VerbSpec& other : AllVerbs()) {
    if (name.size() > 1 && FindFlag(other.verb, name) != nullptr) {
      return InvalidArgumentError(StrCat(message, ": it belongs to pack ", std::string(other.name),
                                         ", not to pack ", verb, HelpHint(line)));
    }
  }
  const std::string meant = DidYouMean(StrCat("--", name), names);
  return InvalidArgumentError(StrCat(message, meant, meant.empty() ? HelpHint(line) : ""));
}

// Lets CLI11 take the words apart by the flags of the verb.
absl::Status Split(const std::vector<std::string>& words, CommandLine* line, Values* values) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<const Flag*, const CLI::Option*> options;
  for (const Flag* flag : FlagsOf(line->verb)) {
    std::string names = StrCat("--", std::string(flag->name));
    if (flag->letter != 0) names = StrCat("-", std::string(1, flag->letter), ",", names);
    if (flag->kind == FlagKind::kSwitch || flag->kind == FlagKind::kNegatable) {
      if (flag->kind == FlagKind::kNegatable) names += StrCat(",!--no-", std::string(flag->name));
      options[flag] = app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      options[flag] = app.add_option(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
  }
  app.add_option("arguments", line->arguments)->allow_extra_args();
  try {
    // CLI11 takes them last first.
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    for (const auto& [flag, option] : options) {
      if (flag->value.empty() ||
          std::string(error.what()).find(option->get_name()) == std::string::npos)
        continue;
      return InvalidArgumentError(
          StrCat("--", std::string(flag->name), " needs a value: ", Spelling(*flag, false)));
    }
    return InvalidArgumentError(error.what());
  } catch (const CLI::Error& error) {
    return InvalidArgumentError(error.what());
  }
  for (const std::string& word : app.remaining()) {
    if (word != "--")
      return UnknownFlag(word, *line);  // the mark before words that are no flags stays behind
  }
  for (const auto& [flag, option] : options) {
    if (option->count() > 0) (*values)[flag] = option->results();
  }
  return absl::OkStatus();
}

absl::Status StoreAll(const Flag& flag, const std::vector<std::string>& values, CommandLine* line) {
  // Of a flag with one value the last counts, so that a command can be repeated with something
  // added at its end.
  const size_t first = flag.kind == FlagKind::kRepeated ? 0 : values.size() - 1;
  for (size_t i = first; i < values.size(); ++i) {
    const absl::Status stored = StoreFlag(flag, values[i], *line);
    if (!stored.ok()) return stored;
  }
  return absl::OkStatus();
}

// The flags of the file that the command line does not give.
absl::Status StoreConfig(const std::string& path, const Values& typed, CommandLine* line) {
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_file(path);
  } catch (const CLI::Error&) {
    return InvalidArgumentError(
        StrCat("--config ", EscapeForTerminal(path), ": cannot be read as a TOML or INI file"));
  }
  std::vector<std::string> names;
  for (const Flag* flag : FlagsOf(line->verb)) names.emplace_back(flag->name);
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // begin and end of a section
    if (!item.parents.empty() && FindVerb(item.parents[0]) == nullptr) {
      return InvalidArgumentError(StrCat("--config ", EscapeForTerminal(path),
                                         ": there is no verb [", EscapeForTerminal(item.parents[0]),
                                         "]", DidYouMean(item.parents[0], VerbNames())));
    }
    if (!item.parents.empty() && item.parents[0] != SpecOf(line->verb).name) continue;
    const Flag* flag = FindFlag(line->verb, item.name);
    if (flag == nullptr) {
      return InvalidArgumentError(StrCat("--config ", EscapeForTerminal(path),
                                         ": there is no flag ", EscapeForTerminal(item.name),
                                         DidYouMean(item.name, names)));
    }
    if (typed.contains(flag) || item.inputs.empty()) continue;
    const absl::Status stored = StoreAll(*flag, item.inputs, line);
    if (!stored.ok()) {
      return InvalidArgumentError(
          StrCat("--config ", EscapeForTerminal(path), ": ", std::string(stored.message())));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckArguments(const CommandLine& line) {
  const VerbSpec& verb = SpecOf(line.verb);
  const size_t count = line.arguments.size();
  const bool none_needed = line.verb == Verb::kInfo && line.gpu;
  if (count < verb.min_arguments && !none_needed) {
    return InvalidArgumentError(StrCat("pack ", std::string(verb.name), " needs ",
                                       std::string(verb.arguments),
                                       ", as in: ", std::string(verb.example)));
  }
  if (count > verb.max_arguments) {
    return InvalidArgumentError(
        StrCat("unexpected argument ", EscapeForTerminal(line.arguments[verb.max_arguments]),
               ": pack ", std::string(verb.name), " takes ",
               verb.max_arguments == 0 ? "no arguments" : std::string(verb.arguments)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(std::string program, std::vector<std::string> words) {
  CommandLine line;
  line.program = std::move(program);
  line.words = words;
  absl::Status status = TakeVerb(&line, &words);
  if (!status.ok()) return status;
  Values typed;
  status = Split(words, &line, &typed);
  if (!status.ok()) return status;
  if (const Flag* config = FindFlag(line.verb, "config"); typed.contains(config)) {
    status = StoreConfig(typed[config].back(), typed, &line);
    if (!status.ok()) return status;
  }
  for (const auto& [flag, values] : typed) {
    status = StoreAll(*flag, values, &line);
    if (!status.ok()) return status;
  }
  if (line.help || line.version) return line;
  status = CheckArguments(line);
  if (!status.ok()) return status;
  return line;
}

}  // namespace shardpack::cli
