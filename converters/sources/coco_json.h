// ReadCoco: reads images, objects and categories from a COCO json file (instances_train2017.json
// and similar files).
//
//   CocoFile coco;
//   absl::Status read = ReadCoco("instances_val2017.json", CocoKeep::kAll, &coco);
//   for (const CocoImage& image : coco.images) Use(image.file_name, coco.ObjectsOf(image));
//
// CocoKeep::kAll keeps the json of each image and annotation as in the file, without blanks;
// otherwise polygons and captions are dropped. Licenses always are. An annotation without category
// and bbox (a caption) is not an object.
//
// Thread-safety: pure except for the file.
// Errors: InvalidArgument with file, line and column for invalid JSON, with the id for inconsistent
// entries; I/O Status.
// Memory: 80 bytes per object, the names, and what is kept of the file; nesting is limited to 64.
#ifndef SHARDPACK_CONVERTERS_SOURCES_COCO_JSON_H_
#define SHARDPACK_CONVERTERS_SOURCES_COCO_JSON_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace shardpack {

enum class CocoKeep : uint8_t { kBoxes, kAll };

// A range of CocoFile::text.
struct CocoText {
  uint64_t begin = 0, bytes = 0;
};

struct CocoImage {
  int64_t id = 0;
  std::string file_name;
  double width = 0, height = 0;  // 0 = not in the file
  CocoText json = {};
};

struct CocoAnnotation {
  int64_t image_id = 0;
  CocoText json = {};
};

struct CocoObject {
  int64_t image_id = 0;
  std::array<double, 4> box = {};  // x, y, width, height in pixels
  double area = -1;                // width x height of the box if not in the file
  int32_t category = -1;           // index into `categories`
  bool crowd = false;
};

struct CocoFile {
  std::vector<CocoImage> images;            // in file order
  std::vector<CocoObject> objects;          // by image, in file order
  std::vector<CocoAnnotation> annotations;  // the same for all annotations, with kAll
  std::vector<std::string> categories;      // names, sorted by id
  std::vector<int64_t> category_ids;        // of those categories
  std::string text;                         // of images and annotations, with kAll

  std::span<const CocoObject> ObjectsOf(const CocoImage& image) const;
  std::span<const CocoAnnotation> AnnotationsOf(const CocoImage& image) const;
  std::string_view Json(CocoText part) const {
    return std::string_view(text).substr(part.begin, part.bytes);
  }
};

absl::Status ReadCoco(const std::string& path, CocoKeep keep, CocoFile* coco);
// The same for a text; `name` is for messages.
absl::Status ParseCoco(std::string_view text, std::string_view name, CocoKeep keep, CocoFile* coco);

// Adds the annotations of another file after those of the same images. An image must have the same
// id and file_name in both files, but one may leave out leading folders; a category with the same
// id must have the same name.
absl::Status JoinAnnotations(const std::string& path, CocoFile* coco);

// {"boxes":[{"area":...,"bbox":[x,y,width,height],"category":...,"iscrowd":0,"label":...},...],
//  "image_id":...}
std::string BoxesJson(const CocoFile& coco, const CocoImage& image,
                      std::span<const int32_t> label_of_category);
// {"annotations":[...],"boxes":as above,"image":{...},"image_id":...}, for a file read with kAll.
std::string WholeJson(const CocoFile& coco, const CocoImage& image,
                      std::span<const int32_t> label_of_category);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_COCO_JSON_H_
