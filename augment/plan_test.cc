#include "augment/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "augment/policies.h"

namespace shardpack {
namespace {

AugmentPlan Plan(const std::string& text) {
  auto plan = AugmentPlan::Parse(text);
  EXPECT_TRUE(plan.ok()) << text << ": " << plan.status();
  return plan.ok() ? *plan : AugmentPlan();
}

std::string Drawn(const AugmentPlan& plan, const SampleIdentity& sample) {
  SampleProgram program;
  plan.Draw(sample, 224, 224, program);
  return program.ToText();
}

TEST(PlanTest, TextIsReadBackAndCanonical) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "augment/1"},
      {"augment/1", "augment/1"},
      {"color_jitter(b=.4,c=.4,s=.4,h=.1) rand_augment(n=2,m=9) erase(p=.25)",
       "augment/1 color_jitter(b=0.6..1.4, c=0.6..1.4, s=0.6..1.4, h=-0.1..0.1) rand_augment "
       "erase(p=0.25)"},
      {"color_jitter(2)", "augment/1 color_jitter(b=0..3)"},
      {"color_jitter(b=1..1)", "augment/1 color_jitter"},
      {"rotate(-10..10, p=0.5) equalize(p=.1, epochs=2..8)",
       "augment/1 rotate(degrees=-10..10, p=0.5) equalize(p=0.1, epochs=2..8)"},
      {"rotate(degrees=5,fill=9) ", "augment/1 rotate(degrees=5, fill=9)"},
      {"trivial_augment_wide auto_augment(cifar10)",
       "augment/1 trivial_augment_wide auto_augment(cifar10)"},
      {"auto_augment", "augment/1 auto_augment(imagenet)"},
      {"color_jitter(b=100)", "augment/1 color_jitter(b=0..100)"},
      {"augment/1\r\n invert", "augment/1 invert"},
      {"erase(value=random, scale=.1..0.2)", "augment/1 erase(scale=0.1..0.2, value=random)"},
      {"erase(value=7)", "augment/1 erase(red=7, green=7, blue=7)"},
      {"gaussian_blur(kernel=23, sigma=.1..2, p=.5) median(3..7) clahe(1..4)",
       "augment/1 gaussian_blur(kernel=23, sigma=0.1..2, p=0.5) median(kernel=3..7) "
       "clahe(clip=1..4)"},
      {"perspective perspective(.3, p=1, fill=9)",
       "augment/1 perspective perspective(distortion=0.3, fill=9, p=1)"},
      {"aug_mix aug_mix(5, 2, 3, .5, all_ops=0, bilinear=0, p=.9)",
       "augment/1 aug_mix aug_mix(severity=5, width=2, depth=3, alpha=0.5, all_ops=0, bilinear=0, "
       "p=0.9)"},
      {"elastic(alpha=30..60, bilinear=0)", "augment/1 elastic(alpha=30..60, bilinear=0)"},
      {"invert(stream=7) invert(stream=9)", "augment/1 invert(stream=7) invert(stream=9)"},
  };
  for (const auto& [text, canonical] : cases) {
    const AugmentPlan plan = Plan(text);
    EXPECT_EQ(plan.ToText(), canonical);
    EXPECT_EQ(Plan(plan.ToText()).ToText(), canonical);
    for (uint64_t id = 0; id < 20; ++id)
      EXPECT_EQ(Drawn(plan, {1, 2, id}), Drawn(Plan(canonical), {1, 2, id}));
  }
}

