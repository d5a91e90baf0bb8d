// ArchiveSource: the images in a tar or zip archive as a SampleSource; the folders of a member's
// path are as those of a folder of images.
//
//   ArchiveSource source("train.tar.gz", FolderSourceOptions{});
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);
//   absl::StatusOr<ArchivePlace> place = source.Find("cat/1.txt");   // after KeepPlaces() and List()
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
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "converters/listing/sample_source.h"
#include "converters/sources/folder_source.h"
#include "formats/io/file.h"

namespace shardpack {

// Where a member's bytes lie.
struct ArchivePlace {
  const File* file;  // lives as long as the source
  uint64_t begin = 0, bytes = 0;
};

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

  // Called before List: List then notes where each image and each part lies, paired or not.
  void KeepPlaces() { keeps_places_ = true; }
  // The member of that path, from any thread. NotFound where there is none that could be packed;
  // InvalidArgument and Unavailable for one that cannot be read.
  absl::StatusOr<ArchivePlace> Find(std::string_view path) const;

  // Whether the archive had to be unpacked to a temporary file; known after List.
  bool is_spooled() const { return spool_.is_open(); }

 private:
  struct Kept {
    uint64_t place = 0, bytes = 0;
    std::optional<Skip> skip = std::nullopt;
  };
  void NotePlaces(const Listing& walked);

  const std::string path_;
  const FolderSourceOptions options_;
  const Shards shards_;
  absl::StatusOr<File> file_;
  File spool_;
  std::atomic<uint64_t> listed_{0};
  bool keeps_places_ = false;
  absl::flat_hash_map<uint64_t, Kept> places_;  // by hash of the path
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_ARCHIVE_SOURCE_H_
