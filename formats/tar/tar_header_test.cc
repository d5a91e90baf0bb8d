#include "formats/tar/tar_header.h"

#include <array>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

using Block = std::array<std::byte, kTarBlockBytes>;

char* Chars(Block& block) { return reinterpret_cast<char*>(block.data()); }

Block Encoded(std::string_view path, uint64_t size_bytes) {
  Block block;
  block.fill(std::byte{0xAA});  // previous content is overwritten
  EncodeTarHeader(*SplitTarName(path), size_bytes, kTarRegular, block.data());
  return block;
}

void Seal(Block& block) {
  char digits[8];
  std::snprintf(digits, sizeof(digits), "%06o", TarChecksum(block.data()));
  std::memcpy(Chars(block) + 148, digits, 7);
  Chars(block)[155] = ' ';
}

TEST(TarHeader, EncodesEachFieldAsUstarWritesIt) {
  Block block = Encoded("a/b.cls", 1);
  const std::string_view text(Chars(block), kTarBlockBytes);
  EXPECT_EQ(text.substr(0, 8), std::string_view("a/b.cls\0", 8));
  EXPECT_EQ(text.substr(100, 24), std::string_view("0000444\0000000000\0000000000", 24));
  EXPECT_EQ(text.substr(124, 24), std::string_view("00000000001\00000000000000\0", 24));
  EXPECT_EQ(text.substr(148, 9), std::string_view("010336\0 0", 9));
  EXPECT_EQ(text.substr(257, 8), std::string_view("ustar\00000", 8));
  EXPECT_EQ(text.substr(329, 16), std::string_view("0000000\0"
                                                   "0000000\0",
                                                   16));
  EXPECT_TRUE(IsAllZero(Bytes(block).subspan(345)));
}

TEST(TarHeader, DecodesWhatItEncodes) {
  const std::string folder(99, 'd');
  for (const std::string& path :
       {std::string("a.jpg"), std::string(96, 'x') + ".jpg",
        folder + "/" + std::string(96, 'x') + ".jpg", std::string("\xc3\xa9\xff.jpg")}) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{511}, kTarMaxOctalSize}) {
      const Block block = Encoded(path, size);
      TarHeader header;
      ASSERT_EQ(DecodeTarHeader(block.data(), header), TarHeaderFault::kNone) << path;
      const std::string prefix(header.prefix);
      EXPECT_EQ(prefix.empty() ? std::string(header.name) : prefix + "/" + std::string(header.name),
                path);
      EXPECT_EQ(header.size_bytes, size);
      EXPECT_EQ(header.type, kTarRegular);
      EXPECT_EQ(header.dialect, TarDialect::kUstar);
      EXPECT_TRUE(header.usual_checksum);
    }
  }
}

TEST(TarHeader, SplitsAtTheFirstSlashThatFits) {
  EXPECT_EQ(SplitTarName(std::string(100, 'n'))->prefix, "");
  EXPECT_FALSE(SplitTarName(std::string(101, 'n')));
  const std::string two = "aa/bb/" + std::string(97, 'n');
  EXPECT_EQ(SplitTarName(two)->prefix, "aa");
  const std::string longest = std::string(155, 'p') + "/" + std::string(100, 'n');
  ASSERT_TRUE(SplitTarName(longest));
  EXPECT_EQ(SplitTarName(longest)->prefix.size(), 155u);
  EXPECT_EQ(SplitTarName(longest)->name.size(), 100u);
  EXPECT_FALSE(SplitTarName(std::string(156, 'p') + "/" + std::string(99, 'n')));
  EXPECT_FALSE(SplitTarName(std::string(155, 'p') + "/" + std::string(101, 'n')));
  EXPECT_FALSE(SplitTarName("/" + std::string(100, 'n')));  // the prefix would be empty
  EXPECT_FALSE(SplitTarName(std::string(110, 'p') + "/"));  // the name would be empty
}

