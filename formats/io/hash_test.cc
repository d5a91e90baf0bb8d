#include "formats/io/hash.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/testing/sample_generator.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

// The input of xxHash's own sanity check (cli/xsum_sanity_check.c), whose values follow.
std::string SanityBuffer(size_t bytes) {
  std::string buffer(bytes, '\0');
  uint64_t state = 2654435761u;
  for (char& c : buffer) {
    c = static_cast<char>(state >> 56);
    state *= 11400714785074694797u;
  }
  return buffer;
}

TEST(Xxh3, KnownAnswers64) {
  constexpr std::pair<size_t, uint64_t> kAnswers[] = {
      {0, 0x2D06800538D394C2u},   {1, 0xC44BDFF4074EECDBu},    {6, 0x27B56A84CD2D7325u},
      {12, 0xA713DAF0DFBB77E7u},  {24, 0xA3FE70BF9D3510EBu},   {48, 0x397DA259ECBA1F11u},
      {80, 0xBCDEFBBB2C47C90Au},  {195, 0xCD94217EE362EC3Au},  {403, 0xCDEB804D65C6DEA4u},
      {512, 0x617E49599013CB6Bu}, {2048, 0xDD59E2C3A5F038E0u}, {2240, 0x6E73A90539CF2948u},
      {2367, 0xCB37AEB9E5D361EDu}};
  for (const auto& [bytes, hash] : kAnswers) {
    EXPECT_EQ(Xxh3_64(AsBytes(SanityBuffer(bytes))), hash) << bytes;
  }
}

TEST(Xxh3, KnownAnswers128) {
  constexpr std::pair<size_t, Digest> kAnswers[] = {
      {0, {0x99AA06D3014798D8u, 0x6001C324468D497Fu}},
      {1, {0xA6CD5E9392000F6Au, 0xC44BDFF4074EECDBu}},
      {6, {0x082AFE0B8162D12Au, 0x3E7039BDDA43CFC6u}},
      {12, {0x6E3EFD8FC7802B18u, 0x061A192713F69AD9u}},
      {24, {0x0CE966E4678D3761u, 0x1E7044D28B1B901Du}},
      {48, {0xA002AC4E5478227Eu, 0xF942219AED80F67Bu}},
      {81, {0x4952F58181AB0042u, 0x5E8BAFB9F95FB803u}},
      {403, {0x1B6DE21E332DD73Du, 0xCDEB804D65C6DEA4u}},
      {512, {0x18D2D110DCC9BCA1u, 0x617E49599013CB6Bu}},
      {2048, {0xF736557FD47073A5u, 0xDD59E2C3A5F038E0u}},
      {2240, {0xCCB134FBFA7CE49Du, 0x6E73A90539CF2948u}}};
  for (const auto& [bytes, hash] : kAnswers) {
    EXPECT_EQ(Xxh3_128(AsBytes(SanityBuffer(bytes))), hash) << bytes;
  }
}

// RFC 3720, appendix B.4.
TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(Crc32c({}), 0u);
  EXPECT_EQ(Crc32c(AsBytes("123456789")), 0xE3069283u);
  EXPECT_EQ(Crc32c(AsBytes(std::string(32, '\0'))), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(AsBytes(std::string(32, '\xFF'))), 0x62A8AB43u);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  EXPECT_EQ(Crc32c(AsBytes(ascending)), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(AsBytes(std::string(ascending.rbegin(), ascending.rend()))), 0x113FDB5Cu);
}

TEST(Streams, PiecesDoNotMatter) {
  testing::Random random(3);
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = random.Bytes(random.Below(5000));
    FieldHashStream field;
    DigestStream digest;
    uint32_t crc = 0;
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::string_view piece = rest.substr(0, random.Below(700));
      rest.remove_prefix(piece.size());
      field.Update(AsBytes(piece));
      digest.Update(AsBytes(piece));
      crc = Crc32c(AsBytes(piece), crc);
      if (i % 2 == 0) (void)digest.Finish();  // a look in between has no effect
    }
    EXPECT_EQ(field.Finish(), Xxh3_64(AsBytes(bytes)));
    EXPECT_EQ(digest.Finish(), Xxh3_128(AsBytes(bytes)));
    EXPECT_EQ(crc, Crc32c(AsBytes(bytes)));
  }
}

TEST(Streams, MoveAndReset) {
  FieldHashStream a;
  a.Update(AsBytes("old"));
  a.Reset();
  a.Update(AsBytes("ab"));
  FieldHashStream b = std::move(a);
  b.Update(AsBytes("c"));
  EXPECT_EQ(b.Finish(), Xxh3_64(AsBytes("abc")));
  DigestStream c;
  c.Update(AsBytes("ab"));
  DigestStream d;
  d = std::move(c);
  d.Update(AsBytes("c"));
  EXPECT_EQ(d.Finish(), Xxh3_128(AsBytes("abc")));
}

TEST(Digest, HexAndBack) {
  const Digest digest = {0x0123456789ABCDEFu, 0x00000000000000FFu};
  EXPECT_EQ(digest.ToHex(), "0123456789abcdef00000000000000ff");
  EXPECT_EQ(ParseDigest(digest.ToHex()), digest);
  for (const char* bad : {"", "0123456789abcdef00000000000000f",
                          "0123456789abcdef00000000000000fff", "0123456789ABCDEF00000000000000ff",
                          "0123456789abcdef 0000000000000ff", "g123456789abcdef00000000000000ff"}) {
    EXPECT_EQ(ParseDigest(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace shardpack
