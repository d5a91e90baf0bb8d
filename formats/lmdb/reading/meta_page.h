// ChooseMeta: selects the current one of the two meta pages of an LMDB file.
//
//   absl::StatusOr<std::optional<LmdbMeta>> meta = ChooseMeta(window, shard, findings);
//   if (meta.ok() && meta->has_value()) ... (*meta)->entries.root
//
// It is the sound one with the higher transaction (LMDB/lmdb: libraries/liblmdb/mdb.c,
// mdb_env_pick_meta). liblmdb refuses a file if either of the first two pages is not a meta page,
// so each unsound page is a finding, even if the other one is usable. nullopt: neither is sound.
//
// Thread-safety: as PageWindow.
// Errors: read errors.
#ifndef SHARDPACK_FORMATS_LMDB_READING_META_PAGE_H_
#define SHARDPACK_FORMATS_LMDB_READING_META_PAGE_H_

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "formats/core/finding.h"
#include "formats/lmdb/reading/lmdb_pages.h"
#include "formats/lmdb/reading/page_window.h"

namespace shardpack {

absl::StatusOr<std::optional<LmdbMeta>> ChooseMeta(PageWindow& window, std::string_view shard,
                                                   FindingSink& findings);

}  // namespace shardpack

#endif  // SHARDPACK_FORMATS_LMDB_READING_META_PAGE_H_
