#include "cuda/loading/device_augment.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "augment/operation.h"
#include "augment/warp_arithmetic.h"
#include "cuda/device/device.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

using O = OperationKind;

constexpr size_t kMaxRounds = 8;

bool IsOfPixels(OperationKind kind) {  // that is not a table
  return kind == O::kSaturation || kind == O::kHue || kind == O::kGrayscale || kind == O::kErase;
}
bool IsStep(OperationKind kind) { return IsFixedTable(kind) || IsOfPixels(kind); }
bool IsOfStatistics(OperationKind kind) { return IsTable(kind) && !IsFixedTable(kind); }
bool IsTail(OperationKind kind) {
  return IsOfStatistics(kind) || kind == O::kSharpness || (IsWarp(kind) && kind != O::kElastic);
}

// The most steps that a sample may get between two of its tails: an upper bound, which knows the
// order of the plan's steps, and that neighbouring tables are one.
size_t MostSteps(const AugmentPlan& plan) {
  // Of those since the last tail, if the last of them is a table, and if it is none.
  size_t after_table = 0, after_other = 0, most = 0;
  for (size_t i = 0; i < plan.steps(); ++i) {
    const std::optional<OperationKind> always = plan.AlwaysDoes(i);
    if (always && IsTail(*always)) after_table = after_other = 0;
    const bool tables = plan.MostOf(i, IsFixedTable) > 0, others = plan.MostOf(i, IsOfPixels) > 0;
    for (size_t n = plan.MostOf(i, IsStep); n > 0; --n) {
      const size_t longest = std::max(after_table, after_other);
      if (tables) after_table = std::max(after_table, after_other + 1);
      if (others) after_other = longest + 1;
    }
    most = std::max({most, after_table, after_other});
  }
  return most;
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

absl::Status DoesNotFit(const Operation& operation) {
  return absl::InternalError(
      absl::StrCat(operation.ToText(), " does not fit into the launches for the plan"));
}

absl::StatusOr<RoundTail> TailOf(const Operation& operation, uint32_t width, uint32_t height) {
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
  if (!source) return DoesNotFit(operation);  // what a plan draws has one
  const size_t options = WarpOptionsOf(operation.kind);
  const bool flips = operation.kind == O::kFlipHorizontal || operation.kind == O::kFlipVertical;
  tail.kind = TailKind::kWarp;
  tail.bilinear = !flips && operation.values[options] != 0;
  tail.fill = static_cast<uint8_t>(operation.values[options + 1]);
  tail.perspective = operation.kind == O::kPerspective;
  std::copy(source->begin(), source->end(), tail.matrix);
  if (tail.perspective) return tail;
  tail.step_x = WarpStep(tail.matrix[0]);
  tail.step_y = WarpStep(tail.matrix[3]);
  return tail;
}

}  // namespace

size_t RoundsOf(const AugmentPlan& plan) { return plan.MostOf(IsTail); }

bool NeedsStatistics(const AugmentPlan& plan) { return plan.MostOf(IsOfStatistics) > 0; }

std::string WhyNotOnDevice(const AugmentPlan& plan) {
  std::string names;
  for (size_t i = 0; i < kOperationKinds; ++i) {
    const auto kind = static_cast<OperationKind>(i);
    const bool can = kind == O::kIdentity || kind == O::kChain || IsStep(kind) || IsTail(kind);
    if (can || !plan.MayDo(kind)) continue;
    // Plans have no blend, but the step that draws it, with chains.
    const std::string_view name = kind == O::kBlend ? "aug_mix" : FactsOf(kind).name;
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(name));
  }
  if (!names.empty()) return names;
  if (MostSteps(plan) > PixelProgram::kMaxSteps) {
    return absl::StrCat("more than ", PixelProgram::kMaxSteps,
                        " operations on single pixels in a row");
  }
  if (RoundsOf(plan) <= kMaxRounds) return "";
  return absl::StrCat("more than ", kMaxRounds, " operations on whole images");
}

