#include "formats/tfrecord/example_encoder.h"

#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "formats/tfrecord/example.pb.h"
#include "formats/tfrecord/tfrecord_layout.h"
#include "gmock/gmock.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"

namespace {
size_t allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace shardpack {
namespace {

using ::testing::HasSubstr;

std::string Join(const ExampleEncoder& encoder) {
  std::string bytes;
  for (const Bytes part : encoder.parts()) bytes.append(AsText(part));
  return bytes;
}

// Stock protobuf's output, with map entries in key order.
std::string Deterministic(const tfrecord::Example& example) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  EXPECT_TRUE(example.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
}

tfrecord::Example Expected(const SampleView& sample) {
  tfrecord::Example example;
  auto& map = *example.mutable_features()->mutable_feature();
  const auto set_bytes = [&](std::string_view name, std::string_view value) {
    map[std::string(name)].mutable_bytes_list()->add_value(std::string(value));
  };
  const auto set_integer = [&](std::string_view name, int64_t value) {
    map[std::string(name)].mutable_int64_list()->add_value(value);
  };
  set_bytes("image/encoded", AsText(sample.fields[0].bytes));
  set_bytes("image/format", FeatureFormatName(sample.image.format));
  set_bytes("image/colorspace", FeatureColorspaceName(sample.image));
  set_bytes("image/filename", sample.source_path);
  set_integer("image/height", sample.image.height);
  set_integer("image/width", sample.image.width);
  set_integer("image/channels", sample.image.channels);
  if (sample.label != kNoLabel) {
    set_integer("image/class/label", sample.label);
    set_bytes("image/class/text", sample.class_name);
  }
  for (const FieldView& field : sample.fields.subspan(1))
    set_bytes(field.name, AsText(field.bytes));
  return example;
}

uint64_t Bound(const SampleView& sample, TfrecordLayout layout = TfrecordLayout::kClassification) {
  std::vector<uint64_t> sizes;
  for (const FieldView& field : sample.fields) sizes.push_back(field.bytes.size());
  return ExampleBound(layout, sample.source_path.size(), sample.class_name.size(),
                      sample.label != kNoLabel, sizes);
}

struct Owned {
  std::string image = "\xff\xd8 an image \xff\xd9";
  std::vector<FieldView> fields = {{kImageField, AsBytes(image)}};
  SampleView view = {.key = "cat/1",
                     .source_path = "cat/1.JPEG",
                     .label = 3,
                     .class_name = "cat",
                     .image = {.width = 500,
                               .height = 375,
                               .format = ImageFormat::kJpeg,
                               .color_space = ColorSpace::kRgb,
                               .channels = 3},
                     .fields = {}};
  const SampleView& Sample() {
    view.fields = fields;
    return view;
  }
};

void ExpectEqualsProtobuf(const SampleView& sample) {
  ExampleEncoder encoder;
  ASSERT_TRUE(encoder.Encode(sample).ok());
  const std::string bytes = Join(encoder);
  EXPECT_EQ(bytes, Deterministic(Expected(sample)));
  EXPECT_EQ(encoder.size_bytes(), bytes.size());
  EXPECT_LE(bytes.size(), Bound(sample));
  tfrecord::Example parsed;
  EXPECT_TRUE(parsed.ParseFromString(bytes));
}

TEST(ExampleEncoder, EqualsStockProtobuf) {
  Owned owned;
  ExpectEqualsProtobuf(owned.Sample());
}

TEST(ExampleEncoder, EqualsStockProtobufAtEveryVarintEdge) {
  for (const size_t bytes : {0, 1, 100, 121, 122, 123, 124, 125, 126, 127, 128, 16250, 16370, 16383,
                             16384, 70000, 2097100, 2097152, 3000000}) {
    Owned owned;
    owned.image.assign(bytes, 'x');
    owned.fields[0].bytes = AsBytes(owned.image);
    SCOPED_TRACE(bytes);
    ExpectEqualsProtobuf(owned.Sample());
  }
  for (const int64_t label : {int64_t{0}, int64_t{127}, int64_t{128}, int64_t{1} << 35,
                              std::numeric_limits<int64_t>::max()}) {
    Owned owned;
    owned.view.label = label;
    owned.view.image.width = std::numeric_limits<uint32_t>::max();
    owned.view.image.channels = 255;
    SCOPED_TRACE(label);
    ExpectEqualsProtobuf(owned.Sample());
  }
}

TEST(ExampleEncoder, NoLabelNoClassFeatures) {
  Owned owned;
  owned.view.label = kNoLabel;
  ExpectEqualsProtobuf(owned.Sample());
  ExampleEncoder encoder;
  ASSERT_TRUE(encoder.Encode(owned.Sample()).ok());
  EXPECT_EQ(Join(encoder).find("image/class"), std::string::npos);
}

TEST(ExampleEncoder, FurtherFieldsStandAtTheirPlaceInTheMap) {
  Owned owned;
  owned.fields.push_back({"json", AsBytes("{}")});
  owned.fields.push_back({"boxes", AsBytes(std::string_view("\0\1\2", 3))});
  owned.fields.push_back({"image/d", AsBytes("between")});
  owned.fields.push_back({"empty", {}});
  ExpectEqualsProtobuf(owned.Sample());
}

TEST(ExampleEncoder, EveryFormatAndColorspace) {
  for (int format = 0; format <= static_cast<int>(ImageFormat::kTiff); ++format) {
    for (int space = 0; space <= static_cast<int>(ColorSpace::kYcck); ++space) {
      Owned owned;
      owned.view.image.format = static_cast<ImageFormat>(format);
      owned.view.image.color_space = static_cast<ColorSpace>(space);
      ExpectEqualsProtobuf(owned.Sample());
    }
  }
  EXPECT_EQ(FeatureFormatName(ImageFormat::kJpeg), "jpeg");
  EXPECT_EQ(FeatureFormatName(ImageFormat::kTiff), "tiff");
  EXPECT_EQ(FeatureFormatName(ImageFormat::kPng), "png");
  EXPECT_EQ(FeatureColorspaceName({.color_space = ColorSpace::kYcck}), "CMYK");
  EXPECT_EQ(FeatureColorspaceName({.color_space = ColorSpace::kPalette, .channels = 3}), "RGB");
  EXPECT_EQ(FeatureColorspaceName({.color_space = ColorSpace::kPalette, .channels = 4}), "RGBA");
}

tfrecord::Example ExpectedInImagenet(const SampleView& sample) {
  tfrecord::Example example = Expected(sample);
  auto& map = *example.mutable_features()->mutable_feature();
  map["image/filename"].mutable_bytes_list()->set_value(0, "1.JPEG");
  map["image/format"].mutable_bytes_list()->set_value(0, "JPEG");
  if (sample.label != kNoLabel) {
    map["image/class/label"].mutable_int64_list()->set_value(0, sample.label + 1);
    map["image/class/synset"].mutable_bytes_list()->add_value(std::string(sample.class_name));
  }
  for (const char* edge : {"xmin", "xmax", "ymin", "ymax"}) {
    map[std::string("image/object/bbox/") + edge].mutable_float_list();
  }
  map["image/object/bbox/label"].mutable_int64_list();
  return example;
}

tfrecord::Example ExpectedInTfds(const SampleView& sample) {
  tfrecord::Example example;
  auto& map = *example.mutable_features()->mutable_feature();
  map["image"].mutable_bytes_list()->add_value(std::string(AsText(sample.fields[0].bytes)));
  map["image/filename"].mutable_bytes_list()->add_value(std::string(sample.source_path));
  map["label"].mutable_int64_list()->add_value(sample.label);
  for (const FieldView& field : sample.fields.subspan(1)) {
    map[std::string(field.name)].mutable_bytes_list()->add_value(std::string(AsText(field.bytes)));
  }
  return example;
}

TEST(ExampleEncoder, EqualsStockProtobufInEveryLayout) {
  for (const int64_t label : {kNoLabel, int64_t{0}, int64_t{126}, int64_t{127}, int64_t{1} << 62}) {
    for (const bool more : {false, true}) {
      SCOPED_TRACE(label);
      Owned owned;
      owned.view.source_path = "cat/1.JPEG";
      owned.view.image.format = ImageFormat::kJpeg;
      owned.view.label = label;
      if (more) owned.fields.push_back({"image/d", AsBytes("between")});
      if (more) owned.fields.push_back({"json", AsBytes("{}")});
      const SampleView& sample = owned.Sample();
      ExampleEncoder imagenet(TfrecordLayout::kImagenet), tfds(TfrecordLayout::kTfds);
      ASSERT_TRUE(imagenet.Encode(sample).ok() && tfds.Encode(sample).ok());
      EXPECT_EQ(Join(imagenet), Deterministic(ExpectedInImagenet(sample)));
      EXPECT_EQ(Join(tfds), Deterministic(ExpectedInTfds(sample)));
      for (const auto& [encoder, layout] : {std::pair(&imagenet, TfrecordLayout::kImagenet),
                                            std::pair(&tfds, TfrecordLayout::kTfds)}) {
        const uint64_t bound = Bound(sample, layout);
        EXPECT_GE(bound, encoder->size_bytes());
        EXPECT_LE(bound - encoder->size_bytes(), more ? 200u : 40u);
      }
    }
  }
}

TEST(ExampleEncoder, NoLabelAboveTheLargest) {
  Owned owned;
  owned.view.label = std::numeric_limits<int64_t>::max();
  ExampleEncoder imagenet(TfrecordLayout::kImagenet), tfds(TfrecordLayout::kTfds);
  EXPECT_FALSE(imagenet.Encode(owned.Sample()).ok());
  EXPECT_TRUE(tfds.Encode(owned.Sample()).ok());
}

TEST(ExampleEncoder, AFieldOfTheLayoutsNameIsRefused) {
  for (const char* name : {"label", "file_name", "image"}) {
    Owned owned;
    owned.fields.push_back({name, AsBytes("x")});
    ExampleEncoder tfds(TfrecordLayout::kTfds);
    EXPECT_FALSE(tfds.Encode(owned.Sample()).ok()) << name;
  }
}

TEST(ExampleEncoder, TheImageIsNotCopied) {
  Owned owned;
  ExampleEncoder encoder;
  ASSERT_TRUE(encoder.Encode(owned.Sample()).ok());
  ASSERT_EQ(encoder.parts().size(), 3u);
  EXPECT_EQ(encoder.parts()[1].data(), owned.fields[0].bytes.data());
  EXPECT_EQ(encoder.parts()[1].size(), owned.image.size());
}

TEST(ExampleEncoder, NoAllocationOnceWarm) {
  Owned owned;
  owned.fields.push_back({"json", AsBytes("{}")});
  const SampleView& sample = owned.Sample();
  ExampleEncoder encoder;
  ASSERT_TRUE(encoder.Encode(sample).ok());
  const size_t before = allocations;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(encoder.Encode(sample).ok());
  EXPECT_EQ(allocations, before);
}

TEST(ExampleEncoder, TheBoundIsTight) {
  Owned owned;
  ExampleEncoder encoder;
  ASSERT_TRUE(encoder.Encode(owned.Sample()).ok());
  EXPECT_LE(Bound(owned.view) - encoder.size_bytes(), 32u);
}

void ExpectRefused(const SampleView& sample, std::string_view why) {
  ExampleEncoder encoder;
  const absl::Status status = encoder.Encode(sample);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cat/1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(why)));
  EXPECT_TRUE(encoder.parts().empty());
}

TEST(ExampleEncoder, RefusesWhatAnExampleCannotHold) {
  Owned none;
  none.fields.clear();
  ExpectRefused(none.Sample(), "no image");
  Owned negative;
  negative.view.label = -2;
  ExpectRefused(negative.Sample(), "-2");
  for (const std::string_view name :
       {"", "image", "image/encoded", "image/height", "image/class/text", "b\xff", "file_name"}) {
    Owned owned;
    owned.fields.push_back({name, AsBytes("x")});
    ExpectRefused(owned.Sample(), "field name");
  }
  Owned long_name;
  const std::string name(kMaxFieldNameBytes + 1, 'n');
  long_name.fields.push_back({name, AsBytes("x")});
  ExpectRefused(long_name.Sample(), "longer");
  Owned twice;
  twice.fields.push_back({"txt", AsBytes("x")});
  twice.fields.push_back({"txt", AsBytes("y")});
  ExpectRefused(twice.Sample(), "two fields");
}

// The bytes are never read, so the test needs no memory for two gigabytes.
TEST(ExampleEncoder, RefusesMoreThanProtobufReads) {
  static const std::byte anchor{};
  for (const uint64_t bytes : {kMaxExampleBytes + 1, kMaxExampleBytes, kMaxExampleBytes - 100,
                               uint64_t{1} << 40, ~uint64_t{0} >> 1}) {
    Owned owned;
    owned.fields[0].bytes = Bytes(&anchor, bytes);
    ExpectRefused(owned.Sample(), "protobuf's limit");
  }
  Owned several;
  for (const std::string_view name : {"a", "b", "c"}) {
    several.fields.push_back({name, Bytes(&anchor, kMaxExampleBytes / 2)});
  }
  ExpectRefused(several.Sample(), "protobuf's limit");
  Owned fits;
  fits.fields[0].bytes = Bytes(&anchor, kMaxExampleBytes - 1000);
  ExampleEncoder encoder;
  EXPECT_TRUE(encoder.Encode(fits.Sample()).ok());
  EXPECT_LE(encoder.size_bytes(), kMaxExampleBytes);
  EXPECT_GT(encoder.size_bytes(), kMaxExampleBytes - 1000);
}

}  // namespace
}  // namespace shardpack
