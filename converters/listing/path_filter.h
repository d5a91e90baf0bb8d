// PathFilter: decides which files of a folder are inputs, by extension and by the globs of
// --include and --exclude.
//
//   PathFilter filter({}, false, {}, {"thumbs/", "*_mask.png"});   // the extensions of images
//   if (filter.HasInputExtension(name) && filter.Accepts(folder, name)) ...
//   if (filter.ExcludesFolder("cat/thumbs")) ...
//
// Globs: `*` and `?` stop at a slash; in a pattern with `**` no wildcard does. A pattern without a
// slash is compared with the name only; one that begins with a slash, with the whole path from the
// root; one that ends with a slash matches folders, and --exclude then leaves out everything below
// them. The filter records which globs have matched.
//
// Lifetime: do not move it.
// Thread-safety: const from any thread.
#ifndef SHARDPACK_CONVERTERS_LISTING_PATH_FILTER_H_
#define SHARDPACK_CONVERTERS_LISTING_PATH_FILTER_H_

#include <atomic>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardpack {

class PathFilter {
 public:
  // No extensions = those of images. Case and a leading dot do not matter.
  PathFilter(std::span<const std::string> extensions, bool any_extension,
             std::span<const std::string> include, std::span<const std::string> exclude);

  bool HasInputExtension(std::string_view name) const;
  bool Accepts(std::string_view folder, std::string_view name) const;
  bool ExcludesFolder(const std::string& path) const;

  // One message for each pattern that has matched nothing so far.
  std::vector<std::string> Unmatched() const;

 private:
  struct Glob {
    Glob(std::string_view flag_name, std::string_view given);
    bool Matches(const char* path, const char* name) const;

    std::string flag, text;  // as given
    std::string pattern;
    bool name_only = false, for_folders = false;
    int flags = 0;
    mutable std::atomic<bool> matched = false;
  };
  // Whether one of them matches; globs that never matched before are always tried.
  static bool AnyMatches(const std::deque<Glob>& globs, bool folders, const char* path,
                         const char* name);

  bool any_extension_;
  std::vector<std::string> extensions_;  // sorted, lower case
  std::deque<Glob> include_, exclude_;
};

// The lower-cased text after a name's last dot; "" if there is no dot, or the text is not a
// plausible extension: only digits, or more than 16 bytes.
std::string NameExtension(std::string_view name);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_PATH_FILTER_H_
