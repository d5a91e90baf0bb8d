// Paths as text. Those that come from data, the names in an archive, a shard or a list, are used
// below a folder; those that the user gives are kept as they are spelled.
//
//   if (LeavesFolder(member_name)) return Refused(...);
//   std::string path = PlainPath("./cat//1.jpg");   // "cat/1.jpg"
//   std::string out = WithoutSlashes("OUT/");       // "OUT"
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

// Without the slashes at its end; "/" stays.
std::string WithoutSlashes(std::string path);

// What is before the last slash: "/" for a file of the root, "." for a name alone.
std::string ParentFolder(const std::string& path);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_IO_RELATIVE_PATH_H_
