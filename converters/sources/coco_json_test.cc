#include "converters/sources/coco_json.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kWhole = R"({
  "info": {"images": [{"id": 9}], "deep": [[{"id": 1}]]},
  "annotations": [
    {"id": 1, "image_id": 20, "category_id": 7, "bbox": [1, 2, 3, 4], "segmentation": [[1, 2]], "area": 5.5},
    {"id": 2, "image_id": 10, "category_id": 3, "bbox": [0.5, 0, 2, 2], "iscrowd": 1, "segmentation": {"counts": [1], "size": [2, 3]}},
    {"id": 3, "image_id": 20, "category_id": 3, "bbox": [0, 0, 10, 2]}
  ],
  "images": [{"id": 20, "file_name": "b.jpg", "license": {"id": 5}}, {"id": 10, "file_name": "a.jpg"}],
  "categories": [{"id": 7, "name": "cat"}, {"id": 3, "name": "dog", "keypoints": ["nose"]}]
})";

TEST(CocoJsonTest, ReadsWhatMattersInAnyOrder) {
  CocoFile coco;
  const absl::Status parsed = ParseCoco(kWhole, "a.json", CocoKeep::kBoxes, &coco);
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_THAT(coco.categories, ElementsAre("dog", "cat"));
  ASSERT_THAT(coco.images, SizeIs(2));
  EXPECT_EQ(coco.images[0].file_name, "b.jpg");
  const auto objects = coco.ObjectsOf(coco.images[0]);
  ASSERT_THAT(objects, SizeIs(2));
  EXPECT_EQ(objects[0].area, 5.5);
  EXPECT_EQ(objects[0].category, 1);
  EXPECT_EQ(objects[1].area, 20);
  EXPECT_TRUE(coco.ObjectsOf(coco.images[1])[0].crowd);
  EXPECT_EQ(
      BoxesJson(coco, coco.images[1], std::vector<int32_t>{4, 5}),
      R"({"boxes":[{"area":4,"bbox":[0.5,0,2,2],"category":"dog","iscrowd":1,"label":4}],"image_id":10})");
}

TEST(CocoJsonTest, NoMemberStandsTwice) {
  for (const std::string name : {"images", "annotations", "categories"}) {
    CocoFile coco;
    const std::string text =
        std::string(kWhole.substr(0, kWhole.rfind('}'))) + ", \"" + name + "\": []}";
    const absl::Status parsed = ParseCoco(text, "a.json", CocoKeep::kAll, &coco);
    EXPECT_THAT(std::string(parsed.message()), HasSubstr("the member " + name + " stands twice"));
  }
}

TEST(CocoJsonTest, AnArrayIsToldOfJsonLines) {
  CocoFile coco;
  const absl::Status parsed = ParseCoco(R"([{"path": "a"}])", "a.json", CocoKeep::kAll, &coco);
  EXPECT_THAT(std::string(parsed.message()), HasSubstr(".jsonl"));
}

TEST(CocoJsonTest, KeepsAnnotationsAsTheyAre) {
  CocoFile coco;
  ASSERT_TRUE(ParseCoco(kWhole, "a.json", CocoKeep::kAll, &coco).ok());
  EXPECT_EQ(
      WholeJson(coco, coco.images[1], std::vector<int32_t>{4, 5}),
      R"({"annotations":[{"id":2,"image_id":10,"category_id":3,"bbox":[0.5,0,2,2],"iscrowd":1,)"
      R"("segmentation":{"counts":[1],"size":[2,3]}}],)"
      R"("boxes":[{"area":4,"bbox":[0.5,0,2,2],"category":"dog","iscrowd":1,"label":4}],)"
      R"("image":{"id":10,"file_name":"a.jpg"},"image_id":10})");
  // Numbers as written, texts with escapes, empty values, and captions.
  CocoFile odd;
  const absl::Status parsed = ParseCoco(
      R"({"images": [{"id": 1, "file_name": "a", "x": [ ], "y": { }, "t": "\u00e9\n\"", "n": null, "b": [true, false]}],)"
      R"("annotations": [{"image_id": 1, "caption": "a cat", "score": 1.50, "e": 1E-3, "i": -7, "u": 18446744073709551615}]})",
      "a.json", CocoKeep::kAll, &odd);
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_TRUE(odd.objects.empty());
  EXPECT_EQ(
      WholeJson(odd, odd.images[0], {}),
      R"({"annotations":[{"image_id":1,"caption":"a cat","score":1.50,"e":1E-3,"i":-7,"u":18446744073709551615}],)"
      R"("boxes":[],)"
      "\"image\":{\"id\":1,\"file_name\":\"a\",\"x\":[],\"y\":{},\"t\":\"\u00e9\\n\\\"\",\"n\":"
      "null,\"b\":[true,false]},"
      "\"image_id\":1}");
}

