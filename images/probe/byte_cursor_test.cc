#include "images/probe/byte_cursor.h"

#include <gtest/gtest.h>

#include <array>

namespace shardpack {
namespace {

constexpr std::array<std::byte, 9> kBytes = {std::byte{1}, std::byte{2}, std::byte{3},
                                             std::byte{4}, std::byte{5}, std::byte{6},
                                             std::byte{7}, std::byte{8}, std::byte{0xFF}};
using Endian = ByteCursor::Endian;

TEST(ByteCursorTest, ReadsBothOrders) {
  ByteCursor big(kBytes, Endian::kBig);
  EXPECT_EQ(big.U64(), 0x0102030405060708u);
  EXPECT_EQ(big.U8(), 0xFFu);
  EXPECT_TRUE(big.ok());
  EXPECT_EQ(big.remaining(), 0u);
  ByteCursor little(kBytes, Endian::kLittle, 1);
  EXPECT_EQ(little.U16(), 0x0302u);
  EXPECT_EQ(little.U24(), 0x060504u);
  EXPECT_EQ(little.offset(), 6u);
  EXPECT_EQ(ByteCursor(kBytes, Endian::kLittle, 5).U32(), 0xFF080706u);
}

TEST(ByteCursorTest, FailureStays) {
  ByteCursor cursor(kBytes, Endian::kBig, 6);
  EXPECT_EQ(cursor.U32(), 0u);  // three bytes are left
  EXPECT_FALSE(cursor.ok());
  EXPECT_EQ(cursor.offset(), 6u);
  EXPECT_EQ(cursor.remaining(), 0u);
  EXPECT_EQ(cursor.U8(), 0u);
  EXPECT_FALSE(cursor.Skip(0));
  EXPECT_TRUE(cursor.Take(1).empty());
}

TEST(ByteCursorTest, HugeOffsetsAndSizes) {
  EXPECT_FALSE(ByteCursor(kBytes, Endian::kBig, 10).ok());
  EXPECT_FALSE(ByteCursor(kBytes, Endian::kBig, ~uint64_t{0}).ok());
  EXPECT_TRUE(ByteCursor(kBytes, Endian::kBig, 9).ok());
  ByteCursor cursor(kBytes, Endian::kBig, 2);
  EXPECT_FALSE(cursor.Skip(~uint64_t{0}));
  EXPECT_EQ(cursor.U8(), 0u);
}

TEST(ByteCursorTest, TakeIsAViewOfTheBytes) {
  ByteCursor cursor(kBytes, Endian::kBig, 3);
  const auto taken = cursor.Take(6);
  EXPECT_EQ(taken.data(), kBytes.data() + 3);
  EXPECT_EQ(taken.size(), 6u);
  EXPECT_TRUE(cursor.ok());
}

}  // namespace
}  // namespace shardpack
