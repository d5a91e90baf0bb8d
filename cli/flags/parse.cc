#include "cli/flags/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/flags/flags.h"
#include "cli/flags/given_file.h"
#include "cli/flags/remote_path.h"
#include "cli/flags/suggest.h"
#include "formats/io/exists.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"
#include "formats/io/status_macros.h"
#include "formats/io/url.h"

namespace shardpack::cli {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

// The values of each flag as typed, in order.
using Values = std::map<const Flag*, std::vector<std::string>>;

// A path that cannot be inspected may exist; reading it reports the problem. The same applies to a
// dangling link.
bool MayExist(const std::string& path) { return Exists(path).value_or(true); }

// Names that other tools use for our verbs.
struct Synonym {
  std::string_view word, command;
};
constexpr std::array<Synonym, 14> kSynonyms = {{{"verify", "pack validate"},
                                                {"check", "pack validate"},
                                                {"show", "pack info"},
                                                {"describe", "pack info"},
                                                {"unpack", "pack extract"},
                                                {"export", "pack extract"},
                                                {"create", "pack build"},
                                                {"make", "pack build"},
                                                {"publish", "pack commit"},
                                                {"transcode", "pack convert"},
                                                {"adopt", "pack index"},
                                                {"benchmark", "pack bench"},
                                                {"manual", "pack man"},
                                                {"version", "pack --version"}}};

// The suggested command as a question; "" if no word of ours is close.
std::string Meant(const std::string& word) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.word == word) return StrCat("; did you mean ", std::string(synonym.command), "?");
  }
  const std::string verb = Nearest(word, VerbNames());
  return verb.empty() ? "" : StrCat("; did you mean pack ", verb, "?");
}

std::string HelpHint(const CommandLine& line) {
  return StrCat(" (pack ", std::string(SpecOf(line.verb).name), " --help lists the flags)");
}

// Removes the verb from the words.
absl::Status TakeVerb(CommandLine* line, std::vector<std::string>* words) {
  if (words->empty()) {
    line->help = true;
    return InvalidArgumentError("nothing to do");
  }
  const std::string first = words->front();
  if (const VerbSpec* verb = FindVerb(first)) {
    line->SetVerb(verb->verb);
    line->given.insert("verb");
    words->erase(words->begin());
    return absl::OkStatus();
  }
  if (first.starts_with("-") || !SchemeOf(first).empty() || MayExist(first))
    return absl::OkStatus();
  if (first == "help") {
    words->front() = "--help";
    if (words->size() == 1) return absl::OkStatus();
    std::swap((*words)[0], (*words)[1]);
    const std::string& topic = words->front();
    const std::string_view flag = std::string_view(topic).substr(topic.starts_with("--") ? 2 : 0);
    const auto named = [&](const Flag& each) { return each.name == flag; };
    if (words->size() == 2 && FindVerb(topic) == nullptr &&
        std::ranges::any_of(AllFlags(), named)) {
      line->help = true;
      line->help_flag = std::string(flag);
      words->clear();
      return absl::OkStatus();
    }
    if (FindVerb(topic) == nullptr && !topic.starts_with("-")) return NoSuchVerb(topic);
    return TakeVerb(line, words);
  }
  // Any other word may be a missing source, which build reports.
  return Meant(first).empty() ? absl::OkStatus() : NoSuchVerb(first);
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
  // "-j8" is a letter with its value.
  const auto has_letter = [&](Verb verb) {
    return dashes == 1 && std::ranges::any_of(FlagsOf(verb), [&](const Flag* flag) {
             return flag->letter != 0 && name.starts_with(flag->letter);
           });
  };
  std::vector<std::string> others;
  for (const VerbSpec& other : AllVerbs()) {
    const bool is_its = name.size() > 1 && FindFlag(other.verb, name) != nullptr;
    if (is_its || has_letter(other.verb))
      others.push_back(StrCat("pack ", std::string(other.name)));
  }
  if (!others.empty()) {
    const std::string last = others.back();
    others.pop_back();
    return InvalidArgumentError(StrCat(message, ": it belongs to ", absl::StrJoin(others, ", "),
                                       others.empty() ? "" : " and ", last, ", not to pack ", verb,
                                       HelpHint(line)));
  }
  const std::string meant = DidYouMean(StrCat("--", name), names);
  return InvalidArgumentError(StrCat(message, meant, meant.empty() ? HelpHint(line) : ""));
}

