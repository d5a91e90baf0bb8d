// Decoded fields of the C interface: label maps, further images, objects and maps of points as the
// loader makes them, and what cannot be asked for.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "augment/geometry/object_batch.h"
#include "augment/geometry/object_labels.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/label_pipeline.h"
#include "images/codecs/decode_testing.h"
#include "images/codecs/encode.h"
#include "tests/api/fixture.h"

namespace shardpack::testing {
namespace {

using ::testing::HasSubstr;

class ApiFieldsTest : public ApiTest {
 protected:
  ApiFieldsTest() {
    TestDatasetOptions made{.shards = 3, .records_per_shard = 10};
    made.samples = MakeTestSamples(made);
    for (uint32_t i = 0; i < made.samples.size(); ++i) {
      TestSample& sample = made.samples[i];
      const uint32_t width = 40 + i, height = 90 - i;
      const Image jpeg = EncodeJpeg(MakePattern(width, height, 3, i), {});
      sample.image.assign(jpeg.begin(), jpeg.end());
      sample.info = {.width = width, .height = height, .format = ImageFormat::kJpeg};
      sample.more_fields = {
          {"mask", EncodedMask(width, height, i)},
          {"right", sample.image},
          {"json",
           absl::StrCat(R"([{"bbox":[4,5,)", width / 2, ",", height / 2, R"(],"category_id":)", i,
                        R"(,"segmentation":[[4,5,30,5,30,40]],"keypoints":[9,9,2,1,1,1]}])")}};
    }
    samples_ = made.samples;
    WriteTestDataset(folder_, ToyFormat(), made);
    labels_.field = "mask";
    labels_.kind = SHARDPACK_AS_LABELS;
    labels_.wide_labels = 1;
    right_.field = "right";
    right_.kind = SHARDPACK_AS_IMAGE;
    objects_.field = "json";
    objects_.kind = SHARDPACK_AS_COCO;
    objects_.polygons = 1;
    objects_.keypoints = 2;
    objects_.keypoint_pairs = 1;
    objects_.pairs = pair_;
    options_.decode = &decode_;
    options_.field_decodes = fields_;
    options_.field_decode_count = 3;
  }
  static shardpack_field_decode Sized() {
    shardpack_field_decode field = {};
    field.size = sizeof(field);
    return field;
  }
  shardpack_code TryLoader() {
    const DatasetHandle dataset = Open();
    const OrderHandle order = MakeOrder();
    shardpack_loader* loader = nullptr;
    const shardpack_code code =
        shardpack_loader_open(dataset.get(), order.get(), &options_, &loader, Error());
    shardpack_loader_release(loader);
    return code;
  }
  Crop CropOf(uint64_t id) const {
    CropOptions crop = {.width = decode_.width, .height = decode_.height};
    crop.flip_probability = decode_.flip_probability;
    return ChooseCrop(crop, samples_[id].info.width, samples_[id].info.height,
                      {.seed = options_.augment_seed, .epoch = 0, .id = id});
  }

