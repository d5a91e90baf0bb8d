// CocoSource: the images of a COCO json file as a SampleSource, each with a label, and with its
// annotations as a json field.
//
//   CocoSource source({.json = "instances_val2017.json", .root = "val2017"}, {}, io_pool);
//   absl::StatusOr<Listing> listing = source.List();
//   LoadResult loaded = source.Load(*listing, row, arena);   // image, json
//
// The label is the category of the largest object, or, with kSingle, of images that show one
// category only (the others are left out, and counted). Classes are the categories sorted by id. An
// image without an object has no label: MissingPart decides whether it is packed anyway (kKeep),
// left out (kDrop), skipped or an error; without labels (kNone) it is always packed.
//
// Lifetime: borrows the pool; holds the json of all images.
// Thread-safety: as SampleSource.
// Errors: as SampleSource; InvalidArgument for a file that is not COCO json. Call List before Load.
#ifndef SHARDPACK_CONVERTERS_SOURCES_COCO_SOURCE_H_
#define SHARDPACK_CONVERTERS_SOURCES_COCO_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "converters/listing/made_fields.h"
#include "converters/listing/sample_source.h"
#include "converters/sources/coco_json.h"
#include "converters/sources/folder_source.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

struct CocoSourceOptions {
  enum class Labels : uint8_t { kLargest, kSingle, kNone };

  std::string json;
  std::string root = {};  // "" = the folder that holds the json file
  Labels labels = Labels::kLargest;
  CocoKeep keep = CocoKeep::kAll;             // content of the json field
  std::vector<std::string> annotations = {};  // further files for the same images; with kAll
};

class CocoSource : public SampleSource {
 public:
  // Uses `follow`, `max_file_bytes`, `missing` and `classes` of the folder's options.
  CocoSource(CocoSourceOptions options, FolderSourceOptions folder, IoPool& pool);

  absl::StatusOr<Listing> List() override;
  LoadResult Load(const Listing& listing, uint64_t row, Arena& arena) const override {
    return folder_.Load(listing, row, arena, &made_);
  }
  uint64_t listed() const override { return listed_.load(std::memory_order_relaxed); }

 private:
  absl::Status AddRows(const CocoFile& coco, Listing& listing);
  absl::Status AddRow(const CocoFile& coco, const CocoImage& image, Listing& listing);
  absl::Status NameClasses(const CocoFile& coco, Listing& listing);

  const CocoSourceOptions options_;
  const FolderSourceOptions folder_options_;
  const std::string root_;
  FolderSource folder_;
  IoPool& pool_;
  std::vector<int32_t> label_of_category_;
  std::map<std::string, uint32_t> folder_numbers_;
  std::vector<uint64_t> without_object_;  // rows
  std::vector<size_t> image_of_row_;      // index into CocoFile::images
  MadeFields made_;                       // the json fields
  std::atomic<uint64_t> listed_{0};
};

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_COCO_SOURCE_H_