std::string WithCrowd(const std::string& value) {
  return R"({"images": [{"id": 1, "file_name": "a"}], "categories": [{"id": 1, "name": "b"}],
             "annotations": [{"iscrowd": )" +
         value + R"(, "id": 5, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}]})";
}

TEST(CocoJsonTest, CrowdsOfAnyNumber) {
  for (const auto& [value, crowd] : std::vector<std::pair<std::string, bool>>{{"1", true},
                                                                              {"1.0", true},
                                                                              {"true", true},
                                                                              {"0", false},
                                                                              {"0.0", false},
                                                                              {"false", false},
                                                                              {"null", false}}) {
    CocoFile coco;
    const absl::Status parsed = ParseCoco(WithCrowd(value), "a.json", CocoKeep::kBoxes, &coco);
    ASSERT_TRUE(parsed.ok()) << parsed;
    EXPECT_EQ(coco.objects[0].crowd, crowd) << value;
  }
  for (const char* value : {"\"1\"", "2", "-1", "0.5", "18446744073709551615", "[1]", "{}"}) {
    CocoFile coco;
    EXPECT_THAT(std::string(ParseCoco(WithCrowd(value), "a.json", CocoKeep::kAll, &coco).message()),
                HasSubstr("a.json: the annotation 5 has an iscrowd that is not 0 or 1"))
        << value;
  }
}

std::string OneAnnotation(const std::string& members) {
  return R"({"images": [{"id": 1, "file_name": "a"}], "categories": [{"id": 1, "name": "b"}],
             "annotations": [{"id": 5, "image_id": 1, )" +
         members + "}]}";
}

TEST(CocoJsonTest, BoxesAreOfNumbers) {
  for (const char* const box : {R"([1, 2, null, 3, 4])", R"(["a", 1, 2, 3, 4])", "[true, 2, 3, 4]",
                                "[[1], 1, 2, 3, 4]", "[{}, 1, 2, 3, 4]", "[null]"}) {
    for (const CocoKeep keep : {CocoKeep::kBoxes, CocoKeep::kAll}) {
      CocoFile coco;
      const std::string json = OneAnnotation(absl::StrCat(R"("category_id": 1, "bbox": )", box));
      EXPECT_THAT(std::string(ParseCoco(json, "a.json", keep, &coco).message()),
                  HasSubstr("the annotation 5 has a bbox of more than numbers"))
          << box;
    }
  }
}

TEST(CocoJsonTest, AnOutlineIsNoCaption) {
  for (const auto& [members, caption] : std::vector<std::pair<std::string, bool>>{
           {R"("caption": "x")", true},
           {R"("caption": "x", "bbox": [], "segmentation": [], "keypoints": [])", true},
           {R"("segmentation": [[1, 2, 3, 4, 5, 6]])", false},
           {R"("segmentation": {"counts": "0S1", "size": [5, 7]})", false},
           {R"("keypoints": [1, 2, 2])", false}}) {
    CocoFile coco;
    const absl::Status parsed = ParseCoco(OneAnnotation(members), "a.json", CocoKeep::kAll, &coco);
    if (caption) {
      EXPECT_TRUE(parsed.ok()) << parsed;
    } else {
      EXPECT_THAT(std::string(parsed.message()),
                  HasSubstr("5 has no whole number as its category"));
    }
  }
}

TEST(CocoJsonTest, ErrorsNameThePlace) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"{\"images\": [\n}", "line 2"},
           {"{\"images\": [{\"id\": \"x\"}]}", "ids are numbers"},
           {"{\"annotations\": [{\"category_id\": true}]}", "category_id is a truth value"},
           {"{\"images\": [{\"file_name\": \"a\"}]}", "image number 0"},
           {"{\"categories\": [{\"id\": 1, \"name\": \"a\"}, {\"id\": 1, \"name\": \"b\"}]}",
            "category 1"},
           {"{\"annotations\": [{\"id\": 5, \"image_id\": 1, \"bbox\": [1, 2, 3, 4]}]}",
            "annotation 5"},
           {"{\"annotations\": [{\"id\": 6, \"caption\": \"a cat\"}]}", "annotation 6"},
           {"{\"annotations\": [{\"id\": 5, \"image_id\": 1, \"category_id\": 1, \"bbox\": [1, 2, "
            "3, 4, 5]}]}",
            "bbox of 5"},
           {"{}", "not a COCO json"},
           {std::string(200, '['), "not an object"},
           {"{\"x\": " + std::string(200, '['), "too deeply"}}) {
    CocoFile coco;
    const absl::Status parsed = ParseCoco(text, "a.json", CocoKeep::kAll, &coco);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed)) << text;
    EXPECT_THAT(std::string(parsed.message()),
                ::testing::AllOf(HasSubstr("a.json: "), HasSubstr(why)))
        << text;
  }
}

}  // namespace
}  // namespace shardpack