// CLI11 takes the word after `--flag=` for the value that is missing there; it is the empty one.
// And it swallows a "--" after a flag whose optional value is missing.
std::vector<std::string> WithEmptyValues(const std::vector<std::string>& words, Verb verb) {
  const auto swallows = [&](const std::string& word) {
    const size_t end = word.ends_with('=') ? word.size() - 1 : word.size();
    const Flag* flag = word.starts_with("--") ? FindFlag(verb, word.substr(2, end - 2)) : nullptr;
    return flag != nullptr && flag->kind == FlagKind::kOptional;
  };
  std::vector<std::string> split;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      if (word != words.begin() && swallows(word[-1])) split.push_back(*word);
      split.insert(split.end(), word, words.end());
      break;
    }
    const bool empty = word->starts_with("--") && word->find('=') == word->size() - 1;
    split.push_back(empty ? word->substr(0, word->size() - 1) : *word);
    if (empty) split.emplace_back();
  }
  return split;
}

// Lets CLI11 parse the words with the flags of the verb.
absl::Status Split(const std::vector<std::string>& typed, CommandLine* line, Values* values) {
  const std::vector<std::string> words = WithEmptyValues(typed, line->verb);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<const Flag*, const CLI::Option*> options;
  for (const Flag* flag : FlagsOf(line->verb)) {
    std::string names = StrCat("--", std::string(flag->name));
    if (flag->letter != 0) names = StrCat("-", std::string(1, flag->letter), ",", names);
    if (!flag->old_name.empty()) absl::StrAppend(&names, ",--", std::string(flag->old_name));
    if (flag->kind == FlagKind::kSwitch || flag->kind == FlagKind::kNegatable) {
      if (flag->kind == FlagKind::kNegatable) names += StrCat(",!--no-", std::string(flag->name));
      options[flag] = app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      CLI::Option* option =
          app.add_option(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      if (flag->kind == FlagKind::kOptional) option->expected(0, 1);
      options[flag] = option;
    }
  }
  app.add_option("arguments", line->arguments)->allow_extra_args();
  try {
    // CLI11 expects them in reverse order.
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
      return UnknownFlag(word, *line);  // the "--" before words that are not flags is kept
  }
  for (const auto& [flag, option] : options) {
    if (option->count() > 0) (*values)[flag] = option->results();
  }
  return absl::OkStatus();
}

// How the value of a flag refers to files; nullopt if it does not.
std::optional<PathUse> UseOf(const Flag& flag) {
  if (flag.name == "out") return PathUse::kWritesFolder;
  if (flag.name == "write" || flag.name == "report") return PathUse::kWritesFile;
  if (flag.value == "FILE") return PathUse::kReadsFile;
  for (const std::string_view word : {"DIR", "FILE", "SRC", "DATASET", "PATH"}) {
    if (flag.value.find(word) != std::string_view::npos) return PathUse::kReads;
  }
  return std::nullopt;
}

absl::Status RefuseUrls(const Flag& flag, const std::vector<std::string>& values) {
  const std::optional<PathUse> use = UseOf(flag);
  for (const std::string& value : values) {
    if (use && !SchemeOf(value).empty())
      return RefuseUrl(StrCat("--", std::string(flag.name)), value, *use);
  }
  return absl::OkStatus();
}

absl::Status RefuseUrls(const CommandLine& line) {
  for (size_t i = 0; i < line.arguments.size(); ++i) {
    const std::string& argument = line.arguments[i];
    if (SchemeOf(argument).empty() || (line.verb == Verb::kCat && i > 0))
      continue;  // cat's second argument is a key
    const bool written = line.verb == Verb::kExtract && i + 1 == line.arguments.size() && i > 0;
    return RefuseUrl(StrCat("pack ", std::string(SpecOf(line.verb).name)), argument,
                     written ? PathUse::kWritesFolder : PathUse::kReads);
  }
  return absl::OkStatus();
}

absl::Status StoreAll(const Flag& flag, const std::vector<std::string>& values, CommandLine* line) {
  RETURN_IF_ERROR(RefuseUrls(flag, values));
  // For a flag with one value the last one wins, so that a command can be repeated with an addition
  // at its end.
  const size_t first = flag.kind == FlagKind::kRepeated ? 0 : values.size() - 1;
  for (size_t i = first; i < values.size(); ++i) {
    RETURN_IF_ERROR(StoreFlag(flag, values[i], *line));
  }
  return absl::OkStatus();
}

// Limits nested tables: the parser's time is quadratic in the depth.
absl::Status CheckDepth(std::string_view text) {
  constexpr ptrdiff_t kMaxDepth = 8;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    const std::string_view names = row.substr(0, row.find_first_of("=#"));
    if (std::count(names.begin(), names.end(), '.') <= kMaxDepth) continue;
    return InvalidArgumentError(
        StrCat("line ", number, ": more than ", kMaxDepth, " tables within each other"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CLI::ConfigItem>> ReadConfig(const std::string& path) {
  constexpr uint64_t kMaxConfigBytes = 1 << 20;
  ASSIGN_OR_RETURN(const std::string text, ReadGivenFile("--config", path, kMaxConfigBytes));
  const absl::Status shallow = CheckDepth(text);
  if (!shallow.ok()) {
    return InvalidArgumentError(
        StrCat("--config ", EscapeForTerminal(path), ": ", std::string(shallow.message())));
  }
  std::istringstream in(text);
  try {
    return CLI::ConfigTOML().from_config(in);
  } catch (const CLI::Error&) {
    return InvalidArgumentError(
        StrCat("--config ", EscapeForTerminal(path), ": cannot be read as a TOML or INI file"));
  }
}

// Stores the flags of the config file that the command line does not set.
absl::Status StoreConfig(const std::string& path, const Values& typed, CommandLine* line) {
  ASSIGN_OR_RETURN(const std::vector<CLI::ConfigItem> items, ReadConfig(path));
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
  const bool none_needed = line.verb == Verb::kInfo && line.samples().gpu;
  if (count < verb.min_arguments && !none_needed) {
    return InvalidArgumentError(StrCat("pack ", std::string(verb.name), " needs ",
                                       std::string(verb.arguments),
                                       ", as in: ", std::string(verb.example)));
  }
  if (count > verb.max_arguments) {
    if (!line.Given("verb") && !MayExist(line.arguments[0])) return NoSuchVerb(line.arguments[0]);
    const std::string& extra = line.arguments[verb.max_arguments];
    const bool may_be_out = verb.max_arguments > 0 && count == verb.max_arguments + 1 &&
                            FindFlag(line.verb, "out") != nullptr && !line.Given("out");
    return InvalidArgumentError(StrCat(
        "unexpected argument ", EscapeForTerminal(extra), ": pack ", std::string(verb.name),
        " takes ", verb.max_arguments == 0 ? "no arguments" : std::string(verb.arguments),
        may_be_out ? StrCat("; where the output goes is said by -o ", ShellQuoted(extra)) : ""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NoSuchVerb(const std::string& word) {
  if (FindVerb(word) != nullptr) {
    return InvalidArgumentError(
        StrCat("the verb comes before all flags: pack ", word, " ..., with the flags behind it"));
  }
  std::string text =
      StrCat("there is no verb and no file or folder ", EscapeForTerminal(word), Meant(word));
  if (Meant(word).empty()) {
    std::string verbs;
    for (const VerbSpec& verb : AllVerbs())
      absl::StrAppend(&verbs, verbs.empty() ? "" : ", ", std::string(verb.name));
    absl::StrAppend(&text, "; the verbs are ", verbs, ", and pack help VERB|FLAG explains one");
  }
  return InvalidArgumentError(text);
}

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
    status = RefuseUrls(*config, typed[config]);
    if (status.ok()) status = StoreConfig(typed[config].back(), typed, &line);
    if (!status.ok()) return status;
  }
  for (const auto& [flag, values] : typed) {
    status = StoreAll(*flag, values, &line);
    if (!status.ok()) return status;
  }
  if (line.help || line.version) return line;
  if (PackFlags* pack = std::get_if<PackFlags>(&line.flags)) {
    // The default if the meaning of the top folders is not set. A manifest records all of it.
    FolderSourceOptions& source = pack->request.source;
    const bool top_is_class = source.label_dir_given && source.label_dir == 0;
    source.find_splits = !line.Given("split-by") && !top_is_class;
  }
  status = RefuseUrls(line);
  if (status.ok()) status = CheckArguments(line);
  if (!status.ok()) return status;
  return line;
}

}  // namespace shardpack::cli
