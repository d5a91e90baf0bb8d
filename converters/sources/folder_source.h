// FolderSource: a folder of image files as a SampleSource: class folders (default) or one flat
// folder.
//
//   FolderSource source("/data/imagenet/train", FolderSourceOptions{}, io_pool);
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);
//
// Links: a link to a file or a folder below the root is followed, one that leaves the root only
// with `follow`; a link to a folder that contains it, or one reached through more than four links
// to folders, is a symlink-loop.
//
// Lifetime: borrows the pool; what Load returns is valid until arena.Reset().
// Thread-safety: as SampleSource.
// Errors: as SampleSource. A folder without permission is one row with a skip; an I/O error ends
// the listing; a file beside class folders, which would have no class, is InvalidArgument
// (torchvision drops it silently).
// Units: bytes.
#ifndef SHARDPACK_CONVERTERS_SOURCES_FOLDER_SOURCE_H_
#define SHARDPACK_CONVERTERS_SOURCES_FOLDER_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/labels.h"
#include "converters/listing/made_fields.h"
#include "converters/listing/sample_source.h"
#include "converters/listing/sidecars.h"
#include "converters/sources/folder_division.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct FolderSourceOptions {
  enum class LabelFrom : uint8_t { kDir, kNone };
  using ClassOrder = shardpack::ClassOrder;

  LabelFrom label_from = LabelFrom::kDir;
  int label_dir = 0;  // dir:N - which path component names the class, from 0
  bool label_dir_given =
      false;  // false: component 0, or 1 when splits come from folders; no subfolder = no label
  ClassOrder class_order = ClassOrder::kLexical;
  std::vector<std::string> classes =
      {};                      // --classes FILE: these, in this order; other folders are an error
  bool any_extension = false;  // --ext any
  std::vector<std::string> extensions = {};  // --ext jpg,png; empty = those of images
  // Globs on the relative path (`**` crosses folders, `*` does not). One without a slash is
  // compared with the file's name in every folder; a leading slash anchors it at the root; a
  // trailing slash makes --exclude leave out a folder.
  std::vector<std::string> include = {}, exclude = {};
  bool follow = false;  // also links that leave the root
  uint64_t max_file_bytes = uint64_t{256} << 20;
  bool split_from_dir = false;  // --split-by dir: component 0 is the split
  bool find_splits =
      false;  // without --split-by: component 0 is the split if named like one (folder_meaning.h)
  std::vector<Sidecar> sidecars = {};  // --fields: further fields from files beside the image
  MissingPart missing = MissingPart::kSkip;
  std::optional<ListedParts> listed_parts = {};  // in place of a walk over the folder

  // For the plan's digest: only options that differ from their default.
  std::map<std::string, std::string> ToMap() const;
};

// The options that concern labels.
LabelOptions LabelOptionsOf(const FolderSourceOptions& options);

class FolderSource : public SampleSource {
 public:
  FolderSource(std::string root, FolderSourceOptions options, IoPool& pool);
  ~FolderSource() override;

  absl::StatusOr<Listing> List() override;
  // Between two List() calls, all calls must take listings with the same folders: their descriptors
  // are cached by index.
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override {
    return Load(listing, row, arena, nullptr);
  }
  // The same for sources with fields that are not files: those are in `made`.
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena, const MadeFields* made) const;

  // Counted while List runs, for progress.
  uint64_t listed() const override { return listed_.load(std::memory_order_relaxed); }

 private:
  class FolderHandles;
  using FileResult = std::variant<Bytes, Skip, absl::Status>;

  // One file of a row: its image, or the part with this suffix.
  struct Wanted {
    uint64_t row = 0;
    const std::string* suffix = nullptr;  // nullptr = the image
    uint64_t bytes = 0;
    int64_t mtime_ns = 0;
  };
  int Open(const Listing& listing, const Wanted& wanted, bool follow_link) const;
  FileResult LoadFile(const Listing& listing, const Wanted& wanted, Arena& arena) const;
  FileResult Read(int file, const Listing& listing, const Wanted& wanted, Arena& arena) const;
  FileResult Failed(const Listing& listing, const Wanted& wanted, std::string_view operation,
                    int error) const;

  std::string root_;
  FolderSourceOptions options_;
  IoPool& pool_;
  std::atomic<uint64_t> listed_{0};
  int root_error_ = 0;  // errno of opening the root
  mutable std::unique_ptr<FolderHandles> handles_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_FOLDER_SOURCE_H_
