// ReadCoco: images, objects and categories of a COCO json file (instances_train2017.json and its
// like).
//
//   CocoFile coco;
//   absl::Status read = ReadCoco("instances_val2017.json", &coco);
//   for (const CocoImage& image : coco.images) Use(image.file_name, coco.ObjectsOf(image));
//
// With CocoKeep::kAll the json of each image and annotation is kept as it is in the file, less the
// blanks; else polygons and captions pass by, as licenses always do. An annotation without category
// and bbox (a caption) is no object.
//
// Thread-safety: pure but for the file.
// Errors: InvalidArgument with file, line and column for what is no JSON, with the id for what does
// not fit together; I/O Status.
// Memory: 80 bytes an object, the names, and what is kept of the file; nothing is nested deeper
// than 64.
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

// A part of CocoFile::text.
struct CocoText {
  uint64_t begin = 0, bytes = 0;
};

struct CocoImage {
  int64_t id = 0;
  std::string file_name;
  double width = 0, height = 0;  // 0 = the file does not say
  CocoText json = {};
};

struct CocoAnnotation {
  int64_t image_id = 0;
  CocoText json = {};
};

struct CocoObject {
  int64_t image_id = 0;
  std::array<double, 4> box = {};  // x, y, width, height in pixels
  double area = -1;                // width x height of the box where the file has none
  int32_t category = -1;           // position in `categories`
  bool crowd = false;
};

struct CocoFile {
  std::vector<CocoImage> images;            // in the order of the file
  std::vector<CocoObject> objects;          // by image, in the order of the file
  std::vector<CocoAnnotation> annotations;  // the same of all of them, with kAll
  std::vector<std::string> categories;      // names, by id
  std::vector<int64_t> category_ids;        // of these
  std::string text;                         // of images and annotations, with kAll

  std::span<const CocoObject> ObjectsOf(const CocoImage& image) const;
  std::span<const CocoAnnotation> AnnotationsOf(const CocoImage& image) const;
  std::string_view Json(CocoText part) const {
    return std::string_view(text).substr(part.begin, part.bytes);
  }
};

absl::Status ReadCoco(const std::string& path, CocoKeep keep, CocoFile* coco);
// The same of text; `name` is for messages.
absl::Status ParseCoco(std::string_view text, std::string_view name, CocoKeep keep, CocoFile* coco);

// Adds the annotations of another file to those of the same images, behind them. The same image has
// the same id and the same file_name, of which one file may leave out leading folders; a category
// of the same id has the same name.
absl::Status JoinAnnotations(const std::string& path, CocoFile* coco);

// {"boxes":[{"area":...,"bbox":[x,y,width,height],"category":...,"iscrowd":0,"label":...},...],
//  "image_id":...}
std::string BoxesJson(const CocoFile& coco, const CocoImage& image,
                      std::span<const int32_t> label_of_category);
// {"annotations":[...],"boxes":as above,"image":{...},"image_id":...}, of a file read with kAll.
std::string WholeJson(const CocoFile& coco, const CocoImage& image,
                      std::span<const int32_t> label_of_category);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_COCO_JSON_H_
