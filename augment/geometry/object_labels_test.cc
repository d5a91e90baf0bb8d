// ObjectLabels: maps of whole images equal pycocotools', and those of crops a stored map's; objects
// that no map can show.
#include "augment/geometry/object_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ObjectLabels Make(uint32_t width, uint32_t height, const LabelMapOptions& options = {},
                  Overlap overlap = Overlap::kIgnore) {
  PixelPipelineOptions pixels;
  pixels.crop = {.kind = CropKind::kResize, .width = width, .height = height};
  return *ObjectLabels::Create(pixels, options, overlap);
}

Crop Whole(uint32_t width, uint32_t height) {
  return {.box = {0, 0, double(width), double(height)}};
}

struct StoredMap {
  uint32_t width = 0, height = 0;
  uint64_t ignored = 0, last = 0;
  std::vector<ImageObject> objects;
};

std::vector<StoredMap> StoredMaps() {
  std::ifstream file("augment/geometry/testdata/object_labels.txt");
  std::vector<StoredMap> maps;
  StoredMap map;
  for (std::string json; file >> map.width >> map.height >> map.ignored >> map.last >> json;) {
    auto objects = ParseObjects(json);
    EXPECT_TRUE(objects.ok()) << objects.status();
    map.objects = *std::move(objects);
    maps.push_back(map);
  }
  return maps;
}

TEST(ObjectLabels, AsPycocotools) {
  const std::vector<StoredMap> maps = StoredMaps();
  EXPECT_EQ(maps.size(), 150u);
  for (size_t i = 0; i < maps.size(); ++i) {
    const auto& [width, height, ignored, last, objects] = maps[i];
    for (const auto& [overlap, crc] :
         {std::pair(Overlap::kIgnore, ignored), std::pair(Overlap::kLast, last)}) {
      ObjectLabels labels = Make(width, height, {}, overlap);
      std::vector<uint8_t> map(labels.output_bytes(), 77);
      const absl::Status done =
          labels.Run(objects, width, height, Whole(width, height), true, map.data());
      ASSERT_TRUE(done.ok()) << done;
      EXPECT_EQ(::crc32(0, map.data(), static_cast<uInt>(map.size())), crc) << "line " << i + 1;
    }
  }
}

// What a crop shows are the pixels of the whole map that a stored one would give.
TEST(ObjectLabels, OfACropAsAStoredMap) {
  for (const StoredMap& stored : StoredMaps()) {
    const auto& [width, height, ignored, last, objects] = stored;
    std::vector<uint8_t> whole(size_t{width} * height);
    ASSERT_TRUE(Make(width, height)
                    .Run(objects, width, height, Whole(width, height), true, whole.data())
                    .ok());
    for (const bool flip : {false, true}) {
      constexpr uint32_t kWidth = 33, kHeight = 18;
      Crop crop = {.box = {width * 0.25, height * 0.1, width * 0.9, height * 1.0}, .flip = flip};
      if (width == 1) crop.box = {0, 0, 1, 1};
      PixelPipelineOptions pixels;
      pixels.crop = {.kind = CropKind::kResize, .width = kWidth, .height = kHeight};
      ObjectLabels labels = Make(kWidth, kHeight, {.wide = true, .ignore = 255});
      std::vector<uint16_t> map(kWidth * kHeight);
      ASSERT_TRUE(labels.Run(objects, width, height, crop, true, map.data()).ok());
      NearestPixels nearest;
      ChooseNearest(pixels.crop, width, height, crop, true, false, nearest);
      for (uint32_t y = 0; y < kHeight; ++y) {
        for (uint32_t x = 0; x < kWidth; ++x) {
          const uint32_t from = nearest.columns[flip ? kWidth - 1 - x : x];
          ASSERT_EQ(map[y * kWidth + x], whole[nearest.rows[y] * width + from]);
        }
      }
    }
  }
}

TEST(ObjectLabels, ManyKeepTheirOrder) {
  std::string json = "[";
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&json, i > 0 ? "," : "", R"({"bbox":[0,0,1,1],"category_id":)", i,
                    R"(,"segmentation":[[)", i, ",0,", i + 1, ",0,", i + 1, ",1,", i, ",1]]}");
  }
  const auto objects = ParseObjects(absl::StrCat(json, "]"));
  ObjectLabels labels = Make(301, 1, {.wide = true, .ignore = 0xFFFF});
  std::vector<uint16_t> map(301);
  ASSERT_TRUE(labels.Run(*objects, 301, 1, Whole(301, 1), true, map.data()).ok());
  for (uint16_t x = 0; x < 300; ++x) EXPECT_EQ(map[x], x + 1);
  EXPECT_EQ(map[300], 0);
  // No objects, and a polygon without area: background.
  ASSERT_TRUE(labels.Run({}, 301, 1, Whole(301, 1), true, map.data()).ok());
  EXPECT_THAT(map, Each(0));
  const auto line = ParseObjects(
      R"([{"bbox":[0,0,1,1],"category_id":1,"segmentation":[[0,0,9,0],[0,0,9,1,0,0]]}])");
  ASSERT_TRUE(labels.Run(*line, 301, 1, Whole(301, 1), true, map.data()).ok());
  EXPECT_THAT(map, Each(0));
}

