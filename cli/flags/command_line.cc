#include "cli/flags/command_line.h"

#include "absl/strings/str_cat.h"
#include "formats/io/shell_quoted.h"

namespace shardpack::cli {

std::string TypedCommand(const CommandLine& line) {
  std::string text = ShellQuoted(line.program);
  for (const std::string& word : line.words) absl::StrAppend(&text, " ", ShellQuoted(word));
  return text;
}

}  // namespace shardpack::cli
