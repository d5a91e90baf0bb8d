#include "augment/policies.h"

#include <cmath>
#include <iterator>

#include "images/augment/random_numbers.h"

namespace shardpack {
namespace {

using O = OperationKind;

// torchvision/transforms/v2/_auto_augment.py, AutoAugment._get_policies: operation, probability,
// magnitude.
constexpr SubPolicy kImagenet[] = {
    {{{{O::kPosterize, 0.4, 8}, {O::kRotate, 0.6, 9}}}},
    {{{{O::kSolarize, 0.6, 5}, {O::kAutocontrast, 0.6, 0}}}},
    {{{{O::kEqualize, 0.8, 0}, {O::kEqualize, 0.6, 0}}}},
    {{{{O::kPosterize, 0.6, 7}, {O::kPosterize, 0.6, 6}}}},
    {{{{O::kEqualize, 0.4, 0}, {O::kSolarize, 0.2, 4}}}},
    {{{{O::kEqualize, 0.4, 0}, {O::kRotate, 0.8, 8}}}},
    {{{{O::kSolarize, 0.6, 3}, {O::kEqualize, 0.6, 0}}}},
    {{{{O::kPosterize, 0.8, 5}, {O::kEqualize, 1, 0}}}},
    {{{{O::kRotate, 0.2, 3}, {O::kSolarize, 0.6, 8}}}},
    {{{{O::kEqualize, 0.6, 0}, {O::kPosterize, 0.4, 6}}}},
    {{{{O::kRotate, 0.8, 8}, {O::kSaturation, 0.4, 0}}}},
    {{{{O::kRotate, 0.4, 9}, {O::kEqualize, 0.6, 0}}}},
    {{{{O::kEqualize, 0, 0}, {O::kEqualize, 0.8, 0}}}},
    {{{{O::kInvert, 0.6, 0}, {O::kEqualize, 1, 0}}}},
    {{{{O::kSaturation, 0.6, 4}, {O::kContrast, 1, 8}}}},
    {{{{O::kRotate, 0.8, 8}, {O::kSaturation, 1, 2}}}},
    {{{{O::kSaturation, 0.8, 8}, {O::kSolarize, 0.8, 7}}}},
    {{{{O::kSharpness, 0.4, 7}, {O::kInvert, 0.6, 0}}}},
    {{{{O::kShearX, 0.6, 5}, {O::kEqualize, 1, 0}}}},
    {{{{O::kSaturation, 0.4, 0}, {O::kEqualize, 0.6, 0}}}},
    {{{{O::kEqualize, 0.4, 0}, {O::kSolarize, 0.2, 4}}}},
    {{{{O::kSolarize, 0.6, 5}, {O::kAutocontrast, 0.6, 0}}}},
    {{{{O::kInvert, 0.6, 0}, {O::kEqualize, 1, 0}}}},
    {{{{O::kSaturation, 0.6, 4}, {O::kContrast, 1, 8}}}},
    {{{{O::kEqualize, 0.8, 0}, {O::kEqualize, 0.6, 0}}}},
};
constexpr SubPolicy kCifar10[] = {
    {{{{O::kInvert, 0.1, 0}, {O::kContrast, 0.2, 6}}}},
    {{{{O::kRotate, 0.7, 2}, {O::kTranslateX, 0.3, 9}}}},
    {{{{O::kSharpness, 0.8, 1}, {O::kSharpness, 0.9, 3}}}},
    {{{{O::kShearY, 0.5, 8}, {O::kTranslateY, 0.7, 9}}}},
    {{{{O::kAutocontrast, 0.5, 0}, {O::kEqualize, 0.9, 0}}}},
    {{{{O::kShearY, 0.2, 7}, {O::kPosterize, 0.3, 7}}}},
    {{{{O::kSaturation, 0.4, 3}, {O::kBrightness, 0.6, 7}}}},
    {{{{O::kSharpness, 0.3, 9}, {O::kBrightness, 0.7, 9}}}},
    {{{{O::kEqualize, 0.6, 0}, {O::kEqualize, 0.5, 0}}}},
    {{{{O::kContrast, 0.6, 7}, {O::kSharpness, 0.6, 5}}}},
    {{{{O::kSaturation, 0.7, 7}, {O::kTranslateX, 0.5, 8}}}},
    {{{{O::kEqualize, 0.3, 0}, {O::kAutocontrast, 0.4, 0}}}},
    {{{{O::kTranslateY, 0.4, 3}, {O::kSharpness, 0.2, 6}}}},
    {{{{O::kBrightness, 0.9, 6}, {O::kSaturation, 0.2, 8}}}},
    {{{{O::kSolarize, 0.5, 2}, {O::kInvert, 0, 0}}}},
    {{{{O::kEqualize, 0.2, 0}, {O::kAutocontrast, 0.6, 0}}}},
    {{{{O::kEqualize, 0.2, 0}, {O::kEqualize, 0.6, 0}}}},
    {{{{O::kSaturation, 0.9, 9}, {O::kEqualize, 0.6, 0}}}},
    {{{{O::kAutocontrast, 0.8, 0}, {O::kSolarize, 0.2, 8}}}},
    {{{{O::kBrightness, 0.1, 3}, {O::kSaturation, 0.7, 0}}}},
    {{{{O::kSolarize, 0.4, 5}, {O::kAutocontrast, 0.9, 0}}}},
    {{{{O::kTranslateY, 0.9, 9}, {O::kTranslateY, 0.7, 9}}}},
    {{{{O::kAutocontrast, 0.9, 0}, {O::kSolarize, 0.8, 3}}}},
    {{{{O::kEqualize, 0.8, 0}, {O::kInvert, 0.1, 0}}}},
    {{{{O::kTranslateY, 0.7, 9}, {O::kAutocontrast, 0.9, 0}}}},
};
constexpr SubPolicy kSvhn[] = {
    {{{{O::kShearX, 0.9, 4}, {O::kInvert, 0.2, 0}}}},
    {{{{O::kShearY, 0.9, 8}, {O::kInvert, 0.7, 0}}}},
    {{{{O::kEqualize, 0.6, 0}, {O::kSolarize, 0.6, 6}}}},
    {{{{O::kInvert, 0.9, 0}, {O::kEqualize, 0.6, 0}}}},
    {{{{O::kEqualize, 0.6, 0}, {O::kRotate, 0.9, 3}}}},
    {{{{O::kShearX, 0.9, 4}, {O::kAutocontrast, 0.8, 0}}}},
    {{{{O::kShearY, 0.9, 8}, {O::kInvert, 0.4, 0}}}},
    {{{{O::kShearY, 0.9, 5}, {O::kSolarize, 0.2, 6}}}},
    {{{{O::kInvert, 0.9, 0}, {O::kAutocontrast, 0.8, 0}}}},
    {{{{O::kEqualize, 0.6, 0}, {O::kRotate, 0.9, 3}}}},
    {{{{O::kShearX, 0.9, 4}, {O::kSolarize, 0.3, 3}}}},
    {{{{O::kShearY, 0.8, 8}, {O::kInvert, 0.7, 0}}}},
    {{{{O::kEqualize, 0.9, 0}, {O::kTranslateY, 0.6, 6}}}},
    {{{{O::kInvert, 0.9, 0}, {O::kEqualize, 0.6, 0}}}},
    {{{{O::kContrast, 0.3, 3}, {O::kRotate, 0.8, 4}}}},
    {{{{O::kInvert, 0.8, 0}, {O::kTranslateY, 0, 2}}}},
    {{{{O::kShearY, 0.7, 6}, {O::kSolarize, 0.4, 8}}}},
    {{{{O::kInvert, 0.6, 0}, {O::kRotate, 0.8, 4}}}},
    {{{{O::kShearY, 0.3, 7}, {O::kTranslateX, 0.9, 3}}}},
    {{{{O::kShearX, 0.1, 6}, {O::kInvert, 0.6, 0}}}},
    {{{{O::kSolarize, 0.7, 2}, {O::kTranslateY, 0.6, 7}}}},
    {{{{O::kShearY, 0.8, 4}, {O::kInvert, 0.8, 0}}}},
    {{{{O::kShearX, 0.7, 9}, {O::kTranslateY, 0.8, 3}}}},
    {{{{O::kShearY, 0.8, 5}, {O::kAutocontrast, 0.7, 0}}}},
    {{{{O::kShearX, 0.7, 2}, {O::kInvert, 0.1, 0}}}},
};

constexpr OperationKind kDrawn[] = {O::kIdentity,     O::kShearX,    O::kShearY,     O::kTranslateX,
                                    O::kTranslateY,   O::kRotate,    O::kBrightness, O::kSaturation,
                                    O::kContrast,     O::kSharpness, O::kPosterize,  O::kSolarize,
                                    O::kAutocontrast, O::kEqualize};

constexpr OperationKind kMixed[] = {O::kShearX,   O::kShearY,     O::kTranslateX, O::kTranslateY,
                                    O::kRotate,   O::kPosterize,  O::kSolarize,   O::kAutocontrast,
                                    O::kEqualize, O::kBrightness, O::kSaturation, O::kContrast,
                                    O::kSharpness};

// torch.linspace in float.
double Spaced(float first, float last, uint32_t i, uint32_t count) {
  if (count == 1) return first;
  const float step = (last - first) / static_cast<float>(count - 1);
  return i < count / 2 ? first + step * static_cast<float>(i)
                       : last - step * static_cast<float>(count - 1 - i);
}

}  // namespace

std::span<const OperationKind> PolicyOperations() { return kDrawn; }

std::span<const OperationKind> AugMixOperations(bool all) {
  return std::span(kMixed).first(all ? std::size(kMixed) : 9);
}

bool IsSigned(OperationKind kind) {
  switch (kind) {
    case O::kShearX:
    case O::kShearY:
    case O::kTranslateX:
    case O::kTranslateY:
    case O::kRotate:
    case O::kBrightness:
    case O::kSaturation:
    case O::kContrast:
    case O::kSharpness:
      return true;
    default:
      return false;
  }
}

std::span<const SubPolicy> SubPolicies(AutoAugmentPolicy policy) {
  switch (policy) {
    case AutoAugmentPolicy::kImagenet:
      return kImagenet;
    case AutoAugmentPolicy::kCifar10:
      return kCifar10;
    case AutoAugmentPolicy::kSvhn:
      return kSvhn;
  }
  return {};
}

Operation PolicyOperation(PolicySpace space, OperationKind kind, uint32_t bin, uint32_t bins,
                          bool negative, uint32_t width, uint32_t height) {
  const bool wide = space == PolicySpace::kTrivialAugmentWide, mix = space == PolicySpace::kAugMix;
  const auto spaced = [&](double last) {
    const double value = Spaced(0, static_cast<float>(last), bin, bins);
    return negative ? -value : value;
  };
  Operation made{kind};
  switch (kind) {
    case O::kShearX:
    case O::kShearY:
      made.values[0] = spaced(wide ? 0.99 : 0.3);
      break;
    case O::kTranslateX:
      made.values[0] = std::trunc(spaced(wide ? 32.0 : mix ? width / 3.0 : 150.0 / 331 * width));
      break;
    case O::kTranslateY:
      made.values[0] = std::trunc(spaced(wide ? 32.0 : mix ? height / 3.0 : 150.0 / 331 * height));
      break;
    case O::kRotate:
      made.values[0] = spaced(wide ? 135 : 30);
      break;
    case O::kBrightness:
    case O::kSaturation:
    case O::kContrast:
    case O::kSharpness:
      made.values[0] = 1 + spaced(wide ? 0.99 : 0.9);
      break;
    case O::kPosterize: {
      const float steps = static_cast<float>(bins - 1) / (wide ? 6 : 4);
      const float less = bins == 1 ? 0 : static_cast<float>(bin) / steps;
      made.values[0] = RoundHalfEven(static_cast<double>((mix ? 4 : 8) - less));
      break;
    }
    case O::kSolarize:
      made.values[0] = 255 * Spaced(1, 0, bin, bins);
      break;
    default:
      break;
  }
  return made;
}

}  // namespace shardpack
