#include "formats/io/crypto_hash.h"

#include <string>
#include <string_view>

#include "formats/testing/sample_generator.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

template <typename Stream>
std::string HexOf(std::string_view text) {
  Stream stream;
  stream.Update(AsBytes(text));
  return stream.FinishHex();
}

// FIPS 180-4 and the NIST example values.
TEST(Sha256, KnownAnswers) {
  const auto Sha256 = HexOf<Sha256Stream>;
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The test suite of RFC 1321, A.5.
TEST(Md5, KnownAnswers) {
  const auto Md5 = HexOf<Md5Stream>;
  EXPECT_EQ(Md5(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(Md5("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
}

TEST(CryptoHash, PiecesDoNotMatter) {
  testing::Random random(3);
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = random.Bytes(random.Below(5000));
    Sha256Stream sha256;
    Md5Stream md5;
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::string_view piece = rest.substr(0, random.Below(700));
      rest.remove_prefix(piece.size());
      sha256.Update(AsBytes(piece));
      md5.Update(AsBytes(piece));
    }
    EXPECT_EQ(sha256.FinishHex(), HexOf<Sha256Stream>(bytes));
    EXPECT_EQ(md5.FinishHex(), HexOf<Md5Stream>(bytes));
  }
}

}  // namespace
}  // namespace shardpack
