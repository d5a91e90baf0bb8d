#include "formats/tfrecord/example_scan.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "formats/tfrecord/example.pb.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using Outcome = ExampleScan::Outcome;

std::string FromHex(std::string_view hex) {
  std::string bytes, digits;
  for (const char c : hex) {
    if (c != ' ') digits.push_back(c);
  }
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// A length-delimited field.
std::string Field(uint32_t number, std::string_view content) {
  return Varint(number << 3 | 2) + Varint(content.size()) + std::string(content);
}

std::string BytesFeature(std::string_view value) { return Field(1, Field(1, value)); }
std::string IntegerFeature(uint64_t value) { return Field(3, Field(1, Varint(value))); }
std::string Entry(std::string_view name, std::string_view feature) {
  return Field(1, Field(1, name) + Field(2, feature));
}
std::string Example(std::string_view entries) { return Field(1, entries); }

std::string_view Value(std::string_view payload, const ScannedFeature* feature) {
  return feature == nullptr ? "(none)" : payload.substr(feature->offset, feature->length);
}

// Scans, and compares the result with protobuf's: the same features, kinds, counts and first
// values.
void ExpectAgreesWithProtobuf(const std::string& payload) {
  tfrecord::Example example;
  ASSERT_TRUE(example.ParseFromString(payload));
  ExampleScan scan;
  ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample)
      << scan.problem() << " at " << scan.problem_offset();
  const auto& map = example.features().feature();
  EXPECT_EQ(scan.features().size(), map.size());
  for (const ScannedFeature& feature : scan.features()) {
    const auto found = map.find(std::string(feature.name));
    ASSERT_NE(found, map.end()) << feature.name;
    const tfrecord::Feature& expected = found->second;
    switch (feature.kind) {
      case FeatureKind::kNone:
        EXPECT_EQ(expected.kind_case(), tfrecord::Feature::KIND_NOT_SET);
        break;
      case FeatureKind::kBytes:
        ASSERT_TRUE(expected.has_bytes_list());
        EXPECT_EQ(feature.values, expected.bytes_list().value_size());
        if (feature.values > 0) {
          EXPECT_EQ(Value(payload, &feature), expected.bytes_list().value(0));
        }
        break;
      case FeatureKind::kFloat:
        ASSERT_TRUE(expected.has_float_list());
        EXPECT_EQ(feature.values, expected.float_list().value_size());
        break;
      case FeatureKind::kInt64:
        ASSERT_TRUE(expected.has_int64_list());
        EXPECT_EQ(feature.values, expected.int64_list().value_size());
        if (feature.values > 0) {
          EXPECT_EQ(feature.first_integer, expected.int64_list().value(0));
        }
        break;
    }
  }
}

Outcome ScanOf(const std::string& payload) {
  ExampleScan scan;
  const Outcome outcome = scan.Scan(AsBytes(payload));
  EXPECT_EQ(outcome == Outcome::kMalformed, !scan.problem().empty());
  EXPECT_LE(scan.problem_offset(), payload.size());
  return outcome;
}

// Written by protobuf 3.21 with deterministic serialization.
TEST(ExampleScan, KnownExample) {
  const std::string payload = FromHex(
      "0a6d 0a0b0a05656d707479 12021200 0a120a02666c120c120a0a080000003f0000803f"
      "0a1a0a11696d6167652f636c6173732f6c6162656c12051a030a0105"
      "0a170a0d696d6167652f656e636f64656412060a040a02ffd8"
      "0a150a036e6567120e1a0c0a0affffffffffffffffff01");
  ASSERT_EQ(payload.size(), 111u);
  ExpectAgreesWithProtobuf(payload);
  ExampleScan scan;
  ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
  ASSERT_EQ(scan.features().size(), 5u);
  EXPECT_EQ(Value(payload, scan.image()), "\xff\xd8");
  EXPECT_EQ(scan.image()->offset, payload.find("\xff\xd8"));
  EXPECT_EQ(scan.label()->first_integer, 5);
  EXPECT_EQ(scan.Find("neg")->first_integer, -1);
  EXPECT_EQ(scan.Find("fl")->values, 2u);
  EXPECT_EQ(scan.Find("empty")->kind, FeatureKind::kFloat);
  EXPECT_EQ(scan.Find("nothing"), nullptr);
  EXPECT_EQ(scan.filename(), nullptr);
}

