// Paths that come from data: the names in an archive, a shard or a list, to be used below a folder.
//
//   if (LeavesFolder(member_name)) return Refused(...);
//   std::string path = PlainPath("./cat//1.jpg");   // "cat/1.jpg"
//
// Thread-safety: pure functions.
#ifndef SHARDPACK_FORMATS_IO_RELATIVE_PATH_H_
#define SHARDPACK_FORMATS_IO_RELATIVE_PATH_H_

#include <string>
#include <string_view>

namespace shardpack {

// True if a component is "..".
bool HasParentComponent(std::string_view path);

// True for an absolute path, an empty path, and a path with a ".." component or a NUL.
bool LeavesFolder(std::string_view path);

// True if every component is the name of a file or folder: not empty, ".", ".." or with a NUL.
bool IsPlainPath(std::string_view path);

// The same, and there is one component.
bool IsPlainName(std::string_view name);

// The path without its empty, "." and ".." components; "" if there are no others.
std::string PlainPath(std::string_view path);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_RELATIVE_PATH_H_
