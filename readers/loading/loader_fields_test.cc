// Loader with decode_fields: label maps, further images and objects equal what the pipelines make
// of them alone, moved as the image is; what cannot be moved is a bad sample.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "augment/geometry/object_batch.h"
#include "augment/geometry/object_labels.h"
#include "formats/io/error_facts.h"
#include "formats/io/file.h"
#include "formats/io/hash.h"
#include "formats/testing/datasets/test_dataset.h"
#include "formats/testing/datasets/toy_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "images/augment/label_pipeline.h"
#include "images/codecs/decode_testing.h"
#include "images/codecs/encode.h"
#include "readers/loading/loader.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr uint64_t kSeed = 11;
constexpr uint32_t kWidth = 31, kHeight = 23;

std::string Encoded(const TestPixels& pixels, ImageFormat format) {
  ImageEncoder encoder;
  const auto file = encoder.Encode(pixels.view(), {.format = format});
  EXPECT_TRUE(file.ok()) << file.status();
  return std::string(AsText(*file));
}

class LoaderFieldsTest : public ::testing::Test {
 protected:
  LoaderFieldsTest()
      : folder_(testing::MakeTestFolder(
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}
  ~LoaderFieldsTest() override { (void)RemoveTree(folder_); }

  // Every third sample has no "mask" and no "json". "right" has twice the size of the image.
  void Make() {
    testing::TestDatasetOptions options{.shards = 3, .records_per_shard = 10};
    if (samples_.empty()) {
      samples_ = testing::MakeTestSamples(options);
      for (uint32_t i = 0; i < samples_.size(); ++i) {
        testing::TestSample& sample = samples_[i];
        const uint32_t width = 40 + 3 * i, height = 90 - 2 * i;
        const Image jpeg = EncodeJpeg(MakePattern(width, height, 3, i), {.sampling = {2, 2}});
        sample.image.assign(jpeg.begin(), jpeg.end());
        sample.info = {.width = width, .height = height, .format = ImageFormat::kJpeg};
        sample.more_fields.emplace_back(
            "right", Encoded(MakePattern(2 * width, 2 * height, 3, 50 + i), ImageFormat::kPng));
        if (i % 3 == 0) continue;
        sample.more_fields.emplace_back(
            "mask", Encoded(MakePattern(width, height, 1, 100 + i), ImageFormat::kPng));
        sample.more_fields.emplace_back(
            "json", absl::StrCat(R"([{"bbox":[5,6,)", width / 2, ",", height / 2,
                                 R"(],"category_id":)", i, R"(},{"bbox":[0,0,)", width, ",", height,
                                 R"(],"category_id":7,"keypoints":[8,9,2]}])"));
      }
    }
    options.samples = samples_;
    testing::WriteTestDataset(folder_, testing::ToyFormat(), options);
    dataset_.emplace(*Dataset::Open(folder_));
  }
  std::string* Field(size_t sample, std::string_view name) {
    for (auto& [field, bytes] : samples_[sample].more_fields) {
      if (field == name) return &bytes;
    }
    return nullptr;
  }
  Order MakeOrder() const {
    return *Order::Make(
        {.samples = dataset_->size(), .seed = 2, .global_batch = 8, .tail = Tail::kPad});
  }
  static LoaderOptions Options(int threads = 2) {
    LoaderOptions options{.threads = threads, .epochs = 2};
    options.decode.emplace();
    options.decode->crop = {.width = kWidth, .height = kHeight, .flip_probability = 0.5};
    options.augment_seed = kSeed;
    FieldDecode objects = {.field = "json", .as = FieldAs::kCoco};
    objects.objects.keypoints = 1;
    options.decode_fields = {{.field = "mask", .labels = {.wide = true, .ignore = 300}},
                             {.field = "right", .as = FieldAs::kImage},
                             objects};
    return options;
  }
  Crop CropOf(uint64_t epoch, uint64_t id, uint64_t seed = kSeed) const {
    return ChooseCrop(Options().decode->crop, samples_[id].info.width, samples_[id].info.height,
                      {.seed = seed, .epoch = epoch, .id = id});
  }
  std::string ExpectedLabels(uint64_t epoch, uint64_t id) {
    auto pipeline = *LabelPipeline::Create(*Options().decode, Options().decode_fields[0].labels);
    std::string labels(pipeline.output_bytes(), '\0');
    const std::string* const png = id == kPaddingId ? nullptr : Field(id, "mask");
    if (png == nullptr) {
      FillWithIgnore(Options().decode_fields[0].labels, std::as_writable_bytes(std::span(labels)));
      return labels;
    }
    ShownImage image;
    image.width = samples_[id].info.width;
    image.height = samples_[id].info.height;
    EXPECT_TRUE(pipeline.Run(AsBytes(*png), image, CropOf(epoch, id), labels.data()).ok());
    return labels;
  }
  // The image of twice the size, by a box of twice the edges.
  std::string ExpectedRight(uint64_t id, Crop crop, double scale) {
    auto pipeline = *PixelPipeline::Create(*Options().decode);
    std::string pixels(pipeline.output_bytes(), '\0');
    if (id == kPaddingId) return pixels;
    crop.box = {scale * crop.box.left, scale * crop.box.top, scale * crop.box.right,
                scale * crop.box.bottom};
    const Bytes png = AsBytes(*Field(id, "right"));
    const auto shown = ShownImageOf(png, {}, *Options().decode);
    EXPECT_TRUE(shown.ok());
    EXPECT_TRUE(pipeline.RunCrop(png, *shown, crop, pixels.data()).ok());
    return pixels;
  }
  static std::string_view SlotOf(const DecodedField& field, size_t slots, size_t slot) {
    const size_t each = field.bytes.size() / slots;
    return AsText(field.bytes.subspan(slot * each, each));
  }
  void CompareObjects(const HostBatch& batch, size_t slot) {
    const ObjectBatch& all = *batch.objects();
    const uint64_t id = batch.ids()[slot];
    const size_t begin = all.offsets[slot], count = all.offsets[slot + 1] - begin;
    if (id == kPaddingId || id % 3 == 0) {
      EXPECT_EQ(count, 0u);
      return;
    }
    const SampleGeometry& geometry = batch.geometry()[slot];
    const Movement movement = {.source_width = double(geometry.width),
                               .source_height = double(geometry.height),
                               .crop = CropOf(batch.epoch(), id),
                               .width = kWidth,
                               .height = kHeight};
    const auto moved = MoveObjects(*ParseObjects(*Field(id, "json")), movement, {.keypoints = 1});
    ASSERT_EQ(moved->labels.size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(all.labels[begin + i], moved->labels[i]);
      EXPECT_EQ(all.keep[begin + i], moved->keep[i]);
      for (size_t n = 0; n < 4; ++n)
        EXPECT_EQ(all.boxes[4 * (begin + i) + n], moved->boxes[4 * i + n]);
      for (size_t n = 0; n < 3; ++n)
        EXPECT_EQ(all.keypoints[3 * (begin + i) + n], moved->keypoints[3 * i + n]);
    }
  }
  void CompareGeometry(const HostBatch& batch, size_t slot) {
    const SampleGeometry& geometry = batch.geometry()[slot];
    const uint64_t id = batch.ids()[slot];
    if (id == kPaddingId) {
      EXPECT_EQ(geometry.width, 0u);
      EXPECT_EQ(geometry.map, Projection());
      return;
    }
    EXPECT_EQ(geometry.width, samples_[id].info.width);
    EXPECT_EQ(geometry.height, samples_[id].info.height);
    EXPECT_EQ(geometry.crop, CropOf(batch.epoch(), id));
    EXPECT_EQ(geometry.map, Projection(AffineOf(geometry.crop, kWidth, kHeight)));
  }
  // Counts the samples that were compared.
  size_t Compare(Loader& loader) {
    size_t seen = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto batch = loader.Next(); (*batch).has_value(); batch = loader.Next()) {
        const HostBatch& here = **batch;
        EXPECT_EQ(here.decoded_fields().size(), 3u);
        EXPECT_EQ(here.objects()->offsets.size(), here.size() + 1);
        for (size_t i = 0; i < here.size(); ++i) {
          const uint64_t id = here.ids()[i];
          CompareGeometry(here, i);
          CompareObjects(here, i);
          EXPECT_EQ(SlotOf(here.decoded_fields()[0], here.size(), i),
                    ExpectedLabels(here.epoch(), id));
          const Crop crop = id == kPaddingId ? Crop() : CropOf(here.epoch(), id);
          EXPECT_EQ(SlotOf(here.decoded_fields()[1], here.size(), i), ExpectedRight(id, crop, 2));
          seen += id == kPaddingId ? 0 : 1;
        }
      }
    }
    return seen;
  }
  absl::Status Why(const LoaderOptions& options) {
    return Loader::Open(*dataset_, MakeOrder(), {}, options, memory_).status();
  }
  absl::Status FirstError() {
    auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, Options(), memory_);
    absl::Status status;
    for (int i = 0; i < 10 && status.ok(); ++i) status = loader.Next().status();
    return status;
  }

  PageableMemory memory_;
  std::string folder_;
  std::vector<testing::TestSample> samples_;
  std::optional<Dataset> dataset_;
};

