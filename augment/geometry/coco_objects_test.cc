// ParseObjects: the forms that there are, what belongs together, and what is refused by name.
#include "augment/geometry/coco_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shardpack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// As `pack` writes it (converters/sources/coco_json.cc, WholeJson), with a caption, and keypoints
// of a second file.
constexpr char kPacked[] = R"({"annotations":[
{"area":50,"bbox":[1,2,10,20],"category_id":18,"id":7,"image_id":3,"iscrowd":0,
 "segmentation":[[1,2,11,2,11,22],[1,2,3,4]]},
{"caption":"two dogs","id":1,"image_id":3},
{"bbox":[0,0,3.5,4],"category_id":1,"id":8,"image_id":3,"iscrowd":1,
 "segmentation":{"counts":[2,3,1],"size":[3,2]}},
{"bbox":[1,2,10,20],"category_id":18,"id":7,"image_id":3,"keypoints":[1,2,2,0,0,0]}],
"boxes":[{"area":50,"bbox":[1,2,10,20],"category":"dog","iscrowd":0,"label":4},
{"area":14,"bbox":[0,0,3.5,4],"category":"person","iscrowd":1,"label":0}],
"image":{"height":3,"width":2,"id":3},"image_id":3})";

TEST(ParseObjects, WhatPackWrites) {
  const auto objects = ParseObjects(kPacked);
  ASSERT_TRUE(objects.ok()) << objects.status();
  ASSERT_THAT(*objects, SizeIs(2));
  const ImageObject& dog = (*objects)[0];
  EXPECT_EQ(dog.box, (PixelBox{1, 2, 11, 22}));
  EXPECT_EQ(dog.area, 50);
  EXPECT_EQ(dog.label, 4);
  EXPECT_FALSE(dog.crowd);
  ASSERT_THAT(dog.polygons, SizeIs(1));  // two points have no area
  EXPECT_EQ(dog.polygons[0], (Ring{{1, 2}, {11, 2}, {11, 22}}));
  EXPECT_EQ(dog.mask, std::nullopt);
  EXPECT_THAT(dog.keypoints, ::testing::ElementsAre(Keypoint{1, 2, 2}, Keypoint{0, 0, 0}));
  const ImageObject& person = (*objects)[1];
  EXPECT_EQ(person.box, (PixelBox{0, 0, 3.5, 4}));
  EXPECT_EQ(person.label, 0);
  EXPECT_TRUE(person.crowd);
  ASSERT_TRUE(person.mask.has_value());
  EXPECT_EQ(person.mask->counts, (std::vector<uint32_t>{2, 3, 1}));
  EXPECT_THAT(person.keypoints, IsEmpty());
}

TEST(ParseObjects, OtherForms) {
  const auto boxes =
      ParseObjects(R"({"boxes":[{"bbox":[1,2,3,4],"category":"a","label":5}],"image_id":1})");
  ASSERT_TRUE(boxes.ok()) << boxes.status();
  EXPECT_EQ((*boxes)[0].label, 5);
  EXPECT_EQ((*boxes)[0].area, 12);
  for (const char* const json :
       {R"([{"bbox":[1,2,3,4],"category_id":9},{"caption":"x"}])",
        R"([{"caption":"x","bbox":[]},{"bbox":[1,2,3,4],"category_id":9}])",
        R"({"annotations":[{"bbox":[1,2,3,4],"category_id":9}]})"}) {
    const auto objects = ParseObjects(json);
    ASSERT_TRUE(objects.ok()) << objects.status();
    ASSERT_THAT(*objects, SizeIs(1));
    EXPECT_EQ((*objects)[0].label, 9);
  }
  const auto compressed = ParseObjects(
      R"([{"bbox":[0,0,7,5],"segmentation":{"size":[5,7],"counts":"0S1"},"iscrowd":true}])");
  ASSERT_TRUE(compressed.ok()) << compressed.status();
  EXPECT_EQ((*compressed)[0].mask, (RunLengths{5, 7, {0, 35}}));
  EXPECT_EQ((*compressed)[0].label, -1);
  for (const char* const empty : {"[]", R"({"boxes":[]})", R"({"annotations":[]})",
                                  R"({"annotations":[{"caption":"a"}],"boxes":[]})"}) {
    const auto none = ParseObjects(empty);
    ASSERT_TRUE(none.ok()) << empty << none.status();
    EXPECT_THAT(*none, IsEmpty());
  }
  // Members that mean nothing here may hold anything.
  EXPECT_TRUE(
      ParseObjects(R"([{"bbox":[1,2,3,4],"attributes":{"bbox":[1],"a":[[1,{"b":2}]]}}])").ok());
}

