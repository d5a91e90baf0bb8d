#include "images/probe/marker_scan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace shardpack {
namespace {

// A buffer of exactly this size, so that ASan detects reads past its end.
struct Exact {
  explicit Exact(const std::vector<uint8_t>& bytes)
      : data(new std::byte[bytes.size()]), size(bytes.size()) {
    if (size != 0) std::memcpy(data.get(), bytes.data(), size);
  }
  std::span<const std::byte> span() const { return {data.get(), size}; }
  std::unique_ptr<std::byte[]> data;
  size_t size;
};

// The definition, byte by byte.
uint64_t Reference(const std::vector<uint8_t>& bytes, uint64_t from) {
  for (uint64_t i = from; i + 1 < bytes.size(); ++i) {
    const uint8_t code = bytes[i + 1];
    if (bytes[i] == 0xFF && code != 0x00 && code != 0xFF && (code < 0xD0 || code > 0xD7)) return i;
  }
  return bytes.size();
}

void ExpectAllAgree(const std::vector<uint8_t>& bytes, uint64_t from) {
  const Exact exact(bytes);
  const uint64_t expected = Reference(bytes, from);
  ASSERT_EQ(FindJpegMarker(exact.span(), from), expected) << bytes.size() << " from " << from;
  ASSERT_EQ(FindJpegMarkerPortable(exact.span(), from), expected)
      << bytes.size() << " from " << from;
}

TEST(MarkerScanTest, FindsEveryCodeAtEveryPosition) {
  for (const size_t size : {2, 3, 16, 17, 63, 64, 65, 66, 127, 128, 129, 130, 200}) {
    for (size_t at = 0; at + 1 < size; ++at) {
      for (const int code : {0x00, 0x01, 0xC0, 0xCF, 0xD0, 0xD3, 0xD7, 0xD8, 0xD9, 0xFE, 0xFF}) {
        std::vector<uint8_t> bytes(size, 0x5A);
        bytes[at] = 0xFF;
        bytes[at + 1] = static_cast<uint8_t>(code);
        ExpectAllAgree(bytes, 0);
      }
    }
  }
}

TEST(MarkerScanTest, AllPairsOfBytes) {
  for (int code = 0; code < 256; ++code) {
    std::vector<uint8_t> bytes(80, 0x11);
    bytes[40] = 0xFF;
    bytes[41] = static_cast<uint8_t>(code);
    ExpectAllAgree(bytes, 0);
  }
}

TEST(MarkerScanTest, AgreesOnRandomBytesFullOfFF) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> bytes(random() % 400);
    // Mostly bytes that are skipped, so that the search gets far.
    const uint8_t likely[] = {0xFF, 0x00, 0xD0, 0xD7, 0x80, 0x7F, 0x33};
    for (uint8_t& byte : bytes) {
      byte = random() % 100 == 0 ? static_cast<uint8_t>(random()) : likely[random() % 7];
    }
    for (uint64_t from = 0; from <= bytes.size(); from += 1 + random() % 40) {
      ExpectAllAgree(bytes, from);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(MarkerScanTest, StartsAtOrPastTheEnd) {
  ExpectAllAgree({}, 0);
  ExpectAllAgree({0xFF}, 0);
  ExpectAllAgree({0xFF, 0xD9}, 1);
  ExpectAllAgree({0xFF, 0xD9}, 2);
  EXPECT_EQ(FindJpegMarker(Exact({0xFF, 0xD9}).span(), 7), 2u);
}

}  // namespace
}  // namespace shardpack