TEST(ExampleScan, WhatProtobufWrites) {
  tfrecord::Example example;
  auto& map = *example.mutable_features()->mutable_feature();
  for (int i = 0; i < 40; ++i) {
    const std::string name = "feature " + std::to_string(i);
    if (i % 4 == 0) map[name].mutable_bytes_list()->add_value(std::string(i * 50, 'v'));
    if (i % 4 == 1) map[name].mutable_float_list()->mutable_value()->Resize(i, 0.5f);
    if (i % 4 == 2) {
      for (int j = 0; j < i; ++j) map[name].mutable_int64_list()->add_value(int64_t{1} << j);
    }
    if (i % 4 == 3) map[name];
  }
  ExpectAgreesWithProtobuf(example.SerializeAsString());
}

TEST(ExampleScan, EmptyMessagesAreFine) {
  for (const std::string& payload :
       {std::string(), Example(""), Example(Field(1, "")), Example(Entry("", "")),
        Example(Entry("a", Field(1, ""))), Example(Entry("a", Field(2, "") + Field(3, "")))}) {
    ExpectAgreesWithProtobuf(payload);
  }
}

TEST(ExampleScan, AnyOrderAndTheLastOfEqualNames) {
  const std::string payload =
      Example(Entry("z", BytesFeature("1")) + Entry("a", BytesFeature("2")) +
              Entry("z", IntegerFeature(3)) + Entry("m", BytesFeature("4"))) +
      Example(Entry("a", BytesFeature("5")));
  ExpectAgreesWithProtobuf(payload);
  ExampleScan scan;
  ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
  ASSERT_EQ(scan.features().size(), 3u);
  EXPECT_EQ(Value(payload, scan.Find("a")), "5");
  EXPECT_EQ(scan.Find("z")->kind, FeatureKind::kInt64);
}

TEST(ExampleScan, UnpackedAndMixedNumbers) {
  const std::string unpacked = Varint(1 << 3 | 0) + Varint(7);
  const std::string packed = Field(1, Varint(8) + Varint(300));
  for (const std::string& list : {unpacked, unpacked + packed, packed + unpacked,
                                  Field(1, "") + unpacked, Field(1, "") + Field(1, "")}) {
    ExpectAgreesWithProtobuf(Example(Entry("label", Field(3, list))));
  }
  const std::string fixed = Varint(1 << 3 | 5) + std::string(4, '\1');
  for (const std::string& list : {fixed, fixed + Field(1, std::string(8, '\2')) + fixed}) {
    ExpectAgreesWithProtobuf(Example(Entry("f", Field(2, list))));
  }
}

TEST(ExampleScan, EqualKindsMergeAndOtherKindsReplace) {
  for (const std::string& feature : {
           BytesFeature("a") + BytesFeature("b"),
           BytesFeature("a") + IntegerFeature(1),
           BytesFeature("a") + IntegerFeature(1) + BytesFeature("c"),
           IntegerFeature(1) + Field(1, ""),
       }) {
    ExpectAgreesWithProtobuf(Example(Entry("x", feature)));
  }
  // The value twice within an entry, the key twice, the value before the key.
  ExpectAgreesWithProtobuf(
      Example(Field(1, Field(1, "x") + Field(2, BytesFeature("a")) + Field(2, BytesFeature("b")))));
  ExpectAgreesWithProtobuf(
      Example(Field(1, Field(1, "x") + Field(2, BytesFeature("a")) + Field(1, "y"))));
  ExpectAgreesWithProtobuf(Example(Field(1, Field(2, BytesFeature("a")) + Field(1, "x"))));
}

