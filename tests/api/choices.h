// Choices: where a RandomCaller's decisions come from: a seed, or bytes that a fuzzer made.
//
//   Choices choices(std::span(data, size));
//   switch (choices.Below(3)) ...
//
// Lifetime: the bytes must outlive it.
#ifndef SHARDPACK_TESTS_API_CHOICES_H_
#define SHARDPACK_TESTS_API_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace shardpack::testing {

class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes), from_bytes_(true) {}

  // In [0, most); always 0 once all bytes are used.
  uint64_t Below(uint64_t most) {
    if (!from_bytes_) return random_() % most;
    uint64_t drawn = 0;
    for (uint64_t rest = most - 1; rest > 0 && !used_up(); rest >>= 8) {
      drawn = drawn << 8 | bytes_[used_++];
    }
    return drawn % most;
  }
  bool used_up() const { return from_bytes_ && used_ == bytes_.size(); }

 private:
  std::mt19937_64 random_;
  std::span<const uint8_t> bytes_;
  size_t used_ = 0;
  bool from_bytes_ = false;
};

}  // namespace shardpack::testing

#endif  // SHARDPACK_TESTS_API_CHOICES_H_
