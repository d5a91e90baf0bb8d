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

namespace shardpack {

// The inputs of a sample's random numbers. `view`: which of several versions of one sample.
struct SampleIdentity {
  uint64_t seed = 0, epoch = 0, id = 0;
  uint16_t view = 0;
};

// The n-th 64-bit random number of a sample, n below 2^48: SplitMix64's finalizer over a mix of the
// inputs.
uint64_t SampleRandom(const SampleIdentity& sample, uint64_t n);

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

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_AUGMENT_RANDOM_NUMBERS_H_