TEST(ObjectLabels, WhereObjectsLieOnEachOther) {
  const auto objects = ParseObjects(
      R"([{"bbox":[0,0,1,1],"category_id":1,"segmentation":[[0,0,3,0,3,1,0,1],[0,0,3,0,3,1,0,1]]},
          {"bbox":[0,0,1,1],"category_id":1,"segmentation":[[2,0,4,0,4,1,2,1]]}])");
  std::vector<uint8_t> map(5);
  ASSERT_TRUE(Make(5, 1).Run(*objects, 5, 1, Whole(5, 1), true, map.data()).ok());
  EXPECT_THAT(map, ElementsAre(2, 2, 255, 2, 0));  // its own rings are one
  ASSERT_TRUE(Make(5, 1, {.ignore = 9}, Overlap::kLast)
                  .Run(*objects, 5, 1, Whole(5, 1), true, map.data())
                  .ok());
  EXPECT_THAT(map, ElementsAre(2, 2, 2, 2, 0));
}

TEST(ObjectLabels, WhatNoMapShows) {
  const auto why = [](const std::string& object, const LabelMapOptions& options = {}) {
    const auto objects = ParseObjects(absl::StrCat(R"([{"bbox":[0,0,2,2],)", object, "}]"));
    EXPECT_TRUE(objects.ok()) << objects.status();
    std::vector<uint16_t> map(4);
    const absl::Status done =
        Make(2, 2, options).Run(*objects, 2, 2, Whole(2, 2), true, map.data());
    EXPECT_TRUE(absl::IsInvalidArgument(done)) << done;
    return std::string(done.message());
  };
  const std::string ring = R"(,"segmentation":[[0,0,2,0,2,2]])";
  EXPECT_THAT(why(R"("category_id":3)"), HasSubstr("object 0 has neither polygons nor run"));
  for (const char* nothing : {"[]", "[[]]", "[[0,0,2,2]]", "[[],[0,0,2,2]]"}) {
    EXPECT_THAT(why(absl::StrCat(R"("category_id":3,"segmentation":)", nothing)),
                HasSubstr("neither polygons"));
  }
  EXPECT_THAT(why(R"("id":3)" + ring), HasSubstr("object 0 has no class"));
  EXPECT_THAT(why(R"("category_id":3)" + ring, {.classes = 4}),
              HasSubstr("the label 4 of 4 classes, the background among them"));
  EXPECT_THAT(why(R"("category_id":255)" + ring, {.ignore = 7}), HasSubstr("needs 16 bits"));
  EXPECT_THAT(why(R"("category_id":9223372036854775807)" + ring), HasSubstr("needs 16 bits"));
  EXPECT_THAT(why(R"("category_id":254)" + ring), HasSubstr("255, which is what to ignore"));
  EXPECT_THAT(why(R"("category_id":3,"segmentation":{"size":[2,3],"counts":[6]})"),
              HasSubstr("run lengths of 3 x 2 pixels; its image has 2 x 2"));
}

TEST(ObjectLabels, OutlinesThatAreTooLong) {
  ImageObject object;
  object.label = 0;
  object.outlined = true;
  Ring& ring = object.polygons.emplace_back();
  for (int i = 0; i < 9000; ++i) ring.push_back({i % 2 == 0 ? -1e9 : 1e9, double(i % 7)});
  ObjectLabels labels = Make(500, 2);
  std::vector<uint8_t> map(labels.output_bytes());
  const absl::Status done =
      labels.Run(std::span(&object, 1), 500, 2, Whole(500, 2), true, map.data());
  EXPECT_THAT(std::string(done.message()), HasSubstr("object 0 has a polygon with too many edges"));
  ring.resize(1000);
  EXPECT_TRUE(labels.Run(std::span(&object, 1), 500, 2, Whole(500, 2), true, map.data()).ok());
}

TEST(ObjectLabels, OptionsThatCannotBe) {
  const auto why = [](const LabelMapOptions& options) {
    return std::string(ObjectLabels::Create({}, options, Overlap::kIgnore).status().message());
  };
  EXPECT_THAT(why({.colors = {{1, 2, 3, 4}}}), HasSubstr("colours are for stored maps"));
  EXPECT_THAT(why({.ignore = 300}), HasSubstr("ignore is 300"));
  EXPECT_THAT(why({.classes = 300}), HasSubstr("300 classes"));
  EXPECT_THAT(why({.wide = true, .classes = 300}), HasSubstr("255, which is what to ignore"));
}

}  // namespace
}  // namespace shardpack
