// The commands that print the tables: completions and man.
#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/flags/completions.h"
#include "cli/flags/failure.h"
#include "cli/flags/manual.h"
#include "cli/flags/suggest.h"
#include "formats/io/file.h"

namespace shardpack::cli {

ExitCode RunCompletions(const CommandLine& line, Terminal& terminal) {
  const std::string& shell = line.arguments[0];
  if (shell == "bash") return PrintResult(BashCompletions(), terminal);
  if (shell == "zsh") return PrintResult(ZshCompletions(), terminal);
  if (shell == "fish") return PrintResult(FishCompletions(), terminal);
  const std::string shells[] = {"bash", "zsh", "fish"};
  return Fail(absl::InvalidArgumentError(
                  absl::StrCat("there are completions for bash, zsh and fish, not for ",
                               EscapeForTerminal(shell), DidYouMean(shell, shells))),
              terminal);
}

ExitCode RunMan(const CommandLine& line, Terminal& terminal) {
  return PrintResult(line.print().markdown ? MarkdownReference() : ManualPage(), terminal);
}

}  // namespace shardpack::cli
