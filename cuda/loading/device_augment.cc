#include "cuda/loading/device_augment.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "augment/operation.h"
#include "cuda/kernels/run_on_threads.h"

namespace shardpack {
namespace {

using O = OperationKind;

constexpr std::array kTables = {O::kBrightness, O::kPosterize, O::kSolarize, O::kInvert, O::kGamma};
constexpr std::array kPixels = {O::kBrightness, O::kPosterize, O::kSolarize,  O::kInvert, O::kGamma,
                                O::kSaturation, O::kHue,       O::kGrayscale, O::kErase};
constexpr std::array kStatistics = {O::kContrast, O::kAutocontrast, O::kEqualize};
constexpr std::array kTails = {
    O::kContrast,    O::kAutocontrast,   O::kEqualize,    O::kSharpness, O::kShearX,
    O::kShearY,      O::kTranslateX,     O::kTranslateY,  O::kRotate,    O::kAffine,
    O::kPerspective, O::kFlipHorizontal, O::kFlipVertical};
constexpr size_t kMaxRounds = 8;

template <typename Kinds>
bool IsOneOf(const Kinds& kinds, OperationKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// What the operations make of each level.
void MakeTable(const SampleProgram& tables, uint8_t (&table)[256]) {
  std::iota(table, table + 256, uint8_t{0});
  ProgramRunner runner;
  // Of tables it gives no error.
  (void)runner.Apply(tables, {table, 256, 1, 1, 256});
}

PixelStep EraseStep(const Operation& operation, uint32_t width, uint32_t height) {
  const auto& v = operation.values;
  const auto whole = [&](size_t i) { return static_cast<uint32_t>(v[i]); };
  PixelStep step = {.kind = PixelStepKind::kErase,
                    .left = whole(0),
                    .top = whole(1),
                    .right = std::min(whole(0) + whole(2), width),
                    .bottom = std::min(whole(1) + whole(3), height),
                    .noise = static_cast<uint64_t>(v[7])};
  for (size_t c = 0; c < 3; ++c) step.color[c] = static_cast<uint8_t>(v[4 + c]);
  return step;
}

RoundTail TailOf(const Operation& operation, uint32_t width, uint32_t height) {
  const double value = operation.values[0];
  RoundTail tail = {.kind = TailKind::kNone,
                    .factor = static_cast<float>(value),
                    .rest = static_cast<float>(1.0 - value)};
  switch (operation.kind) {
    case O::kContrast:
      tail.kind = TailKind::kContrast;
      return tail;
    case O::kAutocontrast:
      tail.kind = TailKind::kAutocontrast;
      return tail;
    case O::kEqualize:
      tail.kind = TailKind::kEqualize;
      return tail;
    case O::kSharpness:
      tail.kind = TailKind::kSharpness;
      return tail;
    default:
      break;
  }
  const std::optional<WarpMatrix> source = SourceOf(operation, width, height);
  if (!source) return tail;  // what a plan draws has one
  const size_t options = WarpOptionsOf(operation.kind);
  const bool flips = operation.kind == O::kFlipHorizontal || operation.kind == O::kFlipVertical;
  tail.kind = TailKind::kWarp;
  tail.bilinear = !flips && operation.values[options] != 0;
  tail.fill = static_cast<uint8_t>(operation.values[options + 1]);
  tail.perspective = operation.kind == O::kPerspective;
  std::copy(source->begin(), source->end(), tail.matrix);
  return tail;
}

// Joins neighbouring tables.
class ProgramMaker {
 public:
  ProgramMaker(PixelProgram& made, uint32_t width, uint32_t height)
      : made_(made), width_(width), height_(height) {}

  void Add(const Operation& operation) {
    if (IsOneOf(kTables, operation.kind)) {
      tables_.operations.push_back(operation);
      return;
    }
    Flush();
    const double value = operation.values[0];
    if (operation.kind == O::kSaturation) {
      Put({.kind = PixelStepKind::kSaturation,
           .value = static_cast<float>(value),
           .rest = static_cast<float>(1.0 - value)});
    } else if (operation.kind == O::kHue) {
      Put({.kind = PixelStepKind::kHue, .value = static_cast<float>(value)});
    } else if (operation.kind == O::kGrayscale) {
      Put({.kind = PixelStepKind::kGray});
    } else if (operation.kind == O::kErase) {
      Put(EraseStep(operation, width_, height_));
    }
  }
  void Flush() {
    if (tables_.operations.empty() || used_ == PixelProgram::kMaxTables) return;
    MakeTable(tables_, made_.tables[used_]);
    tables_.operations.clear();
    Put({.kind = PixelStepKind::kTable, .table = used_++});
  }

 private:
  void Put(const PixelStep& step) {
    if (made_.count < PixelProgram::kMaxSteps) made_.steps[made_.count++] = step;
  }

  PixelProgram& made_;
  const uint32_t width_, height_;
  SampleProgram tables_;
  uint8_t used_ = 0;
};

}  // namespace

size_t RoundsOf(const AugmentPlan& plan) { return plan.MostOf(kTails); }

bool NeedsStatistics(const AugmentPlan& plan) { return plan.MostOf(kStatistics) > 0; }

std::string WhyNotOnDevice(const AugmentPlan& plan) {
  std::string names;
  for (size_t i = 0; i < kOperationKinds; ++i) {
    const auto kind = static_cast<OperationKind>(i);
    const bool can = kind == O::kIdentity || IsOneOf(kPixels, kind) || IsOneOf(kTails, kind);
    if (can || !plan.MayDo(kind)) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(FactsOf(kind).name));
  }
  if (!names.empty()) return names;
  const auto too_many = [&](size_t most, const char* what) {
    return absl::StrCat("more than ", most, " operations", what);
  };
  if (plan.MostOf(kPixels) > PixelProgram::kMaxSteps)
    return too_many(PixelProgram::kMaxSteps, " on single pixels");
  if (plan.MostOf(kTables) > PixelProgram::kMaxTables)
    return too_many(PixelProgram::kMaxTables, " that are tables");
  return RoundsOf(plan) <= kMaxRounds ? "" : too_many(kMaxRounds, " on whole images");
}

DeviceProgram DeviceProgramOf(const SampleProgram& program, size_t rounds, uint32_t width,
                              uint32_t height) {
  DeviceProgram made{std::vector<PixelProgram>(rounds + 1), std::vector<RoundTail>(rounds)};
  size_t round = 0;
  std::optional<ProgramMaker> maker;
  maker.emplace(made.programs[0], width, height);
  for (const Operation& operation : program.operations) {
    if (!IsOneOf(kTails, operation.kind) || round == rounds) {
      maker->Add(operation);
      continue;
    }
    maker->Flush();
    made.tails[round] = TailOf(operation, width, height);
    maker.emplace(made.programs[++round], width, height);
  }
  maker->Flush();
  return made;
}

absl::Status PreprocessAugmented(const PreprocessLaunch& launch, const AugmentPlan& plan,
                                 std::span<const std::optional<SampleIdentity>> samples,
                                 const std::function<std::string(uint64_t id)>& describe,
                                 int threads) {
  const uint32_t width = launch.out_width, height = launch.out_height;
  const size_t row_bytes = size_t{width} * launch.channels;
  const size_t out_bytes = launch.output.Bytes(width, height);
  std::atomic<uint32_t> next{0};
  std::mutex mutex;
  absl::Status first;
  RunOnThreads(static_cast<size_t>(std::max(threads, 1)), [&](size_t) {
    std::vector<uint8_t> levels(row_bytes * height);
    ProgramRunner runner;
    SampleProgram program;
    for (uint32_t i; (i = next.fetch_add(1)) < launch.count;) {
      auto* const out = static_cast<uint8_t*>(launch.out) + i * out_bytes;
      PreprocessLaunch one = launch;
      one.samples = launch.samples + i;
      one.count = 1;
      one.programs = nullptr;
      if (launch.labels != nullptr) {
        launch.out_labels[i] = launch.labels[i];
        one.labels = nullptr;
      }
      const bool plain = one.samples->pixels == nullptr || !samples[i];
      if (plain) {
        one.out = out;
      } else {
        one.output = PixelOutput({}, launch.channels);
        one.out = levels.data();
      }
      absl::Status done = PreprocessByThreads(one, 1);
      if (done.ok() && !plain) {
        plan.Draw(*samples[i], width, height, program);
        done = runner.Apply(program, {levels.data(), width, height, launch.channels, row_bytes});
        if (!done.ok()) {
          done = absl::Status(done.code(), absl::StrCat(describe(samples[i]->id), ": ",
                                                        std::string(done.message())));
        }
        for (uint32_t y = 0; done.ok() && y < height; ++y)
          launch.output.PutRow(levels.data() + y * row_bytes, y, width, height, out);
      }
      if (done.ok()) continue;
      const std::lock_guard lock(mutex);
      first.Update(done);
    }
  });
  return first;
}

}  // namespace shardpack