TEST(PlanTest, BadTextNamesColumnAndReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"augment/2 invert", "column 1: this program reads augment/1, not augment/2"},
      {"randaugment(2, 9)", "column 1: no step is called randaugment; the nearest is rand_augment"},
      {"SHARPNESS(2)", "column 1: no step is called SHARPNESS; the nearest is sharpness"},
      {"invert rotate(p=2)", "column 15: p is 2; it is a number from 0 to 1"},
      {"rand_augment(m=31)", "column 1: m is 31; it is below bins (31)"},
      {"color_jitter(h=.6)", "column 14: h is 0.6; it is a number from -0.5 to 0.5"},
      {"color_jitter(x=1)",
       "column 14: color_jitter has no x; it has b, c, s, h, p, epochs and stream"},
      {"rotate(5..-5)", "column 8: a range begins with its least value"},
      {"rotate(3, degrees=4)", "column 11: degrees is given twice"},
      {"rotate(p=.1..0.2, 4)", "column 8: p is one number, not a range"},
      {"auto_augment(mnist)", "column 14: auto_augment does not take mnist"},
      {"erase(value=noise)", "column 7: erase does not take noise"},
      {"invert(stream=1) equalize",
       "column 18: two steps use stream 1, and would draw the same numbers"},
      {"gaussian_blur(kernel=4, sigma=1)",
       "column 15: kernel is 4; it is an odd number from 1 to 255"},
      {"gaussian_blur(3..6, 1)", "column 15: kernel is 3..6; it is an odd number from 1 to 255"},
      {"perspective(1.5)", "column 13: distortion is 1.5; it is a number from 0 to 1"},
      {"elastic(sigma=-1)", "column 9: sigma is -1; it is a number from 0 to 100"},
      {"rotate", "column 1: rotate needs degrees"},
      {"aug_mix(severity=0)", "column 9: severity is 0; it is a whole number from 1 to 10"},
      {"aug_mix(1..3)", "column 9: severity is one number, not a range"},
      {"invert blend(0.5)", "column 8: blend is of programs; a plan has aug_mix"},
      {"erase(0.25)", "column 7: the parameters of erase are named: p=, scale=, ratio=, value="},
      {"erase(value=random, red=9)", "column 1: erase has value=random or levels, not both"},
      {"erase(p=.1, p=.2)", "column 13: p is given twice"},
      {"rand_augment(n=2, n=5)", "column 19: n is given twice"},
      {"invert(stream=3, stream=3)", "column 18: stream is given twice"},
      {"auto_augment(imagenet, svhn)", "column 24: a second word, where one is expected"},
      {"auto_augment(bins=svhn)", "column 14: auto_augment does not take svhn"},
      {"rotate(fast)", "column 8: degrees is a number, not fast"},
      {"rotate(nan)", "column 8: degrees is a number, not nan"},
      {"invert(p=nan)", "column 8: p is a number, not nan"},
      {"posterize(2..4.5)", "column 11: bits is 2..4.5; it is a whole number from 0 to 8"},
      {"rand_augment(2, 9, 31, 4)",
       "column 24: rand_augment has 3 parameters besides p, epochs and stream"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(AugmentPlan::Parse(text).status().message(), message) << text;
}

// Saved runs depend on these.
TEST(PlanTest, DrawsAreThoseOfTheVersion) {
  const AugmentPlan plan = Plan(
      "color_jitter(b=.4,c=.4,s=.4,h=.1) rand_augment trivial_augment_wide auto_augment "
      "erase(p=1) rotate(-10..10)");
  EXPECT_EQ(Drawn(plan, {1, 2, 3}),
            "saturation(0.992211854614611) brightness(0.8438753261908405) "
            "contrast(1.0850835377370025) hue(0.008061354320604465) rotate(-9) "
            "solarize(178.49999696016312) identity rotate(30) erase(30, 31, 132, 54) "
            "rotate(-9.360042200622225)");
  EXPECT_EQ(Drawn(Plan("aug_mix"), {1, 2, 3}),
            "chain(0.0103302001953125) shear_x(0, 1) chain(0.0471343994140625) autocontrast "
            "shear_x(0, 1) saturation(1.0999999940395355) chain(0.0157623291015625) "
            "brightness(0.800000011920929) blend(0.9267730712890625)");
}

// torchvision's AugMix.forward: weights of Dirichlet distributions, 1 to 3 operations a chain.
TEST(PlanTest, AugMixDrawsAsTorchvisionDoes) {
  for (const auto& [text, kinds, chains, depth] :
       {std::tuple("aug_mix", 13u, 3u, 0u), std::tuple("aug_mix(10, 2, 4, 1, 0)", 9u, 2u, 4u),
        std::tuple("aug_mix(1, 8, 8)", 13u, 8u, 8u)}) {
    const AugmentPlan plan = Plan(text);
    constexpr uint64_t kDraws = 3000;
    std::map<OperationKind, double> counts;
    std::map<size_t, double> lengths;
    double own = 0, first = 0, all = 0;
    for (uint64_t id = 0; id < kDraws; ++id) {
      SampleProgram program;
      plan.Draw({3, 0, id}, 224, 200, program);
      double sum = 0;
      size_t begun = 0, length = 0;
      for (const Operation& operation : program.operations) {
        ASSERT_TRUE(operation.Check().ok()) << operation.ToText();
        if (!IsOfAugMix(operation.kind)) {
          ++counts[operation.kind];
          ++length;
          EXPECT_TRUE(!IsWarp(operation.kind) || operation.values[1] == 1);
          continue;
        }
        EXPECT_EQ(operation.values[0] * 0x1p16, std::floor(operation.values[0] * 0x1p16));
        sum += operation.values[0];
        if (begun == 0) first += operation.values[0];
        if (begun++ > 0) ++lengths[std::exchange(length, 0)];
      }
      EXPECT_EQ(sum, 1);
      EXPECT_EQ(begun, chains + 1);
      EXPECT_EQ(program.operations.back().kind, OperationKind::kBlend);
      EXPECT_TRUE(program.Warps().operations.empty());
      own += program.operations.back().values[0];
    }
    EXPECT_NEAR(own / kDraws, 0.5, 0.03);  // means of Dirichlet(1, ...)
    EXPECT_NEAR(first / kDraws, 0.5 / chains, 0.03);
    EXPECT_EQ(counts.size(), kinds);
    for (const auto& [kind, count] : counts) all += count;
    double statistic = 0;
    for (const auto& [kind, count] : counts)
      statistic += (count - all / kinds) * (count - all / kinds) / (all / kinds);
    EXPECT_LT(statistic, 42) << text;
    EXPECT_EQ(lengths.begin()->first, depth > 0 ? depth : 1);
    EXPECT_EQ(lengths.rbegin()->first, depth > 0 ? depth : 3);
    const double twice = lengths[2] / static_cast<double>(kDraws * chains);
    EXPECT_NEAR(twice, depth == 0 ? 1.0 / 3 : 0, 0.03);
  }
}