  const uint32_t pair_[2] = {0, 1};
  shardpack_field_decode labels_ = Sized(), right_ = Sized(), objects_ = Sized();
  const shardpack_field_decode* fields_[3] = {&labels_, &right_, &objects_};
  shardpack_decode decode_ = Decode();
  shardpack_loader_options options_ = LoaderOptions();
};

TEST_F(ApiFieldsTest, ComeWithEveryBatch) {
  const LoaderHandle loader = OpenLoader(options_);
  ASSERT_NE(loader, nullptr);
  const size_t pixels = size_t{decode_.width} * decode_.height;
  for (int step = 0; step < 4; ++step) {
    const BatchHandle batch = Next(loader);
    ASSERT_NE(batch, nullptr) << Why();
    const shardpack_batch_view view = View(batch);
    shardpack_decoded_field labels = {}, right = {};
    labels.size = right.size = sizeof(labels);
    ASSERT_EQ(shardpack_batch_decoded(batch.get(), "mask", &labels, Error()), SHARDPACK_OK)
        << Why();
    ASSERT_EQ(shardpack_batch_decoded(batch.get(), "right", &right, Error()), SHARDPACK_OK);
    EXPECT_EQ(labels.kind, SHARDPACK_AS_LABELS);
    EXPECT_EQ(labels.label_bytes, 2u);
    ASSERT_EQ(labels.bytes, view.slots * pixels * 2);
    // The same image with the same crop.
    ASSERT_EQ(right.bytes, view.pixel_bytes);
    EXPECT_EQ(std::memcmp(right.data, view.pixels, right.bytes), 0);
    std::vector<double> affine(view.slots * 6);
    ASSERT_EQ(shardpack_batch_affine(batch.get(), affine.data(), view.slots, Error()), SHARDPACK_OK)
        << Why();
    std::vector<double> projection(view.slots * 9);
    ASSERT_EQ(shardpack_batch_projection(batch.get(), projection.data(), view.slots, Error()),
              SHARDPACK_OK);
    for (size_t i = 0; i < projection.size(); ++i) {
      const double last_row[] = {0, 0, 1};
      EXPECT_EQ(projection[i], i % 9 < 6 ? affine[i / 9 * 6 + i % 9] : last_row[i % 9 - 6]);
    }
    shardpack_objects objects = {};
    objects.size = sizeof(objects);
    ASSERT_EQ(shardpack_batch_objects(batch.get(), &objects, Error()), SHARDPACK_OK) << Why();
    EXPECT_EQ(objects.keypoints_each, 2u);
    EXPECT_EQ(objects.offsets[view.slots], static_cast<int64_t>(objects.objects));
    for (uint64_t slot = 0; slot < view.slots; ++slot) {
      const uint64_t id = view.ids[slot];
      const int64_t begin = objects.offsets[slot], end = objects.offsets[slot + 1];
      if (id == SHARDPACK_PADDING_ID) {
        EXPECT_EQ(begin, end);
        EXPECT_EQ(affine[slot * 6], 1);
        continue;
      }
      const Affine map = AffineOf(CropOf(id), decode_.width, decode_.height);
      EXPECT_EQ(affine[slot * 6], map.xx);
      EXPECT_EQ(affine[slot * 6 + 2], map.x0);
      EXPECT_EQ(affine[slot * 6 + 4], map.yy);
      EXPECT_EQ(affine[slot * 6 + 5], map.y0);
      PixelPipelineOptions image;
      image.crop = {.width = decode_.width, .height = decode_.height};
      ShownImage shown;
      shown.width = samples_[id].info.width;
      shown.height = samples_[id].info.height;
      std::vector<uint16_t> expected(pixels);
      ASSERT_TRUE(
          LabelPipeline::Create(image, {.wide = true})
              ->Run(AsBytes(samples_[id].more_fields[0].second), shown, CropOf(id), expected.data())
              .ok());
      EXPECT_EQ(std::memcmp(static_cast<uint16_t*>(labels.data) + slot * pixels, expected.data(),
                            pixels * 2),
                0);
      const Movement movement = {.source_width = double(shown.width),
                                 .source_height = double(shown.height),
                                 .crop = CropOf(id),
                                 .width = double(decode_.width),
                                 .height = double(decode_.height)};
      const auto moved = MoveObjects(*ParseObjects(samples_[id].more_fields[2].second), movement,
                                     {.polygons = true, .keypoints = 2, .pairs = {{0, 1}}});
      ASSERT_EQ(end - begin, static_cast<int64_t>(moved->labels.size()));
      if (begin == end) continue;
      EXPECT_EQ(objects.labels[begin], static_cast<int64_t>(id));
      EXPECT_TRUE(std::equal(moved->boxes.begin(), moved->boxes.end(), objects.boxes + 4 * begin));
      EXPECT_TRUE(std::equal(moved->keypoints.begin(), moved->keypoints.end(),
                             objects.keypoints + 6 * begin));
      EXPECT_EQ(objects.areas[begin], moved->areas[0]);
      EXPECT_EQ(objects.keep[begin], 0u);
      EXPECT_EQ(objects.crowds[begin], 0u);
      EXPECT_EQ(objects.ring_offsets[begin + 1] - objects.ring_offsets[begin], moved->rings[0]);
      if (moved->rings[0] == 0) continue;
      const int64_t point = objects.point_offsets[objects.ring_offsets[begin]];
      EXPECT_TRUE(
          std::equal(moved->polygons.begin(), moved->polygons.end(), objects.polygons + 2 * point));
    }
    std::memset(labels.data, 7, labels.bytes);  // the caller's
  }
}

TEST_F(ApiFieldsTest, ALabelMapOfObjects) {
  shardpack_field_decode map = Sized();
  map.field = "json";
  map.kind = SHARDPACK_AS_COCO_LABELS;
  map.ignore = 200;
  fields_[0] = &objects_;
  fields_[1] = &map;
  options_.field_decode_count = 2;
  const BatchHandle batch = Next(OpenLoader(options_));
  ASSERT_NE(batch, nullptr) << Why();
  const shardpack_batch_view view = View(batch);
  shardpack_objects objects = {};
  objects.size = sizeof(objects);
  ASSERT_EQ(shardpack_batch_objects(batch.get(), &objects, Error()), SHARDPACK_OK) << Why();
  shardpack_decoded_field labels = {};
  labels.size = sizeof(labels);
  ASSERT_EQ(shardpack_batch_decoded(batch.get(), "json", &labels, Error()), SHARDPACK_OK) << Why();
  EXPECT_EQ(labels.kind, SHARDPACK_AS_COCO_LABELS);
  EXPECT_EQ(labels.label_bytes, 1u);
  const size_t pixels = size_t{decode_.width} * decode_.height;
  ASSERT_EQ(labels.bytes, view.slots * pixels);
  for (uint64_t slot = 0; slot < view.slots; ++slot) {
    const uint64_t id = view.ids[slot];
    PixelPipelineOptions made;
    made.crop.width = decode_.width;
    made.crop.height = decode_.height;
    std::vector<uint8_t> expected(pixels);
    ASSERT_TRUE(ObjectLabels::Create(made, {.ignore = 200}, Overlap::kIgnore)
                    ->Run(*ParseObjects(samples_[id].more_fields[2].second),
                          samples_[id].info.width, samples_[id].info.height, CropOf(id),
                          /*same_size=*/true, expected.data())
                    .ok());
    EXPECT_EQ(std::memcmp(expected.data(), static_cast<const uint8_t*>(labels.data) + slot * pixels,
                          pixels),
              0);
  }
  map.overlap = 2;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
  EXPECT_THAT(Text(Info().message), HasSubstr("what overlaps become"));
  map.overlap = SHARDPACK_OVERLAP_LAST;
  EXPECT_EQ(TryLoader(), SHARDPACK_OK) << Why();
  map.size = 96;  // of a program that knows no overlaps
  EXPECT_EQ(TryLoader(), SHARDPACK_OK) << Why();
  map.size = sizeof(map);
  map.reserved = 1;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
}

TEST_F(ApiFieldsTest, WhatABatchDoesNotHave) {
  options_.field_decode_count = 1;
  const LoaderHandle loader = OpenLoader(options_);
  const BatchHandle batch = Next(loader);
  shardpack_decoded_field field = {};
  field.size = sizeof(field);
  EXPECT_EQ(shardpack_batch_decoded(batch.get(), "image", &field, Error()), SHARDPACK_NOT_FOUND);
  EXPECT_EQ(Text(Info().field), "image");
  EXPECT_EQ(shardpack_batch_decoded(batch.get(), nullptr, &field, Error()), SHARDPACK_INVALID);
  EXPECT_EQ(shardpack_batch_decoded(batch.get(), "mask", nullptr, Error()), SHARDPACK_INVALID);
  field.size = 8;
  EXPECT_EQ(shardpack_batch_decoded(batch.get(), "mask", &field, Error()), SHARDPACK_INVALID);
  shardpack_objects objects = {};
  objects.size = sizeof(objects);
  EXPECT_EQ(shardpack_batch_objects(batch.get(), &objects, Error()), SHARDPACK_NOT_FOUND);
  double affine[6 * 8];
  EXPECT_EQ(shardpack_batch_affine(batch.get(), affine, 7, Error()), SHARDPACK_INVALID);
  const DatasetHandle dataset = Open();
  const uint64_t id = 1;
  shardpack_batch* read = nullptr;
  ASSERT_EQ(shardpack_dataset_read(dataset.get(), &id, 1, nullptr, 0, &read, Error()),
            SHARDPACK_OK);
  const BatchHandle encoded(read);
  EXPECT_EQ(shardpack_batch_affine(encoded.get(), affine, 1, Error()), SHARDPACK_UNSUPPORTED);
  EXPECT_EQ(shardpack_batch_projection(encoded.get(), affine, 1, Error()), SHARDPACK_UNSUPPORTED);
  EXPECT_EQ(shardpack_batch_decoded(encoded.get(), "mask", &field, Error()), SHARDPACK_NOT_FOUND);
  EXPECT_EQ(shardpack_batch_objects(encoded.get(), &objects, Error()), SHARDPACK_NOT_FOUND);
}

// Which maps there are depends on the plan, not on what a batch has drawn.
TEST_F(ApiFieldsTest, PerspectivesHaveNoAffineMaps) {
  double numbers[9 * 8];
  options_.augment = "perspective(p=0)";
  BatchHandle batch = Next(OpenLoader(options_));
  ASSERT_NE(batch, nullptr) << Why();
  EXPECT_EQ(shardpack_batch_affine(batch.get(), numbers, 8, Error()), SHARDPACK_UNSUPPORTED);
  EXPECT_NE(Text(Info().message).find("the batch's projection"), std::string::npos);
  EXPECT_EQ(shardpack_batch_projection(batch.get(), numbers, 8, Error()), SHARDPACK_OK);
  options_.augment = "elastic(p=0)";
  EXPECT_NE(TryLoader(), SHARDPACK_OK);
  EXPECT_NE(Text(Info().message).find("objects do not follow"), std::string::npos);
  options_.field_decode_count = 0;
  options_.field_decodes = nullptr;
  batch = Next(OpenLoader(options_));
  ASSERT_NE(batch, nullptr) << Why();
  EXPECT_EQ(shardpack_batch_projection(batch.get(), numbers, 8, Error()), SHARDPACK_UNSUPPORTED);
}

int32_t Mark(void* self, uint8_t* pixels, uint32_t, uint32_t, uint32_t, uint64_t,
             const uint64_t* sample, uint64_t, char* error) {
  if (sample[2] == *static_cast<uint64_t*>(self)) {
    std::strcpy(error, "not this one");
    return 1;
  }
  pixels[0] = 77;
  return 0;
}

TEST_F(ApiFieldsTest, OperationsOfUsersAreApplied) {
  uint64_t refused = UINT64_MAX;
  shardpack_own_operation mark = {};
  mark.size = sizeof(mark);
  mark.name = "mark";
  mark.run = reinterpret_cast<const void*>(&Mark);
  mark.self = &refused;
  const shardpack_own_operation* const all[] = {&mark};
  options_.augment = "invert own(mark)";
  EXPECT_NE(TryLoader(), SHARDPACK_OK);
  EXPECT_NE(Text(Info().message).find("own(mark): no operation"), std::string::npos);
  options_.own_operations = all;
  options_.own_operation_count = 1;
  const BatchHandle batch = Next(OpenLoader(options_));
  ASSERT_NE(batch, nullptr) << Why();
  const shardpack_batch_view view = View(batch);
  const size_t each = view.pixel_bytes / view.slots;
  for (uint64_t slot = 0; slot < view.slots; ++slot)
    EXPECT_EQ(static_cast<const uint8_t*>(view.pixels)[slot * each], 77);
  refused = view.ids[2];
  const LoaderHandle failing = OpenLoader(options_);
  EXPECT_EQ(Next(failing), nullptr);
  EXPECT_EQ(Info().code, SHARDPACK_DATA_LOSS);
  EXPECT_NE(Text(Info().message).find("own(mark): not this one"), std::string::npos) << Why();
  mark.run = nullptr;
  EXPECT_NE(TryLoader(), SHARDPACK_OK);
  mark.plugin = "no_such.so";
  EXPECT_NE(TryLoader(), SHARDPACK_OK);
  EXPECT_NE(Text(Info().message).find("no_such.so"), std::string::npos);
  options_.own_operations = nullptr;
  EXPECT_NE(TryLoader(), SHARDPACK_OK);
}

TEST_F(ApiFieldsTest, OptionsThatCannotBeAreRefused) {
  EXPECT_EQ(TryLoader(), SHARDPACK_OK) << Why();
  const auto refused = [&](shardpack_field_decode& field, auto change) {
    const shardpack_field_decode before = field;
    change(field);
    EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
    field = before;
    return Why();
  };
  using Field = shardpack_field_decode;
  EXPECT_THAT(refused(labels_, [](Field& f) { f.field = nullptr; }), HasSubstr("name of a field"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.field = "msak"; }), HasSubstr("msak"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.kind = 4; }),
              HasSubstr("what a field becomes is 4"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.share = 3; }), HasSubstr("shares is 3"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.wide_labels = 2; }), HasSubstr("wide_labels"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.ignore = 70'000; }), HasSubstr("ignore"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.ignore = f.ignore_zero = 1; }),
              HasSubstr("ignore"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.wide_labels = 1, f.classes = 300; }),
              HasSubstr("of 300 classes one has the label 255, which is what to ignore"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.color_count = 1; }), HasSubstr("colors"));
  EXPECT_THAT(refused(labels_, [](Field& f) { f.size = 8; }), HasSubstr("options of a field"));
  EXPECT_THAT(refused(objects_, [](Field& f) { f.box_format = 2; }), HasSubstr("format of boxes"));
  EXPECT_THAT(refused(objects_, [](Field& f) { f.min_visible = -1; }), HasSubstr("min_visible"));
  EXPECT_THAT(refused(objects_, [](Field& f) { f.keypoint_pairs = 3; }), HasSubstr("pairs"));
  EXPECT_THAT(refused(objects_, [](Field& f) { f.pairs = nullptr; }), HasSubstr("pairs"));
  EXPECT_THAT(refused(objects_, [](Field& f) { f.share = SHARDPACK_SHARE_NONE; }),
              HasSubstr("share its crop"));
  options_.field_decodes = nullptr;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
  options_.field_decodes = fields_;
  fields_[0] = nullptr;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
  fields_[0] = &labels_;
  options_.decode = nullptr;
  EXPECT_EQ(TryLoader(), SHARDPACK_INVALID);
  EXPECT_THAT(Why(), HasSubstr("with their images"));
}

