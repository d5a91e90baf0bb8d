// OpenSource: opens the SampleSource that a request describes.
//
//   absl::StatusOr<OpenedSource> opened = OpenSource(request, pool);
//   absl::StatusOr<Listing> listing = opened->source->List();
//
// Lifetime: the source borrows the pool.
// Thread-safety: one caller.
// Errors: InvalidArgument for a source that is missing, cannot be packed, or does not match a flag;
// I/O Status.
#ifndef SHARDPACK_JOBS_OPEN_SOURCE_H_
#define SHARDPACK_JOBS_OPEN_SOURCE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "converters/listing/sample_source.h"
#include "converters/planning/plan.h"
#include "converters/sources/archive_source.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"
#include "jobs/pack_request.h"
#include "readers/dataset/dataset.h"

namespace shardpack {

struct OpenedSource {
  std::unique_ptr<SampleSource> source;
  std::map<std::string, std::string> options = {};  // for the plan's digest
  std::optional<Dataset> dataset = std::nullopt;    // if the source is a dataset
  ArchiveSource* archive = nullptr;                 // `source`, if it is an archive
};

// What --input-format auto means for this source: "folder", "csv", "dataset" and so on.
// InvalidArgument if its name does not show it.
absl::StatusOr<std::string> KindOfSource(const std::string& path);

absl::StatusOr<OpenedSource> OpenSource(const PackRequest& request, IoPool& pool);

// InvalidArgument for a plan whose source cannot be opened by other processes.
absl::Status CheckShared(const Plan& plan);

// Opens the source of a plan made elsewhere; `root` is its path on this machine.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenPlannedSource(const Plan& plan,
                                                                const std::string& root,
                                                                IoPool& pool);

}  // namespace shardpack

#endif  // SHARDPACK_JOBS_OPEN_SOURCE_H_
