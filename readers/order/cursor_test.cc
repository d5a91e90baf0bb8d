#include "readers/order/cursor.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Digest kDataset = {0x0123456789ABCDEF, 0x00000000FEDCBA98};

Order MakeOrder(uint64_t seed = 7) {
  return *Order::Make({.samples = 1000, .seed = seed, .global_batch = 32});
}

Cursor Sample() { return MakeCursor(kDataset, MakeOrder(), 3, 17); }

std::vector<Cursor> Samples() {
  const uint64_t most = ~uint64_t{0};
  return {Sample(), Cursor(), {1, 0, {most, most}, most, most, most}, {1, 0, {0, 1}, 2, 3, 4}};
}

// A text or bytes with a correct check value, whatever the content.
std::string Sealed(const std::string& body) {
  char check[17];
  std::snprintf(check, sizeof(check), "%016llx",
                static_cast<unsigned long long>(Xxh3_64(AsBytes(body))));
  return body + ":" + check;
}

TEST(CursorTest, KeepsWhatItIsMadeOf) {
  const Cursor cursor = Sample();
  EXPECT_EQ(cursor.version, 1u);
  EXPECT_EQ(cursor.dataset[0], kDataset.high);
  EXPECT_EQ(cursor.dataset[1], kDataset.low);
  EXPECT_EQ(cursor.order, MakeOrder().digest());
  EXPECT_EQ(cursor.epoch, 3u);
  EXPECT_EQ(cursor.step, 17u);
  EXPECT_EQ(MakeCursor(kDataset, MakeOrder()).step, 0u);
}

TEST(CursorTest, BothFormsGoThereAndBack) {
  for (const Cursor& cursor : Samples()) {
    const absl::StatusOr<Cursor> bytes = CursorFromBytes(CursorToBytes(cursor));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, cursor);
    const std::string text = CursorToText(cursor);
    for (const char c : text) {
      EXPECT_TRUE(std::islower(c) || std::isdigit(c) || c == ':' || c == '-') << text;
    }
    const absl::StatusOr<Cursor> parsed = CursorFromText(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status() << " " << text;
    EXPECT_EQ(*parsed, cursor);
  }
}

// These never change: checkpoints of older versions must stay readable.
TEST(CursorTest, GoldenForms) {
  const Cursor cursor = {1, 0, {0x0123456789ABCDEF, 0xFEDCBA98}, 0xA5, 3, 17};
  EXPECT_EQ(CursorToText(cursor),
            "shardpack-cursor:1:0123456789abcdef00000000fedcba98:00000000000000a5:3:17:"
            "2e517631a348d40e");
  const unsigned char bytes[kCursorBytes] = {'S',  'P',  'C',  'U',  'R',  'S',  'O',  'R',
                                             1,    0,    0,    0,    0,    0,    0,    0,  //
                                             0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01,
                                             0x98, 0xBA, 0xDC, 0xFE, 0,    0,    0,    0,  //
                                             0xA5, 0,    0,    0,    0,    0,    0,    0,
                                             3,    0,    0,    0,    0,    0,    0,    0,  //
                                             17,   0,    0,    0,    0,    0,    0,    0,
                                             0x19, 0xE5, 'D',  0xA8, 0xD1, 0xD8, 0xD1, 'q'};
  EXPECT_THAT(CursorToBytes(cursor), ::testing::ElementsAreArray(std::as_bytes(std::span(bytes))));
}

TEST(CursorTest, RefusesEveryFlippedBit) {
  for (const Cursor& cursor : Samples()) {
    auto bytes = CursorToBytes(cursor);
    std::string text = CursorToText(cursor);
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
      EXPECT_FALSE(CursorFromBytes(bytes).ok()) << "bit " << bit;
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
    }
    for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
      // The first 17 characters identify a cursor.
      EXPECT_EQ(CursorFromText(text).status().code(),
                bit < 8 * 17 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kDataLoss)
          << "bit " << bit << ": " << text;
      text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    }
  }
}

TEST(CursorTest, RefusesEveryOtherLength) {
  const auto bytes = CursorToBytes(Sample());
  const std::string text = CursorToText(Sample());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(CursorFromBytes(Bytes(bytes).first(length)).ok()) << length;
  }
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(CursorFromText(text.substr(0, length)).ok()) << length;
  }
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.push_back(std::byte{0});
  EXPECT_EQ(CursorFromBytes(longer).status().code(), absl::StatusCode::kDataLoss);
  for (const std::string& other : {text + "\n", " " + text, text + ":", text + "0"}) {
    EXPECT_FALSE(CursorFromText(other).ok()) << other;
  }
}