// torchvision's RandomPerspective.make_params: each corner within its part of the image.
TEST(PlanTest, CornersOfPerspectivesAreDrawnAsTorchvisionDoes) {
  const AugmentPlan plan = Plan("perspective(distortion=0.5, p=1)");
  SampleProgram program;
  std::set<double> seen[8];
  for (uint64_t id = 0; id < 4000; ++id) {
    plan.Draw({1, 0, id}, 64, 40, program);
    ASSERT_EQ(program.operations.size(), 1u);
    for (size_t i = 0; i < 8; ++i) seen[i].insert(program.operations[0].values[i]);
  }
  const double least[] = {0, 0, 47, 0, 47, 29, 0, 29}, most[] = {16, 10, 63, 10, 63, 39, 16, 39};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(*seen[i].begin(), least[i]) << i;
    EXPECT_EQ(*seen[i].rbegin(), most[i]) << i;
    EXPECT_EQ(seen[i].size(), static_cast<size_t>(most[i] - least[i]) + 1) << i;
  }
  // With the greatest distortion corners may cross, and are then left alone.
  const AugmentPlan wild = Plan("perspective(1, p=1)");
  size_t warped = 0;
  for (uint64_t id = 0; id < 4000; ++id) {
    wild.Draw({1, 0, id}, 6, 6, program);
    warped += program.operations.size();
    for (const Operation& operation : program.operations)
      EXPECT_TRUE(SourceOf(operation, 6, 6).has_value());
  }
  EXPECT_GT(warped, 500u);
  EXPECT_LT(warped, 2000u);
}

TEST(PlanTest, KernelsAreOdd) {
  const AugmentPlan plan = Plan("median(3..7)");
  std::set<std::string> drawn;
  for (uint64_t id = 0; id < 200; ++id) drawn.insert(Drawn(plan, {1, 2, id}));
  EXPECT_EQ(drawn, (std::set<std::string>{"median(3)", "median(5)", "median(7)"}));
}

TEST(PlanTest, ADrawDependsOnItsArgumentsAlone) {
  const AugmentPlan plan = Plan("rand_augment color_jitter(b=.4)");
  std::set<std::string> programs;
  for (const SampleIdentity& sample :
       {SampleIdentity{1, 2, 3}, SampleIdentity{2, 2, 3}, SampleIdentity{1, 3, 3},
        SampleIdentity{1, 2, 4}, SampleIdentity{1, 2, 3, 1}}) {
    programs.insert(Drawn(plan, sample));
    EXPECT_EQ(Drawn(plan, sample), Drawn(plan, sample));
  }
  EXPECT_EQ(programs.size(), 5u);
}

TEST(PlanTest, AStreamKeepsItsNumbersWhereverItStands) {
  const AugmentPlan one = Plan("rotate(-90..90, stream=5)");
  const AugmentPlan two = Plan("invert rotate(-90..90, stream=5)");
  for (uint64_t id = 0; id < 10; ++id)
    EXPECT_EQ("invert " + Drawn(one, {1, 1, id}), Drawn(two, {1, 1, id}));
}

TEST(PlanTest, EpochsAndProbability) {
  const AugmentPlan plan = Plan("invert(epochs=3..5) equalize(p=0.25) identity(p=0)");
  size_t equalized = 0;
  for (uint64_t epoch = 0; epoch < 8; ++epoch) {
    for (uint64_t id = 0; id < 1000; ++id) {
      const std::string program = Drawn(plan, {7, epoch, id});
      EXPECT_EQ(program.starts_with("invert"), epoch >= 3 && epoch <= 5);
      equalized += program.ends_with("equalize") ? 1 : 0;
    }
  }
  EXPECT_NEAR(static_cast<double>(equalized), 2000, 200);
}

