// HarmlessPath: turns a path stored in a shard into one that stays below the folder it is extracted
// to.
//
//   HarmlessPath("cat/1.jpg")         // the same
//   HarmlessPath("/etc/passwd")       // "etc/passwd"
//   HarmlessPath("../../x\n.jpg")     // "%2E%2E/%2E%2E/x%0A.jpg"
//
// Control characters and bytes that are not UTF-8 become %XX, empty and "." components are removed,
// ".." is escaped. The result is never empty. NamedAs: a path whose extension matches the image.
#ifndef SHARDPACK_CONVERTERS_EXTRACTING_EXTRACT_PATH_H_
#define SHARDPACK_CONVERTERS_EXTRACTING_EXTRACT_PATH_H_

#include <string>
#include <string_view>

#include "formats/core/image_info.h"

namespace shardpack {

std::string HarmlessPath(std::string_view path);
// "cat/1.gif" becomes "cat/1.png" if the image is now a PNG; a path that already matches is kept.
std::string NamedAs(const std::string& path, ImageFormat format);

// The path up to the last dot of its last component, which sidecars share with their image.
std::string_view PathStem(std::string_view path);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_EXTRACTING_EXTRACT_PATH_H_
