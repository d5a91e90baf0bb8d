// Random numbers of a sample: pure functions of (seed, epoch, id) and a number, in integer
// arithmetic, so that no processor or library changes them.
//
//   const uint64_t random = SampleRandom({seed, epoch, id}, 3);
//   const uint32_t column = RandomBelow(random, width);
//
// Thread-safety: pure functions.
#ifndef SHARDPACK_IMAGES_AUGMENT_RANDOM_NUMBERS_H_
#define SHARDPACK_IMAGES_AUGMENT_RANDOM_NUMBERS_H_

#include <cstdint>

#include "images/pixels/host_device.h"

namespace shardpack {

// The inputs of a sample's random numbers. `view`: which of several versions of one sample.
struct SampleIdentity {
  uint64_t seed = 0, epoch = 0, id = 0;
  uint16_t view = 0;
};

// The n-th 64-bit random number of a sample, n below 2^48: SplitMix64's finalizer over a mix of the
// inputs.
SHARDPACK_HOST_DEVICE constexpr uint64_t SampleRandom(const SampleIdentity& sample, uint64_t n);

// A number in [0, 1), from the upper 53 bits.
double RandomUnit(uint64_t random);
// A number from 0 to count - 1; the bias is below count / 2^64.
uint32_t RandomBelow(uint64_t random, uint32_t count);
// From low to high. Rounds once, also on processors that multiply and add in one step.
double RandomBetween(uint64_t random, double low, double high);

// e^x with a relative error of 2^-31, for the logarithms of ratios; equal everywhere.
double PortableExp(double x);
// Like Python's round(): halves go to the even number.
double RoundHalfEven(double x);

// Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014; constants of
// Stafford's variant 13.
SHARDPACK_HOST_DEVICE constexpr uint64_t MixedRandom(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

SHARDPACK_HOST_DEVICE constexpr uint64_t SampleRandom(const SampleIdentity& sample, uint64_t n) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, odd
  uint64_t state = MixedRandom(sample.seed + kGolden);
  state = MixedRandom((state ^ sample.epoch) + kGolden);
  state = MixedRandom((state ^ sample.id) + kGolden);
  return MixedRandom(state + ((uint64_t{sample.view} << 48) + n + 1) * kGolden);
}

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_AUGMENT_RANDOM_NUMBERS_H_
