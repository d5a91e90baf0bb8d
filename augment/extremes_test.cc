// Operations with the least and the most of their parameters, steps of plans too, on the narrowest
// and the longest images that there may be: no byte beyond the image changes, and under the
// undefined behaviour sanitizer all arithmetic is defined.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "augment/mix.h"
#include "augment/operation.h"
#include "augment/plan.h"
#include "augment/program.h"
#include "gtest/gtest.h"

namespace shardpack {
namespace {

constexpr uint32_t kLongest = 65'535;
constexpr uint8_t kGap = 0xA5;
constexpr size_t kGapBytes = 5;  // between rows

struct Size {
  uint32_t width, height;
};
constexpr Size kSmall[] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 3}, {3, 200}, {67, 5}};
constexpr Size kLong[] = {{kLongest, 1}, {1, kLongest}, {kLongest, 3}, {3, kLongest}};

class Canvas {
 public:
  Canvas(Size size, uint32_t channels)
      : size_(size), channels_(channels), stride_(size_t{size.width} * channels + kGapBytes) {
    bytes_.assign(stride_ * size.height, kGap);
    for (uint32_t y = 0; y < size.height; ++y) {
      for (size_t i = 0; i < stride_ - kGapBytes; ++i)
        bytes_[y * stride_ + i] = static_cast<uint8_t>((i * 37 + y * 11) ^ (i >> 3));
    }
  }
  EditablePixels pixels() { return {bytes_.data(), size_.width, size_.height, channels_, stride_}; }
  bool GapsAreWhole() const {
    for (uint32_t y = 0; y < size_.height; ++y) {
      const auto end = bytes_.begin() + static_cast<ptrdiff_t>((y + 1) * stride_);
      if (!std::all_of(end - kGapBytes, end, [](uint8_t byte) { return byte == kGap; }))
        return false;
    }
    return true;
  }

 private:
  Size size_;
  uint32_t channels_;
  size_t stride_;
  std::vector<uint8_t> bytes_;
};

// The i-th parameter has its most where the i-th bit is 1, else its least.
Operation ExtremeOf(OperationKind kind, uint32_t bits) {
  const OperationFacts& facts = FactsOf(kind);
  Operation made{kind};
  for (size_t i = 0; i < facts.count(); ++i)
    made.values[i] = (bits >> i & 1) != 0 ? facts.parameters[i].most : facts.parameters[i].least;
  return made;
}

void RunOn(const SampleProgram& program, Size size, uint32_t channels, ProgramRunner& runner) {
  Canvas canvas(size, channels);
  const absl::Status done = runner.Apply(program, canvas.pixels());
  // Corners of a perspective that are no quadrilateral.
  ASSERT_TRUE(done.ok() || absl::IsInvalidArgument(done)) << done;
  ASSERT_TRUE(canvas.GapsAreWhole())
      << program.ToText() << " of " << size.width << "x" << size.height;
}

bool IsRunHere(OperationKind kind) {
  return kind != OperationKind::kOwn && !IsOfAugMix(kind) && !NeedsOpenCv(kind);
}

TEST(ExtremesTest, OfEveryParameter) {
  ProgramRunner runner;
  for (size_t k = 0; k < kOperationKinds; ++k) {
    const auto kind = static_cast<OperationKind>(k);
    if (!IsRunHere(kind)) continue;
    for (const uint32_t bits : {0u, ~0u, 0x555u, 0xAAAu, 0x333u, 0xCCCu, 0x1C7u, 0x0F0u}) {
      SampleProgram program;
      program.operations.push_back(ExtremeOf(kind, bits));
      ASSERT_TRUE(program.operations[0].Check().ok());
      for (const Size size : kSmall) {
        for (const uint32_t channels : {1u, 3u}) RunOn(program, size, channels, runner);
      }
      if (kind == OperationKind::kElastic || (bits != 0 && bits != ~0u)) continue;
      for (const Size size : kLong) RunOn(program, size, 1, runner);
    }
  }
}

