#include "formats/tfrecord/record_framing.h"

#include <string>

#include "formats/io/hash.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

std::string Frame(std::string_view payload) {
  const auto header = EncodeRecordHeader(payload.size());
  const auto footer = EncodeRecordFooter(Crc32c(AsBytes(payload)));
  std::string record(AsText(header));
  record.append(payload);
  return record.append(AsText(footer));
}

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    hex.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return hex;
}

TEST(RecordFraming, ChecksumIsCastagnoliAndMasked) {
  EXPECT_EQ(Crc32c(AsBytes("123456789")), 0xE3069283u);
  EXPECT_EQ(MaskCrc(0), 0xA282EAD8u);
  // ((0xE3069283 >> 15) | (0xE3069283 << 17)) + 0xA282EAD8
  EXPECT_EQ(MaskedCrc32c(AsBytes("123456789")), MaskCrc(0xE3069283u));
}

// TensorFlow's writer produced these bytes for these two payloads.
TEST(RecordFraming, KnownRecords) {
  EXPECT_EQ(Hex(Frame("")),
            "00000000000000002903980"
            "7d8ea82a2");
  EXPECT_EQ(Hex(Frame("hello")), "0500000000000000eab2043e68656c6c6fbb1f1c19");
}

TEST(RecordFraming, HeaderComesBack) {
  for (const uint64_t length :
       {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 63, ~uint64_t{0}}) {
    const auto header = EncodeRecordHeader(length);
    const RecordHeader decoded = DecodeRecordHeader(header);
    EXPECT_TRUE(decoded.valid());
    EXPECT_EQ(decoded.length, length);
  }
}

TEST(RecordFraming, EveryBitOfAHeaderCounts) {
  for (size_t bit = 0; bit < kRecordHeaderBytes * 8; ++bit) {
    auto header = EncodeRecordHeader(1041);
    header[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(DecodeRecordHeader(header).valid()) << bit;
  }
}

}  // namespace
}  // namespace shardpack
