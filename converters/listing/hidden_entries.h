// HiddenEntries: entries that programs leave among images and that should not be packed: folders
// whose name begins with a dot (.ipynb_checkpoints, .git), __MACOSX, and the ._ files of macOS.
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
#include <utility>

#include "converters/listing/listing.h"

namespace shardpack {

// Used in Listing::ignored in place of an extension; real extensions contain no dot.
inline constexpr std::string_view kHiddenFiles = "._*";

bool IsHiddenFolder(std::string_view name);
bool IsHiddenFile(std::string_view name);
// The folder's path up to and including its first hidden component; "" if it has none.
std::string_view HiddenFolderOf(std::string_view folder);

class HiddenEntries {
 public:
  struct Facts {
    std::set<std::string, std::less<>> folders = {};
    uint64_t files = 0;
    std::string first_file = {};  // in byte order
  };
  HiddenEntries() = default;
  explicit HiddenEntries(Facts facts) : facts_(std::move(facts)) {}
  const Facts& facts() const { return facts_; }

  void AddFolder(std::string_view path) { facts_.folders.emplace(path); }
  void AddFile(std::string path);
  void Add(const HiddenEntries& other);
  // Adds a note, and counts the files in listing.ignored.
  void Report(Listing& listing) const;

 private:
  Facts facts_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_HIDDEN_ENTRIES_H_
