// AgainstSource: the source given with --against: the folder or archive to compare a dataset with,
// and what a build would take from it today.
//
//   absl::StatusOr<AgainstSource> source = OpenAgainst("/data/train", manifest, pool);
//   options.open_source = source->open;  options.visit_source = source->visit;
//
// Lifetime: plain values; `visit` holds the listing, `open` the archive.
// Thread-safety: one caller.
// Errors: InvalidArgument for a path that does not exist or cannot be compared with; `gap` says
// what a changed source cannot answer.
#ifndef SHARDPACK_JOBS_AGAINST_SOURCE_H_
#define SHARDPACK_JOBS_AGAINST_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "converters/threads/io_pool.h"
#include "formats/core/manifest.h"
#include "validators/validator.h"

namespace shardpack {

struct AgainstSource {
  SourceOpener open;
  SourceParts parts = {};
  SourceVisit visit = nullptr;
  std::string gap = {};  // why `visit` is null, or what it leaves out
};

// `path` is the packed folder or archive, or another with the same files. For a dataset packed from
// a list, it is the list or the folder of its files.
absl::StatusOr<AgainstSource> OpenAgainst(const std::string& path, const Manifest& manifest,
                                          IoPool& pool);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_AGAINST_SOURCE_H_