TEST(ExtremesTest, LabelsOfEveryWarp) {
  ElasticField field;
  for (size_t k = 0; k < kOperationKinds; ++k) {
    const auto kind = static_cast<OperationKind>(k);
    if (!IsWarp(kind)) continue;
    for (const uint32_t bits : {0u, ~0u, 0x555u, 0xAAAu}) {
      const Operation warp = ExtremeOf(kind, bits);
      for (const Size size : kSmall) {
        const size_t count = size_t{size.width} * size.height;
        const std::vector<uint16_t> from(count, 7);
        std::vector<uint16_t> to(count + 1, 9);
        const absl::Status done =
            WarpLabels<uint16_t>(warp, from.data(), size.width, size.height, 255, field, to.data());
        ASSERT_TRUE(done.ok() || absl::IsInvalidArgument(done)) << done;
        for (size_t i = 0; done.ok() && i < count; ++i) ASSERT_TRUE(to[i] == 7 || to[i] == 255);
        ASSERT_EQ(to[count], 9);
      }
    }
  }
}

// What plans draw for such sizes is a program that can be printed, read and run.
TEST(ExtremesTest, OfEveryStep) {
  ProgramRunner runner;
  for (const char* const text :
       {"color_jitter(b=0..100, c=0..100, s=0..100, h=-.5..0.5)",
        "rand_augment(n=16, m=999, bins=1000)", "trivial_augment_wide(bins=2)",
        "trivial_augment_wide(bins=1000)", "auto_augment(imagenet)", "auto_augment(cifar10)",
        "auto_augment(svhn)", "perspective(distortion=1, p=1)", "perspective(distortion=0, p=1)",
        "erase(p=1, scale=1e-6..1, ratio=1e-3..1e3, value=random)",
        "aug_mix(severity=10, width=8, depth=8, alpha=1e-3)", "aug_mix(alpha=1e3)",
        "affine(degrees=-1e6..1e6, dx=-131070..131070, scale=.01..100, shear_x=-80..80, "
        "bilinear=1)"}) {
    const absl::StatusOr<AugmentPlan> plan = AugmentPlan::Parse(text);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const Size size : kSmall) {
      for (uint64_t id = 0; id < 40; ++id) {
        SampleProgram program;
        plan->Draw({.seed = UINT64_MAX, .epoch = UINT64_MAX, .id = id, .view = 65'534}, size.width,
                   size.height, program);
        const absl::StatusOr<SampleProgram> read = SampleProgram::Parse(program.ToText());
        ASSERT_TRUE(read.ok()) << read.status() << ": " << program.ToText();
        ASSERT_EQ(*read, program) << program.ToText();
        RunOn(program, size, 3, runner);
      }
    }
    for (const Size size : {Size{kLongest, 1}, Size{1, kLongest}, Size{kLongest, kLongest}}) {
      SampleProgram program;  // drawn alone: the largest would take minutes to be run
      for (uint64_t id = 0; id < 40; ++id) {
        plan->Draw({.seed = 1, .epoch = 0, .id = id}, size.width, size.height, program);
        ASSERT_TRUE(SampleProgram::Parse(program.ToText()).ok()) << program.ToText();
      }
    }
  }
}

TEST(ExtremesTest, OfMixing) {
  for (const double alpha : {1e-3, 1e3}) {
    for (const double share : {0.0, 1.0}) {
      const MixOptions options{.mixup_alpha = alpha,
                               .cutmix_alpha = alpha,
                               .cutmix_share = share,
                               .group = 2,
                               .classes = 3,
                               .smoothing = 0.9};
      for (const Size size :
           {Size{1, 1}, Size{2, 3}, Size{kLongest, 1}, Size{kLongest, kLongest}}) {
        for (uint64_t group = 0; group < 100; ++group) {
          const MixDraw draw =
              DrawMix(options, UINT64_MAX, UINT64_MAX, group, size.width, size.height);
          ASSERT_GE(draw.weight, 0);
          ASSERT_LE(draw.weight, 1);
          ASSERT_LE(uint64_t{draw.box.left} + draw.box.width, size.width);
          ASSERT_LE(uint64_t{draw.box.top} + draw.box.height, size.height);
          std::array<float, 3> row;
          SoftLabels(options, draw.weight, 2, -1, row);
          ASSERT_NEAR(row[0] + row[1] + row[2], 1 - draw.weight, 1e-5);
          if (size.width == kLongest) continue;
          const size_t bytes = size_t{size.width} * size.height * 3;
          const std::vector<uint8_t> own(bytes, 255), partner(bytes, 0);
          std::vector<uint8_t> out(bytes + 1, kGap);
          if (draw.mixed()) {
            MixPixels(draw, {own.data(), size.width, size.height, 3, size_t{size.width} * 3},
                      partner.data(), out.data());
          }
          ASSERT_EQ(out[bytes], kGap);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardpack
