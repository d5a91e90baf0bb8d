// What steps of a plan draw for a sample.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "augment/gamma_numbers.h"
#include "augment/plan_step.h"
#include "augment/policies.h"
#include "augment/program.h"
#include "images/augment/random_numbers.h"

namespace shardpack {
namespace {

void DrawOperation(const PlanStep& step, const StepRandom& random, SampleProgram& program) {
  const OperationFacts& facts = FactsOf(step.operation);
  Operation made{step.operation};
  for (size_t i = 0; i < facts.count(); ++i) {
    const auto [low, high] = step.values[i];
    const uint64_t number = random(1 + static_cast<uint32_t>(i));
    if (low == high) {
      made.values[i] = low;
    } else if (facts.parameters[i].whole) {
      const double between = facts.parameters[i].odd ? 2 : 1;
      const double count = std::min((high - low) / between + 1, 0x1p32 - 1);
      made.values[i] = low + between * RandomBelow(number, static_cast<uint32_t>(count));
    } else {
      made.values[i] = RandomBetween(number, low, high);
    }
  }
  program.operations.push_back(made);
}

// Of noise: a number that a double holds, above 0.
double SeedOf(uint64_t random) { return static_cast<double>((random >> 12) + 1); }

// A random order of the four, then each with a factor of its own.
void DrawColorJitter(const PlanStep& step, const StepRandom& random, SampleProgram& program) {
  constexpr OperationKind kKinds[] = {OperationKind::kBrightness, OperationKind::kContrast,
                                      OperationKind::kSaturation, OperationKind::kHue};
  std::array<uint32_t, 4> order = {0, 1, 2, 3};
  for (uint32_t i = 3; i > 0; --i) std::swap(order[i], order[RandomBelow(random(i), i + 1)]);
  for (const uint32_t i : order) {
    const auto [low, high] = step.values[i];
    if (low == high && low == (i == 3 ? 0 : 1)) continue;  // no change
    Operation made{kKinds[i]};
    made.values[0] = RandomBetween(random(4 + i), low, high);
    program.operations.push_back(made);
  }
}

// torchvision/transforms/v2/_augment.py, RandomErasing.make_params.
void DrawErase(const PlanStep& step, const StepRandom& random, uint32_t width, uint32_t height,
               SampleProgram& program) {
  constexpr uint32_t kTries = 10;
  const double area = static_cast<double>(uint64_t{width} * height);
  const double low = std::log(step.values[1].low), high = std::log(step.values[1].high);
  for (uint32_t i = 0; i < kTries; ++i) {
    const uint32_t n = 8 + 4 * i;
    const double target = area * RandomBetween(random(n), step.values[0].low, step.values[0].high);
    const double ratio = PortableExp(RandomBetween(random(n + 1), low, high));
    const double h = RoundHalfEven(std::sqrt(target * ratio));
    const double w = RoundHalfEven(std::sqrt(target / ratio));
    if (w < 1 || h < 1 || w >= width || h >= height) continue;
    Operation made{OperationKind::kErase};
    made.values = {double(RandomBelow(random(n + 3), width - static_cast<uint32_t>(w) + 1)),
                   double(RandomBelow(random(n + 2), height - static_cast<uint32_t>(h) + 1)),
                   w,
                   h,
                   step.values[2].low,
                   step.values[3].low,
                   step.values[4].low,
                   step.noise ? SeedOf(random(1)) : 0};
    program.operations.push_back(made);
    return;
  }
}

void DrawPolicy(const PlanStep& step, const StepRandom& random, uint32_t width, uint32_t height,
                SampleProgram& program) {
  const auto add = [&](PolicySpace space, OperationKind kind, uint32_t bin, uint32_t bins,
                       uint64_t sign) {
    const bool negative = IsSigned(kind) && RandomUnit(sign) < 0.5;
    program.operations.push_back(PolicyOperation(space, kind, bin, bins, negative, width, height));
  };
  const std::span<const OperationKind> kinds = PolicyOperations();
  const auto any = [&](uint64_t number) {
    return kinds[RandomBelow(number, static_cast<uint32_t>(kinds.size()))];
  };
  if (step.kind == StepKind::kRandAugment) {
    for (uint32_t j = 0; j < step.values[0].low; ++j) {
      add(PolicySpace::kRandAugment, any(random(8 + 3 * j)),
          static_cast<uint32_t>(step.values[1].low), static_cast<uint32_t>(step.values[2].low),
          random(10 + 3 * j));
    }
  } else if (step.kind == StepKind::kTrivialAugmentWide) {
    const auto bins = static_cast<uint32_t>(step.values[0].low);
    add(PolicySpace::kTrivialAugmentWide, any(random(8)), RandomBelow(random(9), bins), bins,
        random(10));
  } else {
    const std::span<const SubPolicy> policies = SubPolicies(step.policy);
    const SubPolicy& chosen =
        policies[RandomBelow(random(8), static_cast<uint32_t>(policies.size()))];
    for (uint32_t j = 0; j < chosen.choices.size(); ++j) {
      const PolicyChoice& choice = chosen.choices[j];
      if (RandomUnit(random(9 + 2 * j)) >= choice.probability) continue;
      add(PolicySpace::kAutoAugment, choice.kind, choice.bin, 10, random(10 + 2 * j));
    }
  }
}

// torchvision/transforms/v2/_geometry.py, RandomPerspective.make_params: each corner moves into the
// image, by less than half of a side. Corners that do not form a quadrilateral: the image stays.
void DrawPerspective(const PlanStep& step, const StepRandom& random, uint32_t width,
                     uint32_t height, SampleProgram& program) {
  const double distortion = RandomBetween(random(1), step.values[0].low, step.values[0].high);
  const uint32_t most_x = static_cast<uint32_t>(distortion * (width / 2));
  const uint32_t most_y = static_cast<uint32_t>(distortion * (height / 2));
  Operation made{OperationKind::kPerspective};
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t x = RandomBelow(random(8 + 2 * i), most_x + 1);
    const uint32_t y = RandomBelow(random(9 + 2 * i), most_y + 1);
    const bool right = i == 1 || i == 2, lower = i >= 2;
    made.values[2 * i] = right ? double(width) - 1 - x : x;
    made.values[2 * i + 1] = lower ? double(height) - 1 - y : y;
  }
  made.values[8] = step.values[1].low;
  made.values[9] = step.values[2].low;
  if (SourceOf(made, width, height)) program.operations.push_back(made);
}

// The numbers of a step from one on, in turn.
class NumbersFrom {
 public:
  NumbersFrom(const StepRandom& random, uint32_t first) : random_(random), next_(first) {}
  double Unit() { return RandomUnit(random_(next_++)); }

 private:
  const StepRandom& random_;
  uint32_t next_;
};

// Rounded down to a multiple of 2^-16, so that the last bits of a library's logarithm do not matter
// and weights are at most 1 together.
double Weight(double share) { return std::floor(share * 0x1p16) * 0x1p-16; }

// torchvision/transforms/v2/_auto_augment.py, AugMix.forward.
void DrawAugMix(const PlanStep& step, const StepRandom& random, uint32_t width, uint32_t height,
                SampleProgram& program) {
  constexpr uint32_t kMostChains = 8, kDrawsOfChain = 32, kFirstWeight = 1024, kBins = 10;
  const auto severity = static_cast<uint32_t>(step.values[0].low);
  const auto chains = static_cast<uint32_t>(step.values[1].low);
  const double alpha = step.values[3].low;
  NumbersFrom weights(random, kFirstWeight);
  const double original = LogGamma(alpha, weights), blended = LogGamma(alpha, weights);
  const double all = 1 / (1 + std::exp(original - blended));
  std::array<double, kMostChains> parts = {};
  for (uint32_t i = 0; i < chains; ++i) parts[i] = LogGamma(alpha, weights);
  const double most = *std::max_element(parts.begin(), parts.begin() + chains);
  double sum = 0;
  for (uint32_t i = 0; i < chains; ++i) sum += parts[i] = std::exp(parts[i] - most);
  double rest = 1;
  const std::span<const OperationKind> kinds = AugMixOperations(step.values[4].low != 0);
  for (uint32_t i = 0; i < chains; ++i) {
    const double weight = Weight(all * parts[i] / sum);
    rest -= weight;
    program.operations.push_back({OperationKind::kChain, {weight}});
    const uint32_t first = 16 + kDrawsOfChain * i;
    const uint32_t depth = step.values[2].low > 0 ? static_cast<uint32_t>(step.values[2].low)
                                                  : 1 + RandomBelow(random(first), 3);
    for (uint32_t j = 0; j < depth; ++j) {
      const uint32_t n = first + 1 + 3 * j;
      const OperationKind kind = kinds[RandomBelow(random(n), static_cast<uint32_t>(kinds.size()))];
      const bool negative = IsSigned(kind) && RandomUnit(random(n + 2)) < 0.5;
      Operation made =
          PolicyOperation(PolicySpace::kAugMix, kind, RandomBelow(random(n + 1), severity), kBins,
                          negative, width, height);
      if (IsWarp(kind)) {
        made.values[1] = step.values[5].low;
        made.values[2] = step.values[6].low;
      }
      program.operations.push_back(made);
    }
  }
  program.operations.push_back({OperationKind::kBlend, {rest}});
}

void DrawElastic(const PlanStep& step, const StepRandom& random, SampleProgram& program) {
  Operation made{OperationKind::kElastic};
  made.values = {RandomBetween(random(2), step.values[0].low, step.values[0].high),
                 RandomBetween(random(3), step.values[1].low, step.values[1].high),
                 SeedOf(random(1)), step.values[2].low, step.values[3].low};
  program.operations.push_back(made);
}

}  // namespace

void PlanStep::Draw(const SampleIdentity& sample, uint32_t width, uint32_t height,
                    SampleProgram& program) const {
  if (sample.epoch < first_epoch || sample.epoch > last_epoch) return;
  const StepRandom random(sample, stream);
  if (probability < 1 && RandomUnit(random(0)) >= probability) return;
  switch (kind) {
    case StepKind::kOperation:
      return DrawOperation(*this, random, program);
    case StepKind::kColorJitter:
      return DrawColorJitter(*this, random, program);
    case StepKind::kPerspective:
      return DrawPerspective(*this, random, width, height, program);
    case StepKind::kElastic:
      return DrawElastic(*this, random, program);
    case StepKind::kAugMix:
      return DrawAugMix(*this, random, width, height, program);
    case StepKind::kOwn:
      program.operations.push_back(
          {OperationKind::kOwn, {static_cast<double>(program.own.size())}});
      program.own.push_back({own_name, own, sample, random(1)});
      return;
    case StepKind::kBatch:
      return;  // the caller's, once for a batch
    case StepKind::kErase:
      return DrawErase(*this, random, width, height, program);
    default:
      return DrawPolicy(*this, random, width, height, program);
  }
}

}  // namespace shardpack
