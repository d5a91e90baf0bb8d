#include "images/augment/random_numbers.h"

#include <cmath>
#include <numbers>

namespace shardpack {
namespace {

// 2^(x / 2^32) in units of 2^-32, for x below 2^32: the product of 2^(2^-k) over the set bits.
// Integers only, so the last bit does not depend on a library or processor.
uint64_t ExpTwo(uint32_t x) {
  uint64_t result = uint64_t{1} << 32;
  // The repeated square roots 2^(1/2), 2^(1/4), ..., minus one, in units of 2^-64.
  static constexpr uint64_t kRoots[] = {
      0x6A09E667F3BCC908, 0x306FE0A31B7152DE, 0x172B83C7D517ADCD, 0x0B5586CF9890F629,
      0x059B0D31585743AE, 0x02C9A3E778060EE6, 0x0163DA9FB33356D8, 0x00B1AFA5ABCBED61,
      0x0058C86DA1C09EA1, 0x002C605E2E8CEC50, 0x00162F3904051FA1, 0x000B175EFFDC76BA,
      0x00058BA01FB9F96D, 0x0002C5CC37DA9491, 0x000162E525EE0547, 0x0000B17255775C04,
      0x000058B91B5BC9AE, 0x00002C5C89D5EC6C, 0x0000162E43F4F831, 0x00000B1721BCFC99,
      0x0000058B90CF1E6D, 0x000002C5C863B73F, 0x00000162E430E5A1, 0x000000B172183551,
      0x00000058B90C0B48, 0x0000002C5C8601CC, 0x000000162E42FFF0, 0x0000000B17217FBA,
      0x000000058B90BFCD, 0x00000002C5C85FE3, 0x0000000162E42FF0, 0x00000000B17217F8};
  for (int bit = 0; bit < 32; ++bit) {
    if ((x >> (31 - bit) & 1) != 0) {
      result += static_cast<uint64_t>(static_cast<unsigned __int128>(result) * kRoots[bit] >> 64);
    }
  }
  return result;
}

}  // namespace

double RandomUnit(uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

uint32_t RandomBelow(uint64_t random, uint32_t count) {
  return static_cast<uint32_t>(static_cast<unsigned __int128>(random) * count >> 64);
}

double RandomBetween(uint64_t random, double low, double high) {
  return std::fma(RandomUnit(random), high - low, low);
}

double PortableExp(double x) {
  // As a power of two in units of 2^-32; libraries agree to this precision.
  const auto power = static_cast<int64_t>(std::floor(x * std::numbers::log2e * 0x1p32 + 0.5));
  const auto whole = static_cast<int>(power >> 32);
  const auto part = static_cast<uint32_t>(power & 0xFFFFFFFF);
  return std::ldexp(static_cast<double>(ExpTwo(part)) * 0x1p-32, whole);
}

double RoundHalfEven(double x) {
  const double floor = std::floor(x), rest = x - floor;
  if (rest != 0.5) return rest < 0.5 ? floor : floor + 1;
  return std::fmod(floor, 2) == 0 ? floor : floor + 1;
}

}  // namespace shardpack