TEST(ExampleScan, UnknownFieldsAreSkipped) {
  const std::string unknown = Varint(9 << 3 | 0) + Varint(~uint64_t{0}) +  // varint
                              Varint(9 << 3 | 1) + std::string(8, 'f') +   // fixed64
                              Field(5000, "text") +                        // delimited
                              Varint(9 << 3 | 5) + std::string(4, 'f') +   // fixed32
                              Varint(7 << 3 | 3) + Varint(8 << 3 | 3) +    // groups
                              Field(1, "inside") + Varint(8 << 3 | 4) + Varint(7 << 3 | 4) +
                              Varint(1 << 3 | 1) + std::string(8, 'w');  // known number, other type
  const std::string list = unknown + Field(1, "value") + unknown;
  const std::string feature = unknown + Field(1, list) + unknown;
  const std::string entry = unknown + Field(1, "jpg") + unknown + Field(2, feature) + unknown;
  const std::string payload = unknown + Example(unknown + Field(1, entry) + unknown) + unknown;
  ExpectAgreesWithProtobuf(payload);
  ExampleScan scan;
  ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
  EXPECT_EQ(Value(payload, scan.image()), "value");
}

TEST(ExampleScan, LongSpellingsOfSmallNumbers) {
  const std::string name =
      std::string("\x8a\x80\x00", 3) + std::string("\x83\x80\x80\x00", 4) + "jpg";
  ExpectAgreesWithProtobuf(Example(Field(1, name + Field(2, BytesFeature("v")))));
}

TEST(ExampleScan, GroupsAreBoundedInDepth) {
  const auto nested = [](int depth) {
    std::string bytes(depth, static_cast<char>(9 << 3 | 3));
    return bytes + std::string(depth, static_cast<char>(9 << 3 | 4));
  };
  EXPECT_EQ(ScanOf(nested(90)), Outcome::kExample);
  EXPECT_EQ(ScanOf(nested(101)), Outcome::kMalformed);
  EXPECT_EQ(ScanOf(nested(1000000)), Outcome::kMalformed);
}

TEST(ExampleScan, MalformedIsRefusedAsProtobufRefusesIt) {
  const std::string long_varint(11, '\x80');
  for (const std::string& payload : {
           std::string("\0", 1),                        // field number 0
           std::string("\x07", 1),                      // wire type 7 does not exist
           std::string("\x0c", 1),                      // the end of a group that is not open
           std::string("\x0b\x14", 2),                  // the end of another group
           std::string("\x0b", 1),                      // a group without end
           std::string("\x0a", 1),                      // no length
           std::string("\x0a\x05", 2) + "1234",         // a length past the end
           std::string("\x0a\xff\xff\xff\xff\x0f", 6),  // 2^32 - 1
           std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),
           std::string("\x08") + long_varint,
           std::string("\x09") + "1234567",
           std::string("\x0d") + "123",
           Example(Field(1, "\x0a\x05x")),
           Example(Entry("x", "\x0a\x05x")),
           Example(Entry("x", Field(1, "\x0a\x05x"))),
           Example(Entry("x", Field(2, Field(1, "12345")))),  // packed floats of five bytes
           Example(Entry("x", Field(3, Field(1, "\x80")))),   // a packed varint without end
           Example(Entry("x", Field(3, Field(1, long_varint + std::string(1, '\0'))))),
       }) {
    tfrecord::Example example;
    EXPECT_FALSE(example.ParseFromString(payload));
    EXPECT_EQ(ScanOf(payload), Outcome::kMalformed) << ::testing::PrintToString(payload);
  }
}

TEST(ExampleScan, EveryTruncationAndEveryBitFlipIsBounded) {
  const std::string payload =
      Example(Entry("image/encoded", BytesFeature("\xff\xd8 image")) +
              Entry("label", IntegerFeature(300)) + Entry("f", Field(2, Field(1, "12345678"))));
  for (size_t size = 0; size < payload.size(); ++size) {
    const std::string cut = payload.substr(0, size);
    tfrecord::Example example;
    EXPECT_EQ(ScanOf(cut) != Outcome::kMalformed, example.ParseFromString(cut)) << size;
  }
  for (size_t bit = 0; bit < payload.size() * 8; ++bit) {
    std::string flipped = payload;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    tfrecord::Example example;
    const Outcome outcome = ScanOf(flipped);
    if (outcome == Outcome::kExample && example.ParseFromString(flipped)) {
      ExpectAgreesWithProtobuf(flipped);
    }
  }
}

TEST(ExampleScan, SequenceExampleIsDetected) {
  tfrecord::SequenceExample sequence;
  (*sequence.mutable_context()->mutable_feature())["id"].mutable_int64_list()->add_value(1);
  (*sequence.mutable_feature_lists()->mutable_feature_list())["frames"].add_feature();
  EXPECT_EQ(ScanOf(sequence.SerializeAsString()), Outcome::kSequenceExample);
}

