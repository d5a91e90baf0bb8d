// ArchiveSource: the images in a tar or zip archive as a SampleSource; the folders in a member's
// path mean the same as in a folder of images.
//
//   ArchiveSource source("train.tar.gz", FolderSourceOptions{});
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);
//   absl::StatusOr<ArchivePlace> place = source.Find("cat/1.txt");  // after KeepPlaces, List
//
// Images of a plain tar are read in place; those of a compressed one or a zip are written once to
// an unnamed temporary file while the archive is listed. Nothing is unpacked to a path: a member
// that is a link or a device, or whose name is absolute or contains `..`, is a skip.
//
// Lifetime: owns what it reads from.
// Thread-safety: as SampleSource.
// Errors: InvalidArgument for what is not an archive; DataLoss for a damaged one; I/O Status.
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

// Location of a member's bytes.
struct ArchivePlace {
  const File* file;  // valid as long as the source
  uint64_t begin = 0, bytes = 0;
};

class ArchiveSource : public SampleSource {
 public:
  // What List does with a tar that looks like a shard: most images have files of the same name
  // beside them, or some have a .cls. Packing the images would drop those files and take labels
  // from folders.
  enum class Shards : uint8_t { kRefuse, kPackImages };

  // Ignores `follow` of the folder's options.
  ArchiveSource(std::string path, FolderSourceOptions options, Shards shards = Shards::kPackImages);

  absl::StatusOr<Listing> List() override;
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override;
  uint64_t listed() const override { return listed_.load(std::memory_order_relaxed); }

  // Call before List: List then records the location of each image and each part, paired or not.
  void KeepPlaces() { keeps_places_ = true; }
  // The member with that path, from any thread. NotFound if there is none that could be packed;
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
