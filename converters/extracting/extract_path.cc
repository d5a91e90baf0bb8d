#include "converters/extracting/extract_path.h"

#include <algorithm>

#include "converters/listing/sidecars.h"
#include "formats/io/escape.h"

namespace shardpack {
namespace {

// Leaves '%' alone, so that text names come back unchanged.
std::string Escaped(std::string_view component) {
  std::string out;
  for (size_t at = 0; at < component.size();) {
    const size_t end = std::min(component.find('%', at), component.size());
    out += PercentEscape(component.substr(at, end - at));
    if (end < component.size()) out += '%';
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string HarmlessPath(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view component = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (component.empty() || component == ".") continue;
    if (!out.empty()) out += '/';
    out += component == ".." ? "%2E%2E" : Escaped(component);
  }
  return out.empty() ? "%" : out;
}

std::string NamedAs(const std::string& path, ImageFormat format) {
  const size_t slash = path.rfind('/'), base = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = path.rfind('.');
  const bool has_ending = dot != std::string::npos && dot > base;
  const std::string stem = has_ending ? path.substr(0, dot) : path;
  std::string ending = has_ending ? path.substr(dot + 1) : "";
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (ending == "jpeg" || ending == "jpe") ending = "jpg";
  if (ending == "tiff") ending = "tif";
  if (ending == ImageExtension(format)) return path;
  return stem + "." + std::string(ImageExtension(format));
}

std::string_view PathStem(std::string_view path) {
  const size_t slash = path.rfind('/'), base = slash == path.npos ? 0 : slash + 1;
  return path.substr(0, base + Stem(path.substr(base)).size());
}

}  // namespace shardpack