TEST_F(ApiFieldsTest, ColoursAndZeroAsIgnored) {
  const shardpack_label_color colors[] = {{1, 2, 3, 0, 4}};
  labels_.colors = colors;
  labels_.color_count = 1;
  labels_.ignore_zero = 1;
  options_.field_decode_count = 1;
  const LoaderHandle loader = OpenLoader(options_);
  // The gray of the maps has other colours.
  EXPECT_EQ(Next(loader), nullptr);
  EXPECT_EQ(code_, SHARDPACK_DATA_LOSS);
  EXPECT_THAT(Why(), HasSubstr("which no label has"));
  EXPECT_EQ(Text(Info().field), "mask");
}

TEST_F(ApiFieldsTest, AreNotCopiedToADevice) {
  shardpack_device* device = nullptr;
  ASSERT_EQ(shardpack_device_open("cpu", &device, Error()), SHARDPACK_OK) << Why();
  options_.device = device;
  const LoaderHandle loader = OpenLoader(options_);
  shardpack_loader* on_device = nullptr;
  EXPECT_EQ(shardpack_loader_to_device(loader.get(), device, nullptr, &on_device, Error()),
            SHARDPACK_UNSUPPORTED);
  EXPECT_THAT(Why(), HasSubstr("decoded fields"));
  EXPECT_NE(Next(loader), nullptr) << Why();
  shardpack_device_release(device);
}

}  // namespace
}  // namespace shardpack::testing