TEST(ExampleScan, NamesThatAreNotUtf8AreRead) {
  const std::string payload = Example(Entry("a\xff", BytesFeature("v")));
  ExampleScan scan;
  ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
  EXPECT_EQ(Value(payload, scan.Find("a\xff")), "v");
}

TEST(ExampleScan, ManyFeaturesAreBounded) {
  std::string entries;
  for (size_t i = 0; i < ExampleScan::kMaxFeatures; ++i) entries += Field(1, "");
  EXPECT_EQ(ScanOf(Example(entries)), Outcome::kExample);
  EXPECT_EQ(ScanOf(Example(entries + Field(1, ""))), Outcome::kMalformed);
}

TEST(ExampleScan, ImageAndLabelByTheirUsualNames) {
  for (const std::string_view name : ImageFeatureNames()) {
    const std::string payload =
        Example(Entry("aaa", BytesFeature("no")) + Entry(name, BytesFeature("yes")));
    ExampleScan scan;
    ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
    EXPECT_EQ(Value(payload, scan.image()), "yes") << name;
    EXPECT_TRUE(scan.IsField(*scan.Find("aaa")));
    EXPECT_FALSE(scan.IsField(*scan.image()));
  }
  for (const std::string_view name : LabelFeatureNames()) {
    const std::string payload = Example(Entry(name, IntegerFeature(42)));
    ExampleScan scan;
    ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
    ASSERT_NE(scan.label(), nullptr) << name;
    EXPECT_EQ(scan.label()->first_integer, 42);
  }
}

TEST(ExampleScan, AFeatureOfAnotherKindIsNeitherImageNorLabel) {
  const std::string payload =
      Example(Entry("image/encoded", IntegerFeature(1)) + Entry("jpg", BytesFeature("it")) +
              Entry("image/class/label", BytesFeature("1")) + Entry("cls", IntegerFeature(9)) +
              Entry("image/format", BytesFeature("jpeg")) +
              Entry("two", Field(1, Field(1, "a") + Field(1, "b"))));
  ExampleScan scan;
  ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
  EXPECT_EQ(scan.image()->name, "jpg");
  EXPECT_EQ(scan.label()->name, "cls");
  EXPECT_FALSE(scan.IsField(*scan.Find("image/format")));
  EXPECT_FALSE(scan.IsField(*scan.Find("two")));
  EXPECT_FALSE(scan.IsField(*scan.Find("cls")));
}

TEST(ExampleScan, ValuesThatNoSampleHasAreLost) {
  const std::string payload = Example(
      Entry("image/encoded", BytesFeature("x")) + Entry("image/class/label", IntegerFeature(1)) +
      Entry("image/height", IntegerFeature(3)) + Entry("image/format", BytesFeature("jpeg")) +
      Entry("caption", BytesFeature("y")) + Entry("age", IntegerFeature(3)) +
      Entry("two", BytesFeature("y") + BytesFeature("z")) + Entry("none", ""));
  ExampleScan scan;
  ASSERT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
  std::string lost;
  for (const ScannedFeature& feature : scan.features()) {
    if (scan.IsLost(feature)) lost.append(feature.name).append(" ");
  }
  EXPECT_EQ(lost, "age two ");
}

TEST(ExampleScan, WhatOneLabelAndOneImageCannotHoldIsLost) {
  const auto lost = [](const std::string& entries) {
    const std::string payload = Example(entries);
    ExampleScan scan;
    EXPECT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
    std::string names;
    for (const ScannedFeature& feature : scan.features()) {
      if (scan.IsLost(feature)) names.append(feature.name).append(" ");
    }
    return names;
  };
  const std::string number(4, '\0'), label = Entry("image/class/label", IntegerFeature(7));
  EXPECT_EQ(lost(Entry("image", BytesFeature("x") + BytesFeature("y"))), "image ");
  EXPECT_EQ(lost(Entry("label", Field(3, Field(1, std::string("\3\x11", 2))))), "label ");
  EXPECT_EQ(lost(Entry("image/class/label", Field(2, Field(1, number)))), "image/class/label ");
  EXPECT_EQ(lost(Entry("image/height", Field(2, Field(1, number)))), "image/height ");
  EXPECT_EQ(lost(Entry("image/format", IntegerFeature(3))), "image/format ");
  EXPECT_EQ(lost(label + Entry("label", IntegerFeature(8))), "label ");
}

