// Manual: the manual page and the reference part of docs/cli.md, made from the tables of verbs,
// flags and exit codes.
//
//   std::cout << ManualPage();                  // pack man | man -l -
//   std::cout << MarkdownReference();           // pack man --as markdown
#ifndef SHARDPACK_CLI_FLAGS_MANUAL_H_
#define SHARDPACK_CLI_FLAGS_MANUAL_H_

#include <string>
#include <string_view>

namespace shardpack::cli {

// The line of docs/cli.md at which MarkdownReference() begins.
inline constexpr std::string_view kReferenceMark =
    "<!-- From here on made by `pack man --as markdown`; cli/update_docs.sh brings it up to date. "
    "-->\n";

std::string ManualPage();         // roff, macros of man(7)
std::string MarkdownReference();  // kReferenceMark and everything after it

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_MANUAL_H_