TEST_F(LoaderFieldsTest, AllMoveWithTheImage) {
  Make();
  for (const int threads : {1, 3}) {
    auto loader = Loader::Open(*dataset_, MakeOrder(), {}, Options(threads), memory_);
    ASSERT_TRUE(loader.ok()) << loader.status();
    EXPECT_EQ(Compare(*loader), 60u);
  }
}

TEST_F(LoaderFieldsTest, PixelsAndMasksAreTheSameWithout) {
  Make();
  LoaderOptions with = Options(), without = Options();
  without.decode_fields.clear();
  without.mask_fields = {"mask"};
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, with, memory_);
  auto other = *Loader::Open(*dataset_, MakeOrder(), {}, without, memory_);
  for (auto batch = loader.Next(); (*batch).has_value(); batch = loader.Next()) {
    const auto same = other.Next();
    EXPECT_EQ(AsText((*batch)->pixels()->bytes), AsText((*same)->pixels()->bytes));
    EXPECT_EQ((*same)->objects(), nullptr);
    EXPECT_TRUE((*same)->decoded_fields().empty());
    EXPECT_EQ((*same)->geometry().size(), (*same)->size());
    EXPECT_EQ((*batch)->decoded_fields()[0].label_bytes, 2u);
    EXPECT_EQ((*batch)->field_name((*batch)->decoded_fields()[2].field), "json");
    EXPECT_EQ((*same)->masks().size(), 1u);
  }
}

