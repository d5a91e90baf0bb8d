// Completions: shell completions of `pack`, made from the tables of verbs and flags.
//
//   std::cout << BashCompletions();
#ifndef SHARDPACK_CLI_FLAGS_COMPLETIONS_H_
#define SHARDPACK_CLI_FLAGS_COMPLETIONS_H_

#include <string>

namespace shardpack::cli {

std::string BashCompletions();
std::string ZshCompletions();
std::string FishCompletions();

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_COMPLETIONS_H_
