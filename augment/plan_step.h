// PlanStep: one step of an AugmentPlan, read from its text and drawn for a sample.
//
//   absl::StatusOr<PlanStep> step = PlanStep::Make(call, place);
//   step->Draw({seed, epoch, id}, 224, 224, program);
//
// Lifetime: a plain value; Draw keeps nothing of its arguments.
// Thread-safety: const methods from any thread.
// Errors: of Make: those of AugmentPlan (augment/plan.h), which name the step.
// Units: as the step's operation (augment/operation.h).
#ifndef SHARDPACK_AUGMENT_PLAN_STEP_H_
#define SHARDPACK_AUGMENT_PLAN_STEP_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "augment/call_text.h"
#include "augment/operation.h"
#include "augment/own_operation.h"
#include "augment/policies.h"
#include "augment/program.h"
#include "images/augment/random_numbers.h"

namespace shardpack {

enum class StepKind : uint8_t {
  kOperation,
  kColorJitter,
  kRandAugment,
  kTrivialAugmentWide,
  kAutoAugment,
  kErase,
  kPerspective,
  kElastic,
  kAugMix,
  kOwn,
  kBatch,
};

// From low to high; equal: always that.
struct ValueRange {
  double low = 0, high = 0;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

// Numbered random numbers of one step for one sample. Below 2^16 lie those of the crop.
class StepRandom {
 public:
  StepRandom(const SampleIdentity& sample, uint32_t stream)
      : sample_(sample), base_((uint64_t{stream} + 1) << 16) {}
  uint64_t operator()(uint32_t draw) const { return SampleRandom(sample_, base_ | draw); }

 private:
  const SampleIdentity& sample_;
  const uint64_t base_;
};

struct PlanStep {
  static constexpr uint32_t kMaxStream = 65'534;
  static constexpr uint64_t kNoLastEpoch = UINT64_MAX;

  StepKind kind = StepKind::kOperation;
  OperationKind operation = OperationKind::kIdentity;  // kOperation
  // kOperation: its parameters. Else those of the step's table, in its order.
  std::array<ValueRange, OperationFacts::kMaxParameters> values = {};
  AutoAugmentPolicy policy = AutoAugmentPolicy::kImagenet;
  bool noise = false;  // kErase
  // kOwn, kBatch. The operation is null until the plan is told of it.
  std::string own_name = {};
  std::shared_ptr<const OwnOperation> own = nullptr;
  double probability = 1;
  bool has_probability = false;  // named in the text
  uint64_t first_epoch = 0, last_epoch = kNoLastEpoch;
  uint32_t stream = 0;
  bool own_stream = false;  // named in the text

  static absl::StatusOr<PlanStep> Make(const TextCall& call, uint32_t place);
  std::string ToText() const;
  bool MayWarp() const;
  // How many of its operations can be this one, and how many it has, at most; those of batches are
  // not among them.
  size_t MostOf(OperationKind kind) const;
  size_t MostOperations() const;
  void Draw(const SampleIdentity& sample, uint32_t width, uint32_t height,
            SampleProgram& program) const;
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_PLAN_STEP_H_
