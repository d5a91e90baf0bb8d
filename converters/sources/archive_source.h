// ArchiveSource: the images in a tar or zip archive as a SampleSource; the folders of a member's
// path are as those of a folder of images.
//
//   ArchiveSource source("train.tar.gz", FolderSourceOptions{});
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);
//
// The images of a plain tar are read where they lie; those of a compressed one and of a zip are
// written once to a temporary file without a name, while the archive is listed. Nothing is unpacked
// to a path: a member that is a link, a device, or whose name is absolute or holds `..` is a skip.
//
// Lifetime: owns what it reads from.
// Thread-safety: as SampleSource.
// Errors: InvalidArgument for what is no archive; DataLoss for one that is damaged; I/O Status.
// Units: bytes; `places` of the listing are offsets in the archive or in the temporary file.
#ifndef SHARDPACK_CONVERTERS_SOURCES_ARCHIVE_SOURCE_H_
#define SHARDPACK_CONVERTERS_SOURCES_ARCHIVE_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "converters/listing/sample_source.h"
#include "converters/sources/folder_source.h"
#include "formats/io/file.h"

namespace shardpack {

class ArchiveSource : public SampleSource {
 public:
  // What List does with a tar that is a shard by the looks of it: most images have files of their
  // name beside them, or some have a .cls. Those would be left out, the labels be those of the
  // folders.
  enum class Shards : uint8_t { kRefuse, kPackImages };

  // Of the folder's options `follow` does not count.
  ArchiveSource(std::string path, FolderSourceOptions options, Shards shards = Shards::kPackImages);

  absl::StatusOr<Listing> List() override;
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override;
  uint64_t listed() const override { return listed_.load(std::memory_order_relaxed); }

  // Whether the archive had to be unpacked to a temporary file; known after List.
  bool is_spooled() const { return spool_.is_open(); }

 private:
  const std::string path_;
  const FolderSourceOptions options_;
  const Shards shards_;
  absl::StatusOr<File> file_;
  File spool_;
  std::atomic<uint64_t> listed_{0};
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_ARCHIVE_SOURCE_H_
