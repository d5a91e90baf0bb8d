// ListSource: the images that a list names, with the labels it gives, as a SampleSource.
//
//   ListSource source({.list = "train.csv", .format = {.kind = ListKind::kCsv}}, {}, io_pool);
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);
//
// Rows are in the order of the list. Paths are relative to the root, or absolute and below it; none
// may hold `..`, and none may stand there twice. Labels that are all whole numbers are taken as
// they are (the classes then have numbers for names, unless a file names them); all others are
// sorted. A list without labels takes them from folders, as FolderSource. Columns that are named
// become fields (list_columns.h).
//
// Lifetime: borrows the pool; what Load returns dies with arena.Reset().
// Thread-safety: as SampleSource.
// Errors: as SampleSource; InvalidArgument with file and line for a bad line. A file that is not
// there is a skip.
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
  enum class Labels : uint8_t {
    kAuto,
    kColumn,
    kDir,
    kNone
  };  // kAuto: the column when there is one

  std::string list;  // the file; "-" = standard input
  ListOptions format = {};
  std::string root =
      {};  // "" = the folder that the list lies in; of standard input: the working folder
  Labels labels = Labels::kAuto;
};

class ListSource : public SampleSource {
 public:
  // Of the folder's options those that choose files (ext, include, exclude) do not count.
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
  MadeFields made_;  // of columns
  std::atomic<uint64_t> listed_{0};
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_LIST_SOURCE_H_