// Drawn separately, and the same again whatever other fields there are.
TEST_F(LoaderFieldsTest, AFieldThatSharesNothing) {
  Make();
  LoaderOptions options = Options();
  options.decode_fields = {{.field = "right", .as = FieldAs::kImage, .share = Share::kNone}};
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
  const HostBatch batch = **loader.Next();
  size_t different = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const uint64_t id = batch.ids()[i];
    const testing::TestSample& sample = samples_[id];
    const Crop own = ChooseCrop(options.decode->crop, 2 * sample.info.width, 2 * sample.info.height,
                                {.seed = kSeed ^ Xxh3_64(AsBytes("right")), .epoch = 0, .id = id});
    EXPECT_EQ(SlotOf(batch.decoded_fields()[0], batch.size(), i), ExpectedRight(id, own, 1));
    different += own.flip != CropOf(0, id).flip ? 1 : 0;
  }
  EXPECT_GT(different, 0u);
}

// `pack --resize longest` leaves the JSON as it is.
TEST_F(LoaderFieldsTest, ObjectsOfTheImageBeforeItWasResized) {
  Make();
  // Boxes in an image of `scale` times the size, which the JSON says: as it is or turned.
  const auto boxes = [&](double scale, bool says, bool turned) {
    for (size_t i = 0; i < samples_.size(); ++i) {
      if (i % 3 == 0) continue;
      const double width = samples_[i].info.width * scale, height = samples_[i].info.height * scale;
      *Field(i, "json") =
          absl::StrCat(R"({"boxes":[{"bbox":[)", 5 * scale, ",", 3 * scale, ",", 30 * scale, ",",
                       20 * scale, R"(],"label":1}])",
                       says ? absl::StrCat(R"(,"image":{"width":)", turned ? height : width,
                                           R"(,"height":)", turned ? width : height, "}")
                            : "",
                       "}");
    }
    Make();
    LoaderOptions options = Options();
    options.decode_fields = {{.field = "json", .as = FieldAs::kCoco}};
    auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
    std::vector<float> all;
    for (auto batch = loader.Next(); (*batch).has_value(); batch = loader.Next()) {
      const std::vector<float>& some = (*batch)->objects()->boxes;
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  };
  const std::vector<float> expected = boxes(1, false, false);
  EXPECT_GT(expected.size(), 40u);
  EXPECT_EQ(boxes(1, true, false), expected);
  EXPECT_EQ(boxes(1, true, true), expected);
  EXPECT_THAT(boxes(4, true, false), Pointwise(FloatNear(1e-3f), expected));
  *Field(17, "json") = R"({"boxes":[],"image":{"width":200,"height":160}})";
  Make();
  EXPECT_THAT(std::string(FirstError().message()),
              HasSubstr("field json: its coordinates are of an image of 200 x 160 pixels, and this "
                        "one has another shape, 91 x 56"));
  *Field(17, "json") = R"({"boxes":[],"image":{"width":1000000000,"height":1000000000}})";
  Make();
  EXPECT_THAT(std::string(FirstError().message()), HasSubstr("a side has at most 65535"));
  // The size before an orientation was applied, and the image was resized.
  *Field(17, "json") = R"({"boxes":[],"image":{"width":224,"height":364}})";
  Make();
  EXPECT_TRUE(FirstError().ok()) << FirstError();
}

// A stored map that is painted of the same objects moves as they do, under every crop and warp.
TEST_F(LoaderFieldsTest, ObjectsAsALabelMap) {
  Make();
  for (size_t i = 0; i < samples_.size(); ++i) {
    if (i % 3 == 0) continue;
    const uint32_t width = samples_[i].info.width, height = samples_[i].info.height;
    std::string* const json = Field(i, "json");
    *json = absl::StrCat(R"([{"bbox":[0,0,1,1],"category_id":6,"segmentation":[[5,6.5,)", width - 3,
                         ",9,", width / 2, ",", height - 1.25,
                         R"(]]},{"bbox":[0,0,9,9],"category_id":)", i,
                         R"(,"segmentation":{"size":[)", height, ",", width, R"(],"counts":[)",
                         height * 9 + 4, ",", height * 20, ",", height * (width - 29) - 4, "]}}]");
    const auto objects = ParseObjects(*json);
    ASSERT_TRUE(objects.ok()) << objects.status();
    PixelPipelineOptions whole;
    whole.crop = {.kind = CropKind::kResize, .width = width, .height = height};
    TestPixels map{width, height, 1, Image(size_t{width} * height)};
    ASSERT_TRUE(ObjectLabels::Create(whole, {}, Overlap::kIgnore)
                    ->Run(*objects, width, height, {.box = {0, 0, double(width), double(height)}},
                          /*same_size=*/true, map.bytes.data())
                    .ok());
    *Field(i, "mask") = Encoded(map, ImageFormat::kPng);
  }
  Make();
  const LabelMapOptions labels = {.wide = true, .ignore = 255, .classes = 31};
  for (const char* const plan :
       {"", "rotate(-30..30, p=0.7) flip_vertical(p=0.5) elastic(alpha=60)"}) {
    for (const CropKind kind : {CropKind::kRandomResized, CropKind::kCenter, CropKind::kResize}) {
      LoaderOptions options = Options();
      options.decode->crop.kind = kind;
      options.decode->crop.shortest_side = kWidth + 1;
      options.augment = *AugmentPlan::Parse(plan);
      options.decode_fields = {{.field = "mask", .labels = labels},
                               {.field = "json", .as = FieldAs::kCocoLabels, .labels = labels}};
      if (*plan == 0) options.decode_fields.push_back({.field = "json", .as = FieldAs::kCoco});
      auto loader = Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
      ASSERT_TRUE(loader.ok()) << loader.status();
      std::set<uint16_t> seen;
      for (auto batch = loader->Next(); (*batch).has_value(); batch = loader->Next()) {
        ASSERT_TRUE(batch.ok()) << batch.status();
        const std::span<const DecodedField> fields = (*batch)->decoded_fields();
        EXPECT_EQ(AsText(fields[0].bytes), AsText(fields[1].bytes));
        EXPECT_EQ(fields[1].label_bytes, 2u);
        for (size_t at = 0; at < fields[1].bytes.size(); at += 2) {
          uint16_t label;
          std::memcpy(&label, fields[1].bytes.data() + at, 2);
          seen.insert(label);
        }
        EXPECT_EQ((*batch)->objects() != nullptr, *plan == 0);
      }
      EXPECT_GT(seen.size(), 8u);
      EXPECT_TRUE(seen.contains(0) && seen.contains(7) && seen.contains(255));
    }
  }
}

TEST_F(LoaderFieldsTest, WhatCannotBeMovedIsABadSample) {
  Make();
  const std::string good_json = *Field(17, "json"), good_mask = *Field(17, "mask");
  *Field(17, "json") = R"([{"bbox":[1,2,-3,4]}])";
  Make();
  absl::Status status = FirstError();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("train-1.toy"), HasSubstr("000017"),
                    HasSubstr("field json: object 0 has a bbox of the negative size -3 x 4")));
  EXPECT_EQ(FactsOf(status).field, "json");
  *Field(17, "json") = good_json;
  const Image jpeg = EncodeJpeg(MakePattern(40 + 3 * 17, 90 - 2 * 17, 1, 1), {});
  Field(17, "mask")->assign(jpeg.begin(), jpeg.end());
  Make();
  EXPECT_THAT(std::string(FirstError().message()),
              HasSubstr("field mask: a JPEG is not a label map"));
  *Field(17, "mask") = good_mask;
  {
    LoaderOptions as_labels = Options();
    as_labels.decode_fields = {{.field = "json", .as = FieldAs::kCocoLabels}};
    auto no_outline = *Loader::Open(*dataset_, MakeOrder(), {}, as_labels, memory_);
    EXPECT_THAT(std::string(no_outline.Next().status().message()),
                AllOf(HasSubstr("field json: object 0 has neither polygons nor run lengths"),
                      HasSubstr(".toy")));
  }  // it reads ahead, and the next Make replaces the files
  const std::string right = *Field(17, "right");
  *Field(17, "right") = Encoded(MakePattern(50, 50, 3, 1), ImageFormat::kPng);
  Make();
  EXPECT_THAT(
      std::string(FirstError().message()),
      HasSubstr("field right: it is 50 x 50 pixels, which is another shape than that of its "
                "image, 91 x 56"));
  samples_[17].more_fields.erase(samples_[17].more_fields.begin());
  Make();
  EXPECT_THAT(std::string(FirstError().message()), HasSubstr("field right: the sample has none"));
  // A substitute brings its own fields.
  LoaderOptions options = Options();
  options.bad_samples = BadSamples::kSubstitute;
  auto loader = *Loader::Open(*dataset_, MakeOrder(), {}, options, memory_);
  EXPECT_EQ(Compare(loader), 60u);
  EXPECT_EQ(loader.TakeBadSamples().size(), 2u);
}

