#include "cli/flags/help.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/flags/flags.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

std::string Padded(std::string text, size_t columns) {
  if (text.size() < columns) text.append(columns - text.size(), ' ');
  return text;
}

// "name   doc (default)", with doc wrapped; a long spelling gets a separate line.
void AppendFlag(const Flag& flag, size_t column, std::string* out) {
  std::string spelling = StrCat("  ", Spelling(flag, /*with_letter=*/true));
  std::string doc(flag.doc);
  const std::string fallback = DefaultWord(flag);
  if (!fallback.empty() && flag.kind != FlagKind::kNegatable) StrAppend(&doc, " [", fallback, "]");
  if (spelling.size() + 2 <= column && column + doc.size() <= kHelpColumns) {
    StrAppend(out, Padded(spelling, column), doc, "\n");
    return;
  }
  if (spelling.size() + 2 > column) {
    StrAppend(out, spelling, "\n");
    spelling.clear();
  }
  std::vector<std::string> words;
  for (size_t at = 0; at < doc.size();) {
    const size_t end = std::min(doc.find(' ', at), doc.size());
    words.push_back(doc.substr(at, end - at));
    at = end + 1;
  }
  StrAppend(out, Wrapped(Padded(spelling, column), words, " ", column, kHelpColumns));
}

void AppendExitCodes(const VerbSpec& verb, std::string* out) {
  std::vector<std::string> codes;
  for (const ExitCode code : verb.exit_codes) {
    for (const ExitCodeSpec& spec : AllExitCodes()) {
      if (spec.code == code)
        codes.push_back(StrCat(static_cast<int>(code), " ", std::string(spec.brief)));
    }
  }
  StrAppend(out, "\n", Wrapped("Exit codes: ", codes, ", ", 12, kHelpColumns));
}

void AppendRarer(Verb verb, std::string* out) {
  std::string group;
  std::vector<std::string> names;
  const auto flush = [&] {
    if (!names.empty())
      StrAppend(out, Wrapped(Padded(StrCat("  ", group, ":"), 14), names, "  ", 14, kHelpColumns));
    names.clear();
  };
  for (const Flag* flag : FlagsOf(verb)) {
    if (flag->common || flag->name == "version")
      continue;  // belongs to the program: the overview has it
    if (flag->group != group) flush();
    group = flag->group;
    // Values with many words are explained in the manual.
    const bool short_value = flag->value.size() <= 16;
    names.push_back(short_value ? Spelling(*flag, false) : StrCat("--", std::string(flag->name)));
  }
  flush();
}

}  // namespace

std::string Wrapped(std::string_view first, const std::vector<std::string>& words,
                    std::string_view between, size_t indent, size_t columns) {
  std::string out(first);
  size_t used = first.size();
  for (size_t i = 0; i < words.size(); ++i) {
    const bool last = i + 1 == words.size();
    const std::string word = last ? words[i] : StrCat(words[i], std::string(between));
    const size_t end = word.find_last_not_of(' ');
    if (used > indent && used + (end == std::string::npos ? 0 : end + 1) > columns) {
      out.erase(out.find_last_not_of(' ') + 1);
      StrAppend(&out, "\n", std::string(indent, ' '));
      used = indent;
    }
    StrAppend(&out, word);
    used += word.size();
  }
  return out + "\n";
}

std::string Usage(const VerbSpec& verb) {
  const std::string name = verb.verb == Verb::kBuild ? "[build]" : std::string(verb.name);
  const bool optional = verb.min_arguments == 0 && verb.verb != Verb::kBuild;
  const std::string arguments = verb.arguments.empty() ? ""
                                : optional ? StrCat(" [", std::string(verb.arguments), "]")
                                           : StrCat(" ", std::string(verb.arguments));
  return StrCat("pack ", name, arguments, verb.verb == Verb::kBuild ? " -o OUT" : "", " [flags]");
}

std::string VerbHelp(Verb verb, bool all) {
  const VerbSpec& spec = SpecOf(verb);
  std::string out = StrCat(std::string(spec.summary), ".\n\n  ", std::string(spec.example), "\n\n");
  StrAppend(&out, "Usage: ", Usage(spec), "\n");
  if (!spec.about.empty()) StrAppend(&out, std::string(spec.about), "\n");
  StrAppend(&out, "\n");
  size_t column = 0;
  bool rarer = false;
  for (const Flag* flag : FlagsOf(verb)) {
    rarer = rarer || (!flag->common && flag->name != "version");
    if (flag->common || all) column = std::max(column, Spelling(*flag, true).size() + 4);
  }
  column = std::min<size_t>(column, 40);
  std::string_view group;
  for (const Flag* flag : FlagsOf(verb)) {
    if (all && flag->group != group)
      StrAppend(&out, group.empty() ? "" : "\n", std::string(flag->group), ":\n");
    group = flag->group;
    if (flag->common || all) AppendFlag(*flag, column, &out);
  }
  if (rarer && !all) {
    StrAppend(&out, "\nFurther flags; `pack ", std::string(spec.name),
              " --help` explains all of them\n");
    AppendRarer(verb, &out);
  }
  AppendExitCodes(spec, &out);
  return out;
}

std::string FlagHelp(std::string_view name) {
  std::string out;
  for (const Flag& flag : AllFlags()) {
    if (flag.name != name) continue;
    if (!out.empty()) StrAppend(&out, "\n");
    std::vector<std::string> verbs;
    for (const VerbSpec& verb : AllVerbs()) {
      if (FindFlag(verb.verb, name) == &flag)
        verbs.push_back(StrCat("pack ", std::string(verb.name)));
    }
    AppendFlag(flag, std::min<size_t>(Spelling(flag, true).size() + 4, 40), &out);
    StrAppend(&out, Wrapped("  of ", verbs, ", ", 5, kHelpColumns));
  }
  return out;
}

std::string Overview() {
  std::string out =
      "pack: images to verified shards (WebDataset, TFRecord, LMDB, HDF5), and back.\n\n"
      "  pack photos/ -o shards/\n"
      "  pack validate shards/\n\n"
      "Usage: pack SRC -o OUT [flags]\n"
      "       pack VERB ... [flags]\n\n";
  for (const VerbSpec& verb : AllVerbs()) {
    StrAppend(&out, "  ", Padded(std::string(verb.name), 13), std::string(verb.summary), "\n");
  }
  StrAppend(
      &out,
      "\n`pack VERB -h` lists the flags of a verb with an example, `pack VERB --help` explains "
      "all of\n"
      "them, `pack help FLAG` one of them. Results go to stdout, everything else to stderr.\n\n"
      "  -h, --help      show this help\n"
      "  -V, --version   show the version, the commit and the libraries\n\n");
  std::vector<std::string> codes;
  for (const ExitCodeSpec& code : AllExitCodes()) {
    codes.push_back(StrCat(static_cast<int>(code.code), " ", std::string(code.brief)));
  }
  StrAppend(&out, Wrapped("Exit codes: ", codes, ", ", 12, kHelpColumns));
  return out;
}

}  // namespace shardpack::cli