RoundScratch::RoundScratch(const AugmentPlan& plan, size_t slots, size_t level_bytes) {
  const size_t rounds = RoundsOf(plan);
  if (rounds == 0) return;
  const auto place = [this](size_t wanted_bytes) {
    const size_t at = bytes;
    bytes += DeviceAligned(wanted_bytes);
    return at;
  };
  levels_at[0] = place(level_bytes);
  if (rounds > 1) levels_at[1] = place(level_bytes);
  has_statistics = NeedsStatistics(plan);
  if (!has_statistics) return;
  statistics_at = place(slots * sizeof(RoundStatistics));
  tables_at = place(slots * sizeof(RoundTables));
}

DevicePrograms::DevicePrograms(size_t rounds, size_t slots, uint32_t width, uint32_t height)
    : rounds_(rounds),
      slots_(slots),
      width_(width),
      height_(height),
      programs_((rounds + 1) * slots),
      tails_(rounds * slots) {}

void DevicePrograms::Reset(size_t slot) {
  for (size_t round = 0; round <= rounds_; ++round) programs_[round * slots_ + slot].count = 0;
  for (size_t round = 0; round < rounds_; ++round) tails_[round * slots_ + slot] = {};
}

void DevicePrograms::SetPadding(size_t slot) {
  Reset(slot);
  if (rounds_ > 0) tails_[(rounds_ - 1) * slots_ + slot].kind = TailKind::kPadding;
}

absl::Status DevicePrograms::Set(size_t slot, const SampleProgram& program) {
  Reset(slot);
  joined_.operations.clear();
  size_t round = 0;
  for (const Operation& operation : program.operations) {
    PixelProgram& made = programs_[round * slots_ + slot];
    if (!IsTail(operation.kind)) {
      RETURN_IF_ERROR(AddStep(operation, made));
      continue;
    }
    RETURN_IF_ERROR(FlushTables(made));
    if (round == rounds_) return DoesNotFit(operation);
    ASSIGN_OR_RETURN(tails_[round * slots_ + slot], TailOf(operation, width_, height_));
    ++round;
  }
  return FlushTables(programs_[round * slots_ + slot]);
}

absl::Status DevicePrograms::AddStep(const Operation& operation, PixelProgram& made) {
  if (operation.kind == O::kIdentity) return absl::OkStatus();
  if (IsFixedTable(operation.kind)) {
    joined_.operations.push_back(operation);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(FlushTables(made));
  if (!IsOfPixels(operation.kind) || made.count == PixelProgram::kMaxSteps)
    return DoesNotFit(operation);
  const double value = operation.values[0];
  PixelStep& step = made.steps[made.count++];
  if (operation.kind == O::kSaturation) {
    step = {.kind = PixelStepKind::kSaturation,
            .value = static_cast<float>(value),
            .rest = static_cast<float>(1.0 - value)};
  } else if (operation.kind == O::kHue) {
    step = {.kind = PixelStepKind::kHue, .value = static_cast<float>(value)};
  } else if (operation.kind == O::kGrayscale) {
    step = {.kind = PixelStepKind::kGray};
  } else {
    step = EraseStep(operation, width_, height_);
  }
  return absl::OkStatus();
}

absl::Status DevicePrograms::FlushTables(PixelProgram& made) {
  if (joined_.operations.empty()) return absl::OkStatus();
  if (made.count == PixelProgram::kMaxSteps) return DoesNotFit(joined_.operations.front());
  made.steps[made.count++] = {.kind = PixelStepKind::kTable,
                              .table = static_cast<uint32_t>(tables_.size())};
  PixelTable& table = tables_.emplace_back();
  std::iota(std::begin(table.of), std::end(table.of), uint8_t{0});
  const absl::Status applied = runner_.Apply(joined_, {table.of, 256, 1, 1, 256});
  joined_.operations.clear();
  return applied;
}

}  // namespace shardpack