// The chance of a statistic of 13 degrees of freedom above 40 is 1e-4.
TEST(PlanTest, PoliciesDrawEveryOperationEquallyOften) {
  for (const char* text : {"rand_augment(1, 9)", "trivial_augment_wide"}) {
    const AugmentPlan plan = Plan(text);
    std::map<OperationKind, double> counts;
    constexpr double kDraws = 14'000;
    for (uint64_t id = 0; id < kDraws; ++id) {
      SampleProgram program;
      plan.Draw({3, 0, id}, 224, 224, program);
      ASSERT_EQ(program.operations.size(), 1u);
      ++counts[program.operations[0].kind];
    }
    ASSERT_EQ(counts.size(), PolicyOperations().size());
    double statistic = 0;
    for (const auto& [kind, count] : counts)
      statistic += (count - kDraws / 14) * (count - kDraws / 14) / (kDraws / 14);
    EXPECT_LT(statistic, 40) << text;
  }
}

TEST(PlanTest, RangesAreReachedAndKept) {
  const AugmentPlan plan = Plan("posterize(2..4) rotate(-10..10) color_jitter(h=.1)");
  std::set<double> bits;
  double least = 0, most = 0;
  for (uint64_t id = 0; id < 2000; ++id) {
    SampleProgram program;
    plan.Draw({3, 0, id}, 224, 224, program);
    ASSERT_EQ(program.operations.size(), 3u);
    bits.insert(program.operations[0].values[0]);
    least = std::min(least, program.operations[1].values[0]);
    most = std::max(most, program.operations[1].values[0]);
    EXPECT_LE(std::abs(program.operations[2].values[0]), 0.1);
  }
  EXPECT_EQ(bits, (std::set<double>{2, 3, 4}));
  EXPECT_TRUE(least >= -10 && least < -9.9 && most <= 10 && most > 9.9) << least << ", " << most;
}

// As in torchvision: float magnitudes, whole pixels towards zero, levels of solarize fall.
TEST(PlanTest, MagnitudesOfPolicies) {
  const auto text = [](PolicySpace space, OperationKind kind, uint32_t bin, uint32_t bins,
                       bool negative) {
    return PolicyOperation(space, kind, bin, bins, negative, 224, 200).ToText();
  };
  using enum OperationKind;
  constexpr auto kRand = PolicySpace::kRandAugment, kWide = PolicySpace::kTrivialAugmentWide;
  EXPECT_EQ(text(kRand, kRotate, 9, 31, false), "rotate(9)");
  EXPECT_EQ(text(kRand, kTranslateX, 9, 31, true), "translate_x(-30)");
  EXPECT_EQ(text(kRand, kTranslateY, 9, 31, false), "translate_y(27)");
  EXPECT_EQ(text(kWide, kTranslateX, 30, 31, false), "translate_x(32)");
  EXPECT_EQ(text(kRand, kPosterize, 9, 31, false), "posterize(7)");
  EXPECT_EQ(text(kWide, kPosterize, 30, 31, false), "posterize(2)");
  EXPECT_EQ(text(kRand, kSolarize, 30, 31, false), "solarize(0)");
  EXPECT_EQ(text(kRand, kEqualize, 9, 31, false), "equalize");
  constexpr auto kMix = PolicySpace::kAugMix;
  EXPECT_EQ(text(kMix, kTranslateX, 2, 10, true), "translate_x(-16)");
  EXPECT_EQ(text(kMix, kTranslateY, 9, 10, false), "translate_y(66)");
  EXPECT_EQ(text(kMix, kPosterize, 0, 10, false), "posterize(4)");
  EXPECT_EQ(text(kMix, kPosterize, 2, 10, false), "posterize(3)");
  EXPECT_EQ(text(kMix, kSolarize, 0, 10, false), "solarize(255)");
}

TEST(PlanTest, EveryDrawnProgramCanBeReadBack) {
  const AugmentPlan plan = Plan(
      "color_jitter(b=.4,c=.4,s=.4,h=.1) rand_augment trivial_augment_wide "
      "auto_augment(svhn) erase(p=1, value=random) aug_mix");
  for (uint64_t id = 0; id < 500; ++id) {
    SampleProgram program;
    plan.Draw({3, 0, id}, 64, 48, program);
    const auto read = SampleProgram::Parse(program.ToText());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, program) << program.ToText();
  }
}

TEST(PlanTest, KnowsWhetherPixelsMove) {
  EXPECT_TRUE(Plan("rand_augment").MayWarp());
  EXPECT_TRUE(Plan("invert rotate(3)").MayWarp());
  EXPECT_TRUE(Plan("aug_mix").MayWarp());
  EXPECT_TRUE(Plan("aug_mix").MayDo(OperationKind::kBlend));
  EXPECT_FALSE(Plan("rand_augment").MayDo(OperationKind::kBlend));
  EXPECT_FALSE(Plan("color_jitter(b=.4) erase equalize").MayWarp());
}

}  // namespace
}  // namespace shardpack
