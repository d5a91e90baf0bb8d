// HarmlessPath: a path that a shard claims, as one that stays below the folder it is extracted
// into.
//
//   HarmlessPath("cat/1.jpg")         // the same
//   HarmlessPath("/etc/passwd")       // "etc/passwd"
//   HarmlessPath("../../x\n.jpg")     // "%2E%2E/%2E%2E/x%0A.jpg"
//
// Control characters and bytes that are not UTF-8 become %XX, empty and "." components go, ".." is
// spelt out. Never empty. NamedAs: a path whose ending fits the image.
#ifndef SHARDPACK_CLI_COMMANDS_EXTRACT_PATH_H_
#define SHARDPACK_CLI_COMMANDS_EXTRACT_PATH_H_

#include <string>
#include <string_view>

#include "formats/core/image_info.h"

namespace shardpack::cli {

std::string HarmlessPath(std::string_view path);
// "cat/1.gif" as "cat/1.png" when the image has become one; a path that says so already stays.
std::string NamedAs(const std::string& path, ImageFormat format);

// The path up to the last dot of its last component, as sidecars share it with their image.
std::string_view PathStem(std::string_view path);

}  // namespace shardpack::cli

#endif  // SHARDPACK_CLI_COMMANDS_EXTRACT_PATH_H_
