// Help: the help pages, made from the tables of verbs and flags. Each page fits on a screen: 40
// lines of 100 columns.
//
//   std::cout << VerbHelp(Verb::kBuild);
//   std::cout << Overview();                              // pack --help
//
// Units: columns.
#ifndef SHARDPACK_CLI_FLAGS_HELP_H_
#define SHARDPACK_CLI_FLAGS_HELP_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/verbs.h"

namespace shardpack::cli {

inline constexpr size_t kHelpColumns = 100;
inline constexpr size_t kHelpLines = 42;

std::string Overview();
std::string VerbHelp(Verb verb, bool all = false);

// The meaning of the flag for each verb that has it; "" if none has it.
std::string FlagHelp(std::string_view name);

// "pack validate DATASET|SHARD... [flags]"
std::string Usage(const VerbSpec& verb);

// `words` joined by `between`, wrapped at `columns`; further lines begin with `indent` spaces.
std::string Wrapped(std::string_view first, const std::vector<std::string>& words,
                    std::string_view between, size_t indent, size_t columns);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_FLAGS_HELP_H_