TEST(TarHeader, EveryFlippedBitIsSeen) {
  const Block good = Encoded("folder/sample.jpg", 12345);
  for (size_t bit = 0; bit < 8 * kTarBlockBytes; ++bit) {
    Block block = good;
    block[bit / 8] ^= std::byte{static_cast<unsigned char>(1 << bit % 8)};
    TarHeader header;
    const TarHeaderFault fault = DecodeTarHeader(block.data(), header);
    EXPECT_TRUE(fault == TarHeaderFault::kChecksum ||
                (fault == TarHeaderFault::kNone && !header.usual_checksum))
        << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST(TarHeader, ReadsSizesInEverySpelling) {
  struct Case {
    std::string field;
    TarHeaderFault fault;
    uint64_t size;
  };
  const auto base256 = [](unsigned char first, std::initializer_list<int> last) {
    std::string field(12, first == 0xff ? '\xff' : '\0');
    field[0] = static_cast<char>(first);
    size_t at = 12 - last.size();
    for (const int byte : last) field[at++] = static_cast<char>(byte);
    return field;
  };
  const TarHeaderFault none = TarHeaderFault::kNone, bad = TarHeaderFault::kSize;
  const Case cases[] = {
      {"00000000017\0", none, 15},
      {"         17 ", none, 15},
      {"17          ", none, 15},
      {std::string("17\0\0\0\0\0\0\0\0\0\0", 12), none, 15},
      {std::string(12, '\0'), none, 0},
      {std::string(12, ' '), none, 0},
      {"777777777777", none, 68719476735},  // 8^12 - 1
      {"0000000001x ", bad, 0},
      {"-0000000001 ", bad, 0},
      {"00000000018 ", bad, 0},
      {"1 1         ", bad, 0},
      {base256(0x80, {1, 0}), none, 256},
      {base256(0x80, {0x3f, 255, 255, 255, 255, 255, 255, 255}), none, (uint64_t{1} << 62) - 1},
      {base256(0x80, {0x40, 0, 0, 0, 0, 0, 0, 0}), bad, 0},
      {base256(0x80, {1, 0, 0, 0, 0, 0, 0, 0, 0}), bad, 0},
      {base256(0xff, {}), bad, 0},
      {base256(0xff, {0x80}), bad, 0},
      {base256(0xc0, {1}), bad, 0},
  };
  for (const Case& c : cases) {
    Block block = Encoded("a.jpg", 0);
    std::string field = c.field;
    field.resize(12, '\0');
    std::memcpy(Chars(block) + 124, field.data(), 12);
    Seal(block);
    TarHeader header;
    EXPECT_EQ(DecodeTarHeader(block.data(), header), c.fault) << c.field;
    if (c.fault == none) {
      EXPECT_EQ(header.size_bytes, c.size) << c.field;
    }
  }
}

TEST(TarHeader, KnowsTheDialects) {
  Block gnu = Encoded("a.jpg", 3);
  std::memcpy(Chars(gnu) + 257, "ustar  \0", 8);
  std::memcpy(Chars(gnu) + 345, "12345670123", 11);  // atime, no prefix
  Seal(gnu);
  TarHeader header;
  ASSERT_EQ(DecodeTarHeader(gnu.data(), header), TarHeaderFault::kNone);
  EXPECT_EQ(header.dialect, TarDialect::kGnu);
  EXPECT_EQ(header.prefix, "");

  Block v7 = Encoded("a.jpg", 3);
  std::memset(Chars(v7) + 156, 0, kTarBlockBytes - 156);
  Seal(v7);
  ASSERT_EQ(DecodeTarHeader(v7.data(), header), TarHeaderFault::kNone);
  EXPECT_EQ(header.dialect, TarDialect::kV7);
  EXPECT_EQ(header.type, kTarRegularV7);

  Block xstar = Encoded("a.jpg", 3);
  std::memcpy(Chars(xstar) + 345, std::string(131, 'p').data(), 131);
  std::memcpy(Chars(xstar) + 476, "00000000000 00000000000 ", 24);
  std::memcpy(Chars(xstar) + 508, "tar\0", 4);
  Seal(xstar);
  ASSERT_EQ(DecodeTarHeader(xstar.data(), header), TarHeaderFault::kNone);
  EXPECT_EQ(header.prefix, std::string(131, 'p'));
}

TEST(TarHeader, TakesSignedChecksums) {
  Block block = Encoded("\xc3\xa9.jpg", 3);
  const uint32_t sum = TarChecksum(block.data());
  char digits[8];
  std::snprintf(digits, sizeof(digits), "%06o", sum - 2 * 256);
  std::memcpy(Chars(block) + 148, digits, 7);
  TarHeader header;
  EXPECT_EQ(DecodeTarHeader(block.data(), header), TarHeaderFault::kNone);
  std::snprintf(digits, sizeof(digits), "%06o", sum - 256);
  std::memcpy(Chars(block) + 148, digits, 7);
  EXPECT_EQ(DecodeTarHeader(block.data(), header), TarHeaderFault::kChecksum);
}

TEST(TarHeader, FirstNonZeroLooksAtEveryByte) {
  std::array<std::byte, 37> bytes{};
  EXPECT_TRUE(IsAllZero(bytes));
  EXPECT_TRUE(IsAllZero({}));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes.fill(std::byte{0});
    bytes[i] = std::byte{1};
    EXPECT_EQ(FirstNonZero(bytes), i);
  }
}

}  // namespace
}  // namespace shardpack
