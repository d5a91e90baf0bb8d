#include "cli/flags/completions.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/flags/flags.h"
#include "cli/flags/verbs.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

// The long and short spelling of a flag.
std::vector<std::string> Words(const Flag& flag) {
  std::vector<std::string> words = {StrCat("--", std::string(flag.name))};
  if (flag.kind == FlagKind::kNegatable) words.push_back(StrCat("--no-", std::string(flag.name)));
  if (flag.letter != 0) words.push_back(StrCat("-", std::string(1, flag.letter)));
  return words;
}

bool IsFolder(const Flag& flag) { return flag.value == "DIR"; }
bool IsFile(const Flag& flag) { return flag.value == "FILE"; }

// For single quotes in any of the three shells; the tables contain no other special characters.
std::string Quoted(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

// Brackets and colons in a description have a meaning in zsh.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : Quoted(text)) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshAction(const Flag& flag) {
  const std::string value(flag.value);
  if (IsFolder(flag)) return StrCat(":", value, ":_files -/");
  if (IsFile(flag)) return StrCat(flag.kind == FlagKind::kOptional ? "::" : ":", value, ":_files");
  const std::vector<std::string> allowed = AllowedValues(flag);
  if (!allowed.empty()) return StrCat(":value:(", absl::StrJoin(allowed, " "), ")");
  return StrCat(":", ZshText(value), ": ");
}

}  // namespace

std::string BashCompletions() {
  std::string out = StrCat(
      "# bash completion for pack, made by `pack completions bash`\n"
      "_pack() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} last= verb=build\n"
      "  ((COMP_CWORD > 0)) && last=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  case ${COMP_WORDS[1]} in\n    ",
      absl::StrJoin(VerbNames(), "|"), ") verb=${COMP_WORDS[1]} ;;\n  esac\n  COMPREPLY=()\n",
      "  case $verb:$last in\n");
  for (const VerbSpec& verb : AllVerbs()) {
    for (const Flag* flag : FlagsOf(verb.verb)) {
      const std::vector<std::string> allowed = AllowedValues(*flag);
      if (flag->value.empty()) continue;
      std::string action = ":";  // any value: offer nothing
      if (!allowed.empty())
        action =
            StrCat("COMPREPLY=($(compgen -W '", absl::StrJoin(allowed, " "), "' -- \"$word\"))");
      if (IsFolder(*flag)) action = "mapfile -t COMPREPLY < <(compgen -d -- \"$word\")";
      if (IsFile(*flag)) action = "mapfile -t COMPREPLY < <(compgen -f -- \"$word\")";
      std::vector<std::string> patterns;
      for (const std::string& each : Words(*flag))
        patterns.push_back(StrCat(std::string(verb.name), ":", each));
      StrAppend(&out, "    ", absl::StrJoin(patterns, "|"), ") ", action, "; return ;;\n");
    }
  }
  StrAppend(&out, "  esac\n  if [[ $word == -* ]]; then\n    case $verb in\n");
  for (const VerbSpec& verb : AllVerbs()) {
    std::vector<std::string> words;
    for (const Flag* flag : FlagsOf(verb.verb)) {
      for (const std::string& word : Words(*flag)) words.push_back(word);
    }
    StrAppend(&out, "      ", std::string(verb.name), ") COMPREPLY=($(compgen -W '",
              absl::StrJoin(words, " "), "' -- \"$word\")) ;;\n");
  }
  StrAppend(&out, "    esac\n    return\n  fi\n",
            "  if [[ $verb == completions ]]; then\n"
            "    COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$word\"))\n    return\n  fi\n"
            "  mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
            "  ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W '",
            absl::StrJoin(VerbNames(), " "),
            "' -- \"$word\"))\n}\ncomplete -o filenames -F _pack pack\n");
  return out;
}

std::string ZshCompletions() {
  std::string out =
      "#compdef pack\n# zsh completion for pack, made by `pack completions zsh`\n_pack() {\n  "
      "local -a verbs\n  verbs=(\n";
  for (const VerbSpec& verb : AllVerbs()) {
    StrAppend(&out, "    '", std::string(verb.name), ":", ZshText(verb.summary), "'\n");
  }
  StrAppend(
      &out,
      "  )\n  if ((CURRENT == 2)); then\n    _alternative 'verbs:verb:{_describe verb verbs}' "
      "'files:source:_files'\n"
      "    [[ $PREFIX == -* ]] || return\n  fi\n  local verb=build\n"
      "  ((${+verbs[(r)${words[2]}:*]})) && verb=${words[2]} && shift words && ((CURRENT--))\n"
      "  case $verb in\n");
  for (const VerbSpec& verb : AllVerbs()) {
    StrAppend(&out, "    ", std::string(verb.name), ")\n      _arguments -s");
    for (const Flag* flag : FlagsOf(verb.verb)) {
      for (const std::string& word : Words(*flag)) {
        StrAppend(&out, " \\\n        '", flag->kind == FlagKind::kRepeated ? "*" : "", word, "[",
                  ZshText(flag->doc), "]", flag->value.empty() ? "" : ZshAction(*flag), "'");
      }
    }
    StrAppend(&out,
              verb.verb == Verb::kCompletions ? " \\\n        '*:shell:(bash zsh fish)'"
                                              : " \\\n        '*:file:_files'",
              "\n      ;;\n");
  }
  return out + "  esac\n}\n_pack \"$@\"\n";
}

std::string FishCompletions() {
  const std::string verbs = absl::StrJoin(VerbNames(), " ");
  std::string out = "# fish completion for pack, made by `pack completions fish`\n";
  for (const VerbSpec& verb : AllVerbs()) {
    StrAppend(&out, "complete -c pack -n __fish_use_subcommand -a ", std::string(verb.name),
              " -d '", Quoted(verb.summary), "'\n");
  }
  for (const VerbSpec& verb : AllVerbs()) {
    // build also applies without a verb.
    const std::string when =
        verb.verb == Verb::kBuild
            ? StrCat("not __fish_seen_subcommand_from ", verbs.substr(verbs.find(' ') + 1))
            : StrCat("__fish_seen_subcommand_from ", std::string(verb.name));
    for (const Flag* flag : FlagsOf(verb.verb)) {
      const std::vector<std::string> allowed = AllowedValues(*flag);
      std::string value;
      if (!flag->value.empty()) value = IsFolder(*flag) || IsFile(*flag) ? " -r -F" : " -x";
      if (flag->kind == FlagKind::kOptional) value = " -F";
      if (!allowed.empty()) StrAppend(&value, " -a '", absl::StrJoin(allowed, " "), "'");
      if (IsFolder(*flag)) value = " -x -a '(__fish_complete_directories)'";
      StrAppend(&out, "complete -c pack -n '", when, "' -l ", std::string(flag->name),
                flag->letter != 0 ? StrCat(" -s ", std::string(1, flag->letter)) : "", value,
                " -d '", Quoted(flag->doc), "'\n");
      if (flag->kind == FlagKind::kNegatable) {
        StrAppend(&out, "complete -c pack -n '", when, "' -l no-", std::string(flag->name),
                  " -d 'not: ", Quoted(flag->doc), "'\n");
      }
    }
  }
  StrAppend(
      &out,
      "complete -c pack -n '__fish_seen_subcommand_from completions' -x -a 'bash zsh fish'\n");
  return out;
}

}  // namespace shardpack::cli
