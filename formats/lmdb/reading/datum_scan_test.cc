#include "formats/lmdb/reading/datum_scan.h"

#include <string>
#include <string_view>

#include "formats/lmdb/lmdb_layout.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using namespace std::string_view_literals;

Datum Scan(std::string_view value) {
  Datum datum;
  EXPECT_TRUE(ScanDatum(AsBytes(value), datum));
  return datum;
}

bool IsRefused(std::string_view value) {
  Datum datum;
  return !ScanDatum(AsBytes(value), datum);
}

// The output of convert_imageset -encoded for two bytes and label 5.
TEST(ScanDatum, AnEncodedRecord) {
  const Datum datum = Scan("\x22\x02\xff\xd8\x28\x05\x38\x01"sv);
  EXPECT_TRUE(datum.has_data && datum.has_label && datum.has_encoded && datum.encoded);
  EXPECT_EQ(datum.data_offset, 2u);
  EXPECT_EQ(datum.data_bytes, 2u);
  EXPECT_EQ(datum.label, 5);
}

TEST(ScanDatum, ADecodedRecord) {
  const Datum datum = Scan(
      "\x08\x03\x10\x01\x18\x01\x22\x03"
      "abc"
      "\x28\x07\x38\x00"sv);
  EXPECT_TRUE(datum.has_encoded && !datum.encoded);
  EXPECT_EQ(datum.data_offset, 8u);
  EXPECT_EQ(datum.label, 7);
}

TEST(ScanDatum, ANegativeLabelHasTenBytes) {
  EXPECT_EQ(Scan("\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv).label, -1);
}

TEST(ScanDatum, TheLastOneCountsAndUnknownFieldsAreSkipped) {
  const Datum datum = Scan(
      "\x22\x01x\x22\x02yz\x28\x01\x28\x02\x4a\x03zzz\x35"
      "abcd"
      "\x51"
      "abcdefgh"
      "\x5b\x63\x64\x5c"sv);
  EXPECT_EQ(datum.data_offset, 5u);
  EXPECT_EQ(datum.data_bytes, 2u);
  EXPECT_EQ(datum.label, 2);
}

// A known number with another wire type is an unknown field.
TEST(ScanDatum, AnotherWireTypeIsAnotherField) {
  const Datum datum = Scan("\x20\x05\x2a\x01x"sv);
  EXPECT_FALSE(datum.has_data || datum.has_label);
}

TEST(ScanDatum, WhatProtobufRefuses) {
  for (const std::string_view value :
       {"\x22"sv, "\x22\x02x"sv, "\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"sv, "\x28"sv,
        "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv, "\x00\x01"sv, "\x26"sv, "\x27"sv,
        "\x5c"sv, "\x5b"sv, "\x5b\x64"sv,
        "\x35"
        "abc"sv,
        "\xa0\x80\x80\x80\x80\x80\x80\x01\x00"sv}) {
    EXPECT_TRUE(IsRefused(value)) << value.size();
  }
  EXPECT_TRUE(IsRefused(std::string(101, '\x5b') + std::string(101, '\x5c')));
  EXPECT_FALSE(IsRefused(std::string(100, '\x5b') + std::string(100, '\x5c')));
}

TEST(ScanDatum, ReadsWhatIsWritten) {
  for (const uint64_t bytes : {0, 1, 127, 128, 20000, 3000000}) {
    for (const int64_t label : {int64_t{-1}, int64_t{0}, int64_t{1000}, int64_t{INT32_MAX}}) {
      const ValueFrame frame = MakeValueFrame(LmdbLayout::kCaffe, bytes, label);
      const std::string value = std::string(AsText(frame.head())) + std::string(bytes, 'x') +
                                std::string(AsText(frame.tail()));
      EXPECT_LE(value.size() - bytes, kMaxDatumFrameBytes);
      const Datum datum = Scan(value);
      EXPECT_EQ(datum.data_offset, frame.head().size());
      EXPECT_EQ(datum.data_bytes, bytes);
      EXPECT_EQ(datum.label, label);
      EXPECT_TRUE(datum.encoded);
    }
  }
}

TEST(LooksLikeTensorProtos, TellsThemFromADatum) {
  const std::string_view tensors =
      "\x0a\x08\x08\x01\x10\x04\x32\x02\xff\xd8\x0a\x07\x08\x01\x10\x02\x22\x01\x05"sv;
  EXPECT_TRUE(LooksLikeTensorProtos(AsBytes(tensors)));
  EXPECT_FALSE(Scan(tensors).has_data);
  EXPECT_FALSE(LooksLikeTensorProtos(AsBytes("\x22\x02\xff\xd8\x28\x05\x38\x01"sv)));
  EXPECT_FALSE(LooksLikeTensorProtos({}));
}

}  // namespace
}  // namespace shardpack