TEST(CursorTest, RefusesAnotherSpellingOfTheText) {
  const std::string body =
      "shardpack-cursor:1:0123456789abcdef00000000fedcba98:00000000000000a5:3:17";
  ASSERT_TRUE(CursorFromText(Sealed(body)).ok()) << CursorFromText(Sealed(body)).status();
  const std::string head = "shardpack-cursor:1:0123456789abcdef00000000fedcba98:";
  for (const std::string& other :
       {head + "00000000000000a5:03:17", head + "00000000000000A5:3:17", head + "a5:3:17",
        head + "00000000000000a5:3:", head + "00000000000000a5:3", head + "00000000000000a5:-3:17",
        head + "00000000000000a5:3:17:4", head + "00000000000000a5:3:99999999999999999999",
        std::string("shardpack-cursor:0:0:0:0:0"), std::string("shardpack-cursor:1:"),
        std::string("shardpack-cursor:1"), std::string("shardpack-cursor::::::"),
        std::string("shardpack-cursor:1::00000000000000a5:3:17")}) {
    EXPECT_EQ(CursorFromText(Sealed(other)).status().code(), absl::StatusCode::kInvalidArgument)
        << other;
  }
}

TEST(CursorTest, SaysWhichVersionIsTooNew) {
  Cursor newer = Sample();
  newer.version = 3;
  newer.augment = 1;
  std::vector<std::byte> longer(100);
  const auto bytes = CursorToBytes(newer);
  std::copy(bytes.begin(), bytes.end(), longer.begin());
  for (const absl::Status& refused :
       {CursorFromBytes(bytes).status(), CursorFromBytes(longer).status(),
        CursorFromText(CursorToText(newer)).status(),
        CursorFromText(Sealed("shardpack-cursor:3:whatever")).status(),
        CheckCursor(newer, kDataset, MakeOrder())}) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("a cursor of version 3; this program knows up to 2"));
  }
}

TEST(CursorTest, ARunThatAugmentsHasADigestInItsCursors) {
  const Cursor cursor = MakeCursor(kDataset, MakeOrder(), 3, 17, 0xA5);
  const std::string text = CursorToText(cursor);
  EXPECT_TRUE(text.starts_with("shardpack-cursor:2:")) << text;
  EXPECT_EQ(CursorFromText(text).value(), cursor);
  EXPECT_EQ(CursorFromBytes(CursorToBytes(cursor)).value(), cursor);
  const Order order = MakeOrder();
  EXPECT_TRUE(CheckCursor(cursor, kDataset, order, 0xA5).ok());
  EXPECT_TRUE(CheckCursor(cursor, kDataset, order, std::nullopt).ok());
  for (const uint32_t other : {0u, 0xA6u}) {
    EXPECT_THAT(std::string(CheckCursor(cursor, kDataset, order, other).message()),
                HasSubstr("a run with another augmentation: the cursor's has the digest 000000a5"));
  }
  EXPECT_THAT(std::string(CheckCursor(Sample(), kDataset, order, 0xA5).message()),
              HasSubstr("another augmentation"));
}

TEST(CursorTest, RefusesAugmentationThatItsVersionHasNot) {
  for (const Cursor& cursor :
       {Cursor{.version = 1, .augment = 1}, Cursor{.version = 2}, Cursor{.version = 0}}) {
    EXPECT_EQ(CursorFromBytes(CursorToBytes(cursor)).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(CheckCursor(cursor, kDataset, MakeOrder()).message()),
                HasSubstr("it is not a cursor"));
  }
}

TEST(CheckCursorTest, AcceptsEveryStepOfTheEpoch) {
  const Order order = MakeOrder();
  ASSERT_EQ(order.steps(), 31u);
  for (uint64_t step = 0; step <= order.steps(); ++step) {
    EXPECT_TRUE(CheckCursor(MakeCursor(kDataset, order, 5, step), kDataset, order).ok());
  }
}

TEST(CheckCursorTest, NamesEachMismatch) {
  const Order order = MakeOrder();
  const auto message = [&](const Cursor& cursor, const Digest& dataset, const Order& now) {
    const absl::Status status = CheckCursor(cursor, dataset, now);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const Cursor cursor = MakeCursor(kDataset, order, 1, 2);
  const Digest other = {1, 2};
  EXPECT_THAT(message(cursor, other, order),
              AllOf(HasSubstr("another dataset"), HasSubstr(kDataset.ToHex()),
                    HasSubstr(other.ToHex()), Not(HasSubstr("another order"))));
  EXPECT_THAT(message(cursor, {kDataset.high, 0}, order), HasSubstr("another dataset"));
  EXPECT_THAT(message(cursor, kDataset, MakeOrder(8)),
              AllOf(HasSubstr("another order"), HasSubstr("seed=8"), HasSubstr("digest"),
                    Not(HasSubstr("another dataset"))));
  EXPECT_THAT(message(cursor, other, MakeOrder(8)),
              AllOf(HasSubstr("another dataset"), HasSubstr("another order")));
  EXPECT_THAT(message(MakeCursor(kDataset, order, 1, 32), kDataset, order),
              HasSubstr("step 32 is beyond the 31 steps of an epoch"));
}

}  // namespace
}  // namespace shardpack
