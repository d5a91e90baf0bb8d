#include "formats/io/relative_path.h"

namespace shardpack {
namespace {

// Calls `visit` with each component until it returns false; false then.
template <typename Visit>
bool EachComponent(std::string_view path, Visit visit) {
  for (;;) {
    const size_t slash = path.find('/');
    if (!visit(path.substr(0, slash))) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool IsName(std::string_view component) {
  return !component.empty() && component != "." && component != "..";
}

}  // namespace

bool HasParentComponent(std::string_view path) {
  return !EachComponent(path, [](std::string_view component) { return component != ".."; });
}

bool LeavesFolder(std::string_view path) {
  return path.empty() || path[0] == '/' || path.find('\0') != path.npos || HasParentComponent(path);
}

bool IsPlainPath(std::string_view path) {
  return path.find('\0') == path.npos && EachComponent(path, IsName);
}

bool IsPlainName(std::string_view name) { return IsPlainPath(name) && name.find('/') == name.npos; }

std::string PlainPath(std::string_view path) {
  std::string plain;
  EachComponent(path, [&plain](std::string_view component) {
    if (!IsName(component)) return true;
    if (!plain.empty()) plain.push_back('/');
    plain.append(component);
    return true;
  });
  return plain;
}

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string ParentFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace shardpack