TEST(ExampleScan, NamesOfTheClassAndFurtherPathsAreLost) {
  const auto lost = [](const std::string& entries) {
    const std::string payload = Example(entries);
    ExampleScan scan;
    EXPECT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
    std::string names;
    for (const ScannedFeature& feature : scan.features()) {
      if (scan.IsLost(feature))
        names.append(feature.name).append(scan.IsClassName(feature) ? " of a class " : " ");
    }
    return names;
  };
  const std::string path = Entry("image/filename", BytesFeature("a.jpg"));
  EXPECT_EQ(lost(Entry("image/class/text", BytesFeature("tench"))), "image/class/text of a class ");
  EXPECT_EQ(lost(Entry("image/class/synset", BytesFeature("n01"))),
            "image/class/synset of a class ");
  EXPECT_EQ(lost(path + Entry("file_name", BytesFeature("b.jpg"))), "file_name ");
  EXPECT_EQ(lost(Entry("file_name", BytesFeature("b.jpg"))), "");
  EXPECT_EQ(lost(Entry("image/filename", BytesFeature("a") + BytesFeature("b"))),
            "image/filename ");
  // A writer that knows no name leaves it empty.
  EXPECT_EQ(
      lost(path + Entry("image/class/text", BytesFeature("")) +
           Entry("image/class/synset", BytesFeature("")) + Entry("file_name", BytesFeature(""))),
      "");
  EXPECT_EQ(lost(Entry("image/colorspace", BytesFeature("RGB")) +
                 Entry("image/format", BytesFeature("jpeg"))),
            "");
}

// One scan sees records with the same names, other kinds, no values and other names in turn.
TEST(ExampleScan, EveryRecordIsJudgedByItself) {
  const std::string usual = Example(
      Entry("caption", BytesFeature("c")) + Entry("image/class/label", IntegerFeature(7)) +
      Entry("image/encoded", BytesFeature("x")) + Entry("image/filename", BytesFeature("a.jpg")));
  const std::string other_kinds = Example(
      Entry("caption", IntegerFeature(3)) + Entry("image/class/label", BytesFeature("7")) +
      Entry("image/encoded", IntegerFeature(1)) + Entry("image/filename", IntegerFeature(2)));
  const std::string no_values =
      Example(Entry("caption", Field(1, "")) + Entry("image/class/label", Field(3, "")) +
              Entry("image/encoded", Field(1, "")) + Entry("image/filename", Field(1, "")));
  const std::string other_names =
      Example(Entry("a", BytesFeature("c")) + Entry("b", IntegerFeature(7)) +
              Entry("image/format", BytesFeature("x")) + Entry("jpg", BytesFeature("a.jpg")));
  const auto judged = [](ExampleScan& scan, const std::string& payload) {
    EXPECT_EQ(scan.Scan(AsBytes(payload)), Outcome::kExample);
    std::string text = absl::StrCat(std::string(Value(payload, scan.image())), " ",
                                    scan.label() == nullptr ? -1 : scan.label()->first_integer, " ",
                                    std::string(Value(payload, scan.filename())), ":");
    for (const ScannedFeature& feature : scan.features()) {
      text += scan.IsField(feature) ? " field" : scan.IsLost(feature) ? " lost" : " -";
    }
    return text;
  };
  ExampleScan scan;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(judged(scan, usual), "x 7 a.jpg: field - - -");
    EXPECT_EQ(judged(scan, usual), "x 7 a.jpg: field - - -");
    EXPECT_EQ(judged(scan, other_kinds), "(none) -1 (none): lost field lost lost");
    EXPECT_EQ(judged(scan, no_values), "(none) -1 (none): - - - -");
    EXPECT_EQ(judged(scan, other_names), "a.jpg -1 (none): field lost - -");
    EXPECT_EQ(judged(scan, Example("")), "(none) -1 (none):");
  }
}

}  // namespace
}  // namespace shardpack
