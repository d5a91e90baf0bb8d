// ListSource: the images and labels of a list as a SampleSource.
//
//   ListSource source({.list = "train.csv", .format = {.kind = ListKind::kCsv}}, {}, io_pool);
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);
//
// Rows are in list order. Paths are relative to the root, or absolute and below it; none may
// contain `..` or occur twice. If all labels are whole numbers, they are used as they are (the
// classes are then named by number, unless a file names them); otherwise they are sorted. Without
// labels in the list, they come from folders, as in FolderSource. Named columns become fields
// (list_columns.h).
//
// Lifetime: borrows the pool; what Load returns is valid until arena.Reset().
// Thread-safety: as SampleSource.
// Errors: as SampleSource; InvalidArgument with file and line for a bad line. A missing file is a
// skip.
#ifndef SHARDPACK_CONVERTERS_SOURCES_LIST_SOURCE_H_
#define SHARDPACK_CONVERTERS_SOURCES_LIST_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "converters/listing/made_fields.h"
#include "converters/listing/sample_source.h"
#include "converters/sources/folder_source.h"
#include "converters/sources/list_lines.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct ListSourceOptions {
  enum class Labels : uint8_t { kAuto, kColumn, kDir, kNone };  // kAuto: the column if there is one

  std::string list;  // path; "-" = standard input
  ListOptions format = {};
  std::string root = {};  // "" = the folder of the list; for standard input: the working folder
  Labels labels = Labels::kAuto;
  bool recorded = false;  // it was packed so: labels that look like mistakes are no error
};

class ListSource : public SampleSource {
 public:
  // Ignores the folder's options that select files (ext, include, exclude).
  ListSource(ListSourceOptions options, FolderSourceOptions folder, IoPool& pool);

  absl::StatusOr<Listing> List() override;
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override {
    return folder_.Load(listing, row, arena, &made_);
  }
  uint64_t listed() const override { return listed_.load(std::memory_order_relaxed); }

 private:
  const ListSourceOptions options_;
  const FolderSourceOptions folder_options_;
  const std::string root_;
  FolderSource folder_;
  IoPool& pool_;
  MadeFields made_;  // from columns
  std::atomic<uint64_t> listed_{0};
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_SOURCE_H_