TEST(ParseObjects, CrowdsOfAnyNumber) {
  const auto objects =
      ParseObjects(R"([{"bbox":[1,2,3,4],"iscrowd":1},{"bbox":[1,2,3,4],"iscrowd":1.0},
                       {"bbox":[1,2,3,4],"iscrowd":true},{"bbox":[1,2,3,4],"iscrowd":0},
                       {"bbox":[1,2,3,4],"iscrowd":0.0},{"bbox":[1,2,3,4],"iscrowd":false},
                       {"bbox":[1,2,3,4],"iscrowd":null},{"bbox":[1,2,3,4]}])");
  ASSERT_TRUE(objects.ok()) << objects.status();
  for (size_t i = 0; i < objects->size(); ++i) EXPECT_EQ((*objects)[i].crowd, i < 3) << i;
}

std::string Why(std::string_view json) {
  const auto objects = ParseObjects(json);
  EXPECT_TRUE(absl::IsInvalidArgument(objects.status())) << json << objects.status();
  return std::string(objects.status().message());
}

TEST(ParseObjects, WhatIsWrongIsNamed) {
  EXPECT_THAT(Why(""), HasSubstr("not JSON"));
  EXPECT_THAT(Why("[{]"), HasSubstr("not JSON: damaged at byte 3"));
  EXPECT_THAT(Why("7"), HasSubstr("not a list of objects"));
  EXPECT_THAT(Why("\"boxes\""), HasSubstr("not a list of objects"));
  EXPECT_THAT(Why("null"), HasSubstr("not a list of objects"));
  EXPECT_THAT(Why("{}"), HasSubstr("this is not COCO's"));
  EXPECT_THAT(Why(R"({"boxes":7})"), HasSubstr("this is not COCO's"));
  EXPECT_THAT(Why(R"({"bbox":[1,2,3,4]})"), HasSubstr("this is not COCO's"));
  EXPECT_THAT(Why("[[1,2,3,4]]"), HasSubstr("object 0 is a list"));
  EXPECT_THAT(Why(R"({"boxes":[{"bbox":[1,2,3,4],"label":"disc"}]})"),
              HasSubstr("object 0 has a label that is not a whole number"));
  for (const char* value : {"\"disc\"", "1.5", "true", "9223372036854775808", "[5]", "{}"}) {
    EXPECT_THAT(Why(absl::StrCat(R"([{"bbox":[1,2,3,4],"category_id":)", value, "}]")),
                HasSubstr("object 0 has a category_id that is not a whole number"));
  }
  for (const char* value : {"\"1\"", "2", "-1", "0.5", "18446744073709551615", "[1]", "{}"}) {
    EXPECT_THAT(
        Why(absl::StrCat(R"([{"bbox":[1,2,3,4]},{"bbox":[1,2,3,4],"iscrowd":)", value, "}]")),
        HasSubstr("object 1 has an iscrowd that is not 0 or 1"));
  }
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4]},5])"), HasSubstr("object 1 is a number"));
  EXPECT_THAT(Why(R"(["a"])"), HasSubstr("object 0 is text"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3]}])"), HasSubstr("object 0 has a bbox of 3 numbers"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4,5]}])"), HasSubstr("a bbox of 5 numbers"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"bbox":[1,2,3,4]}])"), HasSubstr("the member bbox twice"));
  EXPECT_THAT(Why(R"([{"category_id":1}])"), HasSubstr("object 0 has no bbox"));
  EXPECT_THAT(Why(R"([{"bbox":"1","category_id":1}])"), HasSubstr("object 0 has no bbox"));
  for (const char* const member :
       {R"("label":1)", R"("segmentation":[[1,1,9,1,9,9]])", R"("keypoints":[1,2,2])",
        R"("segmentation":{"counts":[1,3],"size":[2,2]})"}) {
    EXPECT_THAT(Why(absl::StrCat(R"([{"caption":"x"},{)", member, "}]")),
                HasSubstr("object 0 has no bbox"))
        << member;
  }
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4]},{"bbox":[1,2,-3,4]}])"),
              HasSubstr("object 1 has a bbox of the negative size -3 x 4"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,NaN,4]}])"), HasSubstr("damaged at byte"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,1e999,4]}])"), HasSubstr("damaged at byte"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,1e300,4]}])"), HasSubstr("not one of an image"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"segmentation":[[1,2,3,4,5,6,7]]}])"),
              HasSubstr("polygon 0 of 7 numbers"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"segmentation":[1,2,3,4,5,6]}])"),
              HasSubstr("a segmentation that is a list of numbers"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"segmentation":{"counts":[1,2]}}])"),
              HasSubstr("without a size"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"segmentation":{"counts":[1,2.5],"size":[2,2]}}])"),
              HasSubstr("not whole numbers"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"segmentation":{"counts":[1,9],"size":[2,2]}}])"),
              HasSubstr("object 0 has run lengths: count 1 leads beyond"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"segmentation":{"counts":"!","size":[2,2]}}])"),
              HasSubstr("no count at character 0"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"segmentation":[{"a":1}]}])"),
              HasSubstr("an object among the numbers"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"keypoints":{"a":1}}])"),
              HasSubstr("an object among the numbers"));
  for (const auto& [members, what] :
       {std::pair(R"("bbox":[null,10,20,30,40])", "null"),
        std::pair(R"("bbox":["1",10,20,30])", "text"),
        std::pair(R"("bbox":[0,0,9,9],"keypoints":[[1,2,2]])", "a list"),
        std::pair(R"("bbox":[0,0,9,9],"keypoints":[1,true,2])", "a truth value"),
        std::pair(R"("bbox":[0,0,9,9],"segmentation":[[0,null]])", "null")}) {
    EXPECT_THAT(ParseObjects(absl::StrCat("[{", members, "}]")).status().message(),
                HasSubstr(absl::StrCat("has ", what, " among the numbers")));
  }
  EXPECT_THAT(
      ParseObjects(R"([{"bbox":[0,0,9,9],"segmentation":[[0,0],[9,0],[9,9]]}])").status().message(),
      HasSubstr("polygon 0 of one point"));
  // An object in a segmentation that is one says nothing, whatever its members are called.
  EXPECT_TRUE(
      ParseObjects(R"([{"bbox":[1,2,3,4],"segmentation":{"":[1,2],"x":{"y":3,"":[[1]]}}}])").ok());
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"keypoints":[1,2]}])"),
              HasSubstr("keypoints of 2 numbers"));
  EXPECT_THAT(Why(R"([{"bbox":[1,2,3,4],"keypoints":[1,2,3]}])"),
              HasSubstr("keypoint 0 that is not"));
  EXPECT_THAT(Why(R"({"boxes":[{"bbox":[1,2,3,4]}],"boxes":[]})"), HasSubstr("boxes twice"));
  EXPECT_THAT(Why(R"({"boxes":[{"bbox":[1,2,3,4]}],"annotations":[{"bbox":[1,2,3,5]}]})"),
              HasSubstr("object 0 has another bbox among the boxes"));
  EXPECT_THAT(Why(R"({"boxes":[{"bbox":[1,2,3,4]},{"bbox":[1,2,3,4]}],)"
                  R"("annotations":[{"bbox":[1,2,3,4]}]})"),
              HasSubstr("2 boxes, but only 1 annotations"));
  EXPECT_THAT(Why(std::string(100, '[')), HasSubstr("object 0 is a list"));
  EXPECT_THAT(Why("{\"a\":" + std::string(100, '[')), HasSubstr("nested too deeply"));
}

TEST(ParseObjects, AsManyAsOneImageMayHave) {
  std::string json = "[";
  for (size_t i = 0; i < kMaxObjects; ++i)
    absl::StrAppend(&json, i > 0 ? "," : "", R"({"bbox":[1,2,3,4]})");
  EXPECT_THAT(*ParseObjects(json + "]"), SizeIs(kMaxObjects));
  EXPECT_THAT(Why(json + R"(,{"bbox":[1,2,3,4]}])"), HasSubstr("more than the 65535 objects"));
}

}  // namespace
}  // namespace shardpack