TEST_F(LoaderFieldsTest, OptionsThatCannotBeAreRefused) {
  Make();
  const auto refused = [&](auto change, const char* why) {
    LoaderOptions options = Options();
    change(options);
    const absl::Status status = Why(options);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  refused([](LoaderOptions& o) { o.decode.reset(); }, "or not at all");
  refused([](LoaderOptions& o) { o.decode_fields[0].field = "image"; }, "image");
  refused([](LoaderOptions& o) { o.decode_fields[0].field = "right"; },
          "right cannot be decoded twice");
  refused([](LoaderOptions& o) { o.mask_fields = {"mask"}; }, "mask cannot be decoded twice");
  refused([](LoaderOptions& o) { o.decode_fields[0].field = "msak"; }, "msak");
  refused([](LoaderOptions& o) { o.decode_fields[0].labels = {.ignore = 256}; },
          "field mask: labels: ignore is 256");
  refused([](LoaderOptions& o) { o.decode_fields[2].objects.min_visible = 2; },
          "field json: min_visible");
  refused([](LoaderOptions& o) { o.decode_fields[2].share = Share::kNone; }, "share its crop");
  refused(
      [](LoaderOptions& o) {
        o.decode_fields[2].as = FieldAs::kCocoLabels;
        o.decode_fields[2].labels.colors = {{1, 2, 3, 4}};
      },
      "field json: labels of objects are those of their classes");
  refused([](LoaderOptions& o) { o.decode_fields.push_back(o.decode_fields[2]); },
          "another field has the objects already");
  refused([](LoaderOptions& o) { o.augment = *AugmentPlan::Parse("invert elastic"); },
          "field json: objects do not follow the plan's elastic");
  refused([](LoaderOptions& o) { o.augment = *AugmentPlan::Parse("aug_mix(p=0.1)"); },
          "field mask: labels and objects do not follow the plan's aug_mix");
  refused([](LoaderOptions& o) { o.decode_fields[0].as = FieldAs::kCoco; },
          "another field has the objects already");
}

}  // namespace
}  // namespace shardpack
