#include "converters/listing/path_filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "formats/io/file.h"
#include "formats/io/shell_quoted.h"

namespace shardpack {
namespace {

constexpr size_t kMaxExtensionBytes = 16;
constexpr std::array<std::string_view, 9> kImageExtensions = {"bmp", "gif", "jpe",  "jpeg", "jpg",
                                                              "png", "tif", "tiff", "webp"};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

PathFilter::Glob::Glob(std::string_view flag_name, std::string_view given)
    : flag(flag_name), text(given) {
  std::string_view rest = given;
  if (rest.ends_with('/')) {
    for_folders = true;
    rest.remove_suffix(1);
  }
  name_only = rest.find('/') == std::string_view::npos;
  if (rest.starts_with('/')) rest.remove_prefix(1);
  flags = rest.find("**") == std::string_view::npos ? FNM_PATHNAME : 0;
  pattern = std::string(rest);
}

bool PathFilter::Glob::Matches(const char* path, const char* name) const {
  const bool matches = fnmatch(pattern.c_str(), name_only ? name : path, flags) == 0;
  if (matches && !matched.load(std::memory_order_relaxed))
    matched.store(true, std::memory_order_relaxed);
  return matches;
}

bool PathFilter::AnyMatches(const std::deque<Glob>& globs, bool folders, const char* path,
                            const char* name) {
  bool any = false;
  for (const Glob& glob : globs) {
    if (glob.for_folders != folders || (any && glob.matched.load(std::memory_order_relaxed)))
      continue;
    any = glob.Matches(path, name) || any;
  }
  return any;
}

std::vector<std::string> PathFilter::Unmatched() const {
  std::vector<std::string> lines;
  for (const std::deque<Glob>* globs : {&include_, &exclude_}) {
    for (const Glob& glob : *globs) {
      if (glob.matched.load(std::memory_order_relaxed)) continue;
      const bool may_be_folder = glob.flag == "--exclude" && !glob.for_folders;
      lines.push_back(absl::StrCat(
          glob.flag, " ", EscapeForTerminal(glob.text), " matches no ",
          glob.for_folders ? "folder" : "image",
          may_be_folder ? absl::StrCat("; --exclude ", ShellQuoted(absl::StrCat(glob.text, "/")),
                                       " leaves out a folder")
                        : ""));
    }
  }
  return lines;
}

PathFilter::PathFilter(std::span<const std::string> extensions, bool any_extension,
                       std::span<const std::string> include, std::span<const std::string> exclude)
    : any_extension_(any_extension) {
  for (std::string_view extension : extensions) {
    if (extension.starts_with('.')) extension.remove_prefix(1);
    std::string& added = extensions_.emplace_back(extension);
    std::transform(added.begin(), added.end(), added.begin(), Lower);
  }
  if (extensions_.empty()) extensions_.assign(kImageExtensions.begin(), kImageExtensions.end());
  std::sort(extensions_.begin(), extensions_.end());
  for (const std::string& glob : include) include_.emplace_back("--include", glob);
  for (const std::string& glob : exclude) exclude_.emplace_back("--exclude", glob);
}

bool PathFilter::HasInputExtension(std::string_view name) const {
  if (any_extension_) return true;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view extension = name.substr(dot + 1);
  for (const std::string& wanted : extensions_) {
    if (wanted.size() == extension.size() &&
        std::equal(wanted.begin(), wanted.end(), extension.begin(),
                   [](char a, char b) { return a == Lower(b); })) {
      return true;
    }
  }
  return false;
}

bool PathFilter::Accepts(std::string_view folder, std::string_view name) const {
  if (include_.empty() && exclude_.empty()) return true;
  std::string path(folder);
  if (!path.empty()) path.push_back('/');
  const size_t name_at = path.size();
  path.append(name);
  const char* const bare = path.c_str() + name_at;
  const bool included = include_.empty() || AnyMatches(include_, false, path.c_str(), bare);
  return !AnyMatches(exclude_, false, path.c_str(), bare) && included;
}

bool PathFilter::ExcludesFolder(const std::string& path) const {
  const size_t slash = path.rfind('/');
  const char* const name = path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  return AnyMatches(exclude_, true, path.c_str(), name);
}

std::string NameExtension(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  std::string extension(name.substr(dot + 1));
  if (extension.size() > kMaxExtensionBytes) return "";
  std::transform(extension.begin(), extension.end(), extension.begin(), Lower);
  const bool digits =
      std::all_of(extension.begin(), extension.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? "" : extension;
}

}  // namespace shardpack
