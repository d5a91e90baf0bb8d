// Version: the versions of the program and of its libraries.
//
//   std::cout << VersionText();                                  // pack --version
//   build_options.tool = ToolVersions();                         // into the manifest
//
// Errors: none; the commit is "unknown" in a build without `--stamp` or outside of a checkout.
#ifndef SHARDPACK_CLI_TERMINAL_VERSION_H_
#define SHARDPACK_CLI_TERMINAL_VERSION_H_

#include <map>
#include <string>
#include <string_view>

#include "api/shardpack.h"

namespace shardpack::cli {

// Of the whole project: the header of the C interface has it.
inline constexpr std::string_view kVersion = SHARDPACK_VERSION;

// "version", "commit", and one entry per linked library.
std::map<std::string, std::string> ToolVersions();
std::string VersionText();

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_TERMINAL_VERSION_H_
