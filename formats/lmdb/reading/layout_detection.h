// DetectLayout: finds out which known layout the entries of an environment have.
//
//   absl::StatusOr<FoundLayout> found = DetectLayout(walk, meta.entries, window);
//   if (found->layout) ... else what is not read here: found->name
//
// Looks for entries that only one layout has (__len__, num-samples, length), then at what most of
// the first values are. Values that match no layout count as raw.
//
// Lifetime: names are static.
// Thread-safety: one caller at a time.
// Errors: read errors.
#ifndef SHARDPACK_FORMATS_LMDB_READING_LAYOUT_DETECTION_H_
#define SHARDPACK_FORMATS_LMDB_READING_LAYOUT_DETECTION_H_

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "formats/lmdb/lmdb_layout.h"
#include "formats/lmdb/reading/page_window.h"
#include "formats/lmdb/reading/tree_walk.h"

namespace shardpack {

struct FoundLayout {
  std::optional<LmdbLayout> layout;  // nullopt: a layout that is not read here
  std::string_view name;
};

absl::StatusOr<FoundLayout> DetectLayout(TreeWalk& walk, const LmdbTree& tree, PageWindow& window);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_LAYOUT_DETECTION_H_
