// The usual names of the columns of a list, and which of several is meant.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LIST_NAMES_H_
#define SHARDPACK_CONVERTERS_SOURCES_LIST_NAMES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace shardpack {

inline constexpr std::array<std::string_view, 7> kPathNames = {
    "path", "file_name", "filename", "file", "image", "image_path", "filepath"};
inline constexpr std::array<std::string_view, 6> kLabelNames = {
    "label", "class", "class_name", "label_name", "category", "target"};

// Selects one of several spellings of a column: the earliest of `names`.
class UsualName {
 public:
  explicit UsualName(std::span<const std::string_view> names)
      : names_(names), best_(names.size()) {}
  // Whether `name` ranks before what was seen so far.
  bool Beats(std::string_view name) {
    const auto at =
        static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    if (at >= best_) return false;
    best_ = at;
    return true;
  }

 private:
  const std::span<const std::string_view> names_;
  size_t best_;
};

// Why a row has no label: it is empty, or null.
inline std::string EmptyLabel(std::string_view what) {
  return absl::StrCat("the label is ", std::string(what),
                      " (--missing-part keep packs such samples without one)");
}

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_NAMES_H_
