#include "cli/flags/manual.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/flags/flags.h"
#include "cli/flags/help.h"
#include "cli/flags/verbs.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/version.h"

namespace shardpack::cli {
namespace {

using absl::StrAppend;
using absl::StrCat;

// Escapes text for roff: a leading dot or quote is a request, and a bare minus becomes a hyphen.
std::string Roff(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Default(const Flag& flag) {
  const std::string fallback = DefaultWord(flag);
  return fallback.empty() ? "" : StrCat("default: ", fallback);
}

// Escapes text for a cell of a Markdown table.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace

std::string ManualPage() {
  std::string out =
      StrCat(".TH PACK 1 \"\" \"shardpack ", std::string(kVersion), "\" \"User Commands\"\n",
             ".SH NAME\npack \\- folders of images to verified shards, and back\n.SH SYNOPSIS\n");
  for (const VerbSpec& verb : AllVerbs()) StrAppend(&out, ".B ", Roff(Usage(verb)), "\n.br\n");
  StrAppend(
      &out,
      ".SH DESCRIPTION\nPacks image files, byte for byte, into shards that a training job "
      "reads in one go, and "
      "verifies\nevery shard by reading it back before it is published. Results go to standard "
      "output, everything\n"
      "else to standard error.\n");
  for (const VerbSpec& verb : AllVerbs()) {
    StrAppend(&out, ".SH \"PACK ", Roff(verb.name), "\"\n", Roff(verb.summary), ".\n");
    if (!verb.about.empty()) StrAppend(&out, ".PP\n", Roff(verb.about), "\n");
    StrAppend(&out, ".PP\n.EX\n", Roff(verb.example), "\n.EE\n");
    for (const Flag* flag : FlagsOf(verb.verb)) {
      std::string spelling = Spelling(*flag, flag->letter != 0);
      StrAppend(&out, ".TP\n.B ", Roff(spelling), "\n", Roff(flag->doc), ".\n");
      const std::string fallback = Default(*flag);
      if (!fallback.empty()) StrAppend(&out, "[", Roff(fallback), "]\n");
    }
  }
  StrAppend(&out, ".SH \"EXIT STATUS\"\n");
  for (const ExitCodeSpec& code : AllExitCodes()) {
    StrAppend(&out, ".TP\n.B ", static_cast<int>(code.code), "\n", Roff(code.meaning), "\n");
  }
  StrAppend(&out,
            ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colours.\n.TP\n.B TERM\nWith the value dumb: no "
            "colours, no live "
            "progress.\n.TP\n.B BUILD_WORKING_DIRECTORY\nSet by bazel run: relative paths count "
            "from there.\n");
  return out;
}

std::string MarkdownReference() {
  std::string out(kReferenceMark);
  for (const VerbSpec& verb : AllVerbs()) {
    StrAppend(&out, "\n## pack ", std::string(verb.name), "\n\n", std::string(verb.summary),
              ".\n\n```sh\n", std::string(verb.example), "\n```\n\nUsage: `", Usage(verb), "`\n");
    if (!verb.about.empty()) StrAppend(&out, "\n", std::string(verb.about), "\n");
    StrAppend(&out, "\n| flag | meaning | default |\n|---|---|---|\n");
    for (const Flag* flag : FlagsOf(verb.verb)) {
      StrAppend(&out, "| `", Cell(Spelling(*flag, flag->letter != 0)), "` | ", Cell(flag->doc),
                " | ", Cell(DefaultWord(*flag)), " |\n");
    }
    StrAppend(&out, "\nExit codes:");
    for (const ExitCode code : verb.exit_codes) {
      StrAppend(&out, code == verb.exit_codes.front() ? " " : ", ", static_cast<int>(code));
    }
    StrAppend(&out, ".\n");
  }
  StrAppend(&out, "\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
  for (const ExitCodeSpec& code : AllExitCodes()) {
    StrAppend(&out, "| ", static_cast<int>(code.code), " | ", Cell(code.meaning), " |\n");
  }
  return out;
}

}  // namespace shardpack::cli
