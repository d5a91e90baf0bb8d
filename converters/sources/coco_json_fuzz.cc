// Parses any bytes as COCO json: the result is an error, or a file whose objects belong to its
// images and categories.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "converters/sources/coco_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardpack;
  CocoFile coco;
  if (!ParseCoco(std::string_view(reinterpret_cast<const char*>(data), size), "file",
                 CocoKeep::kAll, &coco)
           .ok())
    return 0;
  size_t objects = 0;
  const std::vector<int32_t> labels(coco.categories.size(), 0);
  for (const CocoImage& image : coco.images) {
    if (image.file_name.empty()) abort();
    for (const CocoObject& object : coco.ObjectsOf(image)) {
      if (object.category < 0 || static_cast<size_t>(object.category) >= coco.categories.size())
        abort();
      ++objects;
    }
    if (BoxesJson(coco, image, labels).empty() || WholeJson(coco, image, labels).empty()) abort();
  }
  if (objects != coco.objects.size()) abort();
  return 0;
}
