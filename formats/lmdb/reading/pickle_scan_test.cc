#include "formats/lmdb/reading/pickle_scan.h"

#include <string>
#include <string_view>
#include <vector>

#include "formats/lmdb/lmdb_layout.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using namespace std::string_view_literals;
using Kind = PickleValue::Kind;

PickleValue Scan(std::string_view pickle) { return ScanPickle(AsBytes(pickle)); }

// pickle.dumps((b"\xff\xd8", 5), protocol) of CPython 3.11.
TEST(ScanPickle, PairsOfEachProtocol) {
  for (const std::string_view pickle :
       {"\x80\x03"
        "C\x02\xff\xd8q\x00K\x05\x86q\x01."sv,
        "\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00"
        "C\x02\xff\xd8\x94K\x05\x86\x94."sv,
        "\x80\x05\x95\x0a\x00\x00\x00\x00\x00\x00\x00"
        "C\x02\xff\xd8\x94K\x05\x86\x94."sv,
        "\x80\x03"
        "B\x02\x00\x00\x00\xff\xd8K\x05\x86."sv,
        "\x80\x04\x8e\x02\x00\x00\x00\x00\x00\x00\x00\xff\xd8J\x05\x00\x00\x00\x86."sv}) {
    const PickleValue value = Scan(pickle);
    ASSERT_EQ(value.kind, Kind::kPair) << value.problem;
    EXPECT_EQ(pickle.substr(value.offset, value.length), "\xff\xd8");
    EXPECT_EQ(value.integer, 5);
  }
}

TEST(ScanPickle, Integers) {
  EXPECT_EQ(Scan("\x80\x03K\xff."sv).integer, 255);
  EXPECT_EQ(Scan("\x80\x03M\xff\xff."sv).integer, 65535);
  EXPECT_EQ(Scan("\x80\x03J\xff\xff\xff\xff."sv).integer, -1);
  EXPECT_EQ(Scan("\x80\x03\x8a\x05\x00\x00\x00\x00\x01."sv).integer, int64_t{1} << 32);
  EXPECT_EQ(Scan("\x80\x03\x8a\x00."sv).integer, 0);
}

TEST(ScanPickle, ListsOfKeys) {
  std::vector<std::string> items;
  const auto keep = [&](uint64_t number, Bytes item) {
    EXPECT_EQ(number, items.size());
    items.emplace_back(AsText(item));
  };
  const PickleValue list = ScanPickle(AsBytes("\x80\x03]q\x00(C\x01"
                                              "0q\x01"
                                              "C\x02"
                                              "10q\x02h\x01"
                                              "eC\x01"
                                              "7a."sv),
                                      keep);
  EXPECT_EQ(list.kind, Kind::kList) << list.problem;
  EXPECT_EQ(items, (std::vector<std::string>{"0", "10", "0", "7"}));
  EXPECT_EQ(list.items, 4u);
  EXPECT_EQ(Scan("\x80\x03]."sv).items, 0u);
}

TEST(ScanPickle, ReadsWhatIsWritten) {
  for (const uint64_t records : {0, 1, 999, 1000, 1001, 2500}) {
    uint64_t next = 0;
    const PickleValue keys =
        ScanPickle(AsBytes(MakePickleKeys(records)), [&](uint64_t number, Bytes item) {
          EXPECT_EQ(AsText(item), std::to_string(number));
          ++next;
        });
    EXPECT_EQ(keys.kind, Kind::kList) << keys.problem;
    EXPECT_EQ(next, records);
    EXPECT_EQ(Scan(MakePickleLength(records)).integer, static_cast<int64_t>(records));
  }
  for (const uint64_t bytes : {0, 255, 256, 70000}) {
    for (const int64_t label : {-1, 0, 255, 256, 65535, 65536}) {
      const ValueFrame frame = MakeValueFrame(LmdbLayout::kPickle, bytes, label);
      const std::string pickle = std::string(AsText(frame.head())) + std::string(bytes, 'x') +
                                 std::string(AsText(frame.tail()));
      EXPECT_LE(pickle.size() - bytes, kMaxPickleFrameBytes);
      const PickleValue value = Scan(pickle);
      ASSERT_EQ(value.kind, Kind::kPair) << value.problem;
      EXPECT_EQ(value.length, bytes);
      EXPECT_EQ(value.integer, label);
    }
  }
}

// cos\nsystem\n(S'true'\ntR. and what other pickles need an interpreter for.
TEST(ScanPickle, WhatWouldRunCodeIsRefused) {
  for (const std::string_view pickle : {"cos\nsystem\n(S'true'\ntR."sv,
                                        "\x80\x03"
                                        "cos\nsystem\nq\x00."sv,
                                        "\x80\x04\x93."sv, "\x80\x03K\x01R."sv,
                                        "\x80\x03K\x01"
                                        "b."sv,
                                        "\x80\x03\x81."sv, "\x80\x03i."sv, "\x80\x03o."sv,
                                        "\x80\x03\x82\x01."sv, "\x80\x03Q."sv, "\x80\x03P1\n."sv}) {
    const PickleValue value = Scan(pickle);
    EXPECT_EQ(value.kind, Kind::kNone);
    EXPECT_NE(value.problem.find("opcode 0x"), std::string::npos) << value.problem;
  }
}

TEST(ScanPickle, WhatIsMalformedIsRefused) {
  for (const std::string_view pickle : {""sv,
                                        "."sv,
                                        "\x80"sv,
                                        "\x80\x03"sv,
                                        "\x80\x01K\x01."sv,
                                        "\x80\x06K\x01."sv,
                                        "\x80\x03K\x01"sv,
                                        "\x80\x03K\x01.x"sv,
                                        "\x80\x03K\x01K\x02."sv,
                                        "\x80\x03(."sv,
                                        "\x80\x03"
                                        "C\x05"
                                        "abc."sv,
                                        "\x80\x03"
                                        "B\xff\xff\xff\xff"
                                        "abc."sv,
                                        "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff."sv,
                                        "\x80\x03\x86."sv,
                                        "\x80\x03K\x01K\x02\x86."sv,
                                        "\x80\x03K\x01"
                                        "C\x00\x86."sv,
                                        "\x80\x03]K\x01"
                                        "a."sv,
                                        "\x80\x03](K\x01"
                                        "e."sv,
                                        "\x80\x03"
                                        "e."sv,
                                        "\x80\x03"
                                        "a."sv,
                                        "\x80\x03K\x01"
                                        "a."sv,
                                        "\x80\x03h\x00."sv,
                                        "\x80\x03q\x00."sv,
                                        "\x80\x03]q\x00h\x00."sv,
                                        "\x80\x03j\xff\xff\xff\xff."sv,
                                        "\x80\x03\x8a\x09"
                                        "123456789."sv,
                                        "\x80\x04\x95\x01."sv,
                                        "\x80\x03((((((((((((((((."sv}) {
    EXPECT_EQ(Scan(pickle).kind, Kind::kNone) << pickle.size();
    EXPECT_NE(Scan(pickle).problem, "");
  }
}

}  // namespace
}  // namespace shardpack
