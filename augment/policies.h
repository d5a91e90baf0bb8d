// Policies: RandAugment, TrivialAugmentWide, AutoAugment and AugMix, with the tables of torchvision
// 0.29.
//
//   Operation turn = PolicyOperation(PolicySpace::kRandAugment, OperationKind::kRotate, 9, 31,
//                                   false, 224, 224);            // "rotate(9)"
//
// RandAugment: https://arxiv.org/abs/1909.13719; TrivialAugment: https://arxiv.org/abs/2103.10158;
// AutoAugment: https://arxiv.org/abs/1805.09501; AugMix: https://arxiv.org/abs/1912.02781. Dialects
// that differ (timm's, DALI's) are not offered under these names.
//
// Thread-safety: pure functions.
// Units: a magnitude is a bin of `bins` equal steps.
#ifndef SHARDPACK_AUGMENT_POLICIES_H_
#define SHARDPACK_AUGMENT_POLICIES_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "augment/operation.h"

namespace shardpack {

enum class PolicySpace : uint8_t { kRandAugment, kTrivialAugmentWide, kAutoAugment, kAugMix };
enum class AutoAugmentPolicy : uint8_t { kImagenet, kCifar10, kSvhn };

constexpr auto WordsOf(AutoAugmentPolicy) {
  return std::to_array<std::string_view>({"imagenet", "cifar10", "svhn"});
}

// The 14 operations that RandAugment and TrivialAugmentWide draw from.
std::span<const OperationKind> PolicyOperations();
// The 13 that AugMix draws from, or the 9 without changes of brightness, colour, contrast and
// sharpness, which images of the corrupted test sets have.
std::span<const OperationKind> AugMixOperations(bool all);
// Whether the magnitude's sign is drawn.
bool IsSigned(OperationKind kind);
// The operation at magnitude `bin` of `bins`, for an image of this size.
Operation PolicyOperation(PolicySpace space, OperationKind kind, uint32_t bin, uint32_t bins,
                          bool negative, uint32_t width, uint32_t height);

struct PolicyChoice {
  OperationKind kind;
  double probability;
  uint32_t bin;  // of 10
};
struct SubPolicy {
  std::array<PolicyChoice, 2> choices;
};
std::span<const SubPolicy> SubPolicies(AutoAugmentPolicy policy);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_POLICIES_H_
