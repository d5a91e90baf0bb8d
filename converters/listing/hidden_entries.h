// HiddenEntries: what programs leave among images and nobody means to pack: folders whose name
// begins with a dot (.ipynb_checkpoints, .git), __MACOSX, and the ._ files of macOS.
//
//   if (IsHiddenFolder(name)) hidden.AddFolder(path);
//   hidden.Report(listing);   // a note that names them
//
// Thread-safety: one caller; const from any thread.
#ifndef SHARDPACK_CONVERTERS_LISTING_HIDDEN_ENTRIES_H_
#define SHARDPACK_CONVERTERS_LISTING_HIDDEN_ENTRIES_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "converters/listing/listing.h"

namespace shardpack {

// In Listing::ignored in place of an extension; a name's extension holds no dot.
inline constexpr std::string_view kHiddenFiles = "._*";

bool IsHiddenFolder(std::string_view name);
bool IsHiddenFile(std::string_view name);
// The part of a folder's path that ends with its first hidden component; "" when it has none.
std::string_view HiddenFolderOf(std::string_view folder);

class HiddenEntries {
 public:
  void AddFolder(std::string_view path) { folders_.emplace(path); }
  void AddFile(std::string path);
  void Add(const HiddenEntries& other);
  // A note, and the files in listing.ignored.
  void Report(Listing& listing) const;

 private:
  std::set<std::string, std::less<>> folders_;
  uint64_t files_ = 0;
  std::string first_file_;  // bytewise
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_HIDDEN_ENTRIES_H_
