#include "augment/plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "augment/call_text.h"
#include "augment/opencv_functions.h"
#include "augment/opencv_table.h"
#include "augment/plan_step.h"
#include "formats/io/status_macros.h"

namespace shardpack {

AugmentPlan::AugmentPlan() = default;
AugmentPlan::AugmentPlan(const AugmentPlan&) = default;
AugmentPlan::AugmentPlan(AugmentPlan&&) noexcept = default;
AugmentPlan& AugmentPlan::operator=(const AugmentPlan&) = default;
AugmentPlan& AugmentPlan::operator=(AugmentPlan&&) noexcept = default;
AugmentPlan::~AugmentPlan() = default;

absl::StatusOr<AugmentPlan> AugmentPlan::Parse(std::string_view text) {
  constexpr std::string_view kName = "augment/", kBlanks = " \t\n\v\f\r";
  // Blanks keep the columns of messages those of the text.
  std::string steps(text);
  const size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  if (text.substr(first, kName.size()) == kName) {
    const size_t end = std::min(text.find_first_of(kBlanks, first), text.size());
    if (text.substr(first, end - first) != kVersion) {
      return CallReader::ErrorAt(
          first + 1, absl::StrCat("this program reads ", std::string(kVersion), ", not ",
                                  std::string(text.substr(first, end - first))));
    }
    std::fill(steps.begin() + static_cast<ptrdiff_t>(first),
              steps.begin() + static_cast<ptrdiff_t>(end), ' ');
  }
  AugmentPlan plan;
  CallReader reader(steps);
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const TextCall call, reader.Next());
    if (plan.steps_.size() == kMaxSteps) {
      return CallReader::ErrorAt(call.column,
                                 absl::StrCat("a plan has at most ", kMaxSteps, " steps"));
    }
    ASSIGN_OR_RETURN(PlanStep step,
                     PlanStep::Make(call, static_cast<uint32_t>(plan.steps_.size())));
    if (step.kind != StepKind::kBatch && !plan.steps_.empty() &&
        plan.steps_.back().kind == StepKind::kBatch) {
      return CallReader::ErrorAt(
          call.column,
          absl::StrCat(std::string(call.name), " stands after ", plan.steps_.back().ToText(),
                       ", which changes whole batches when all other steps are done: "
                       "put it last"));
    }
    for (const PlanStep& other : plan.steps_) {
      if (other.stream != step.stream) continue;
      return CallReader::ErrorAt(call.column, absl::StrCat("two steps use stream ", step.stream,
                                                           ", and would draw the same numbers"));
    }
    plan.steps_.push_back(step);
  }
  return plan;
}

std::string AugmentPlan::ToText() const {
  std::string text(kVersion);
  for (const PlanStep& step : steps_) absl::StrAppend(&text, " ", step.ToText());
  return text;
}

bool AugmentPlan::MayWarp() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const PlanStep& step) { return step.MayWarp(); });
}

size_t AugmentPlan::MostOf(OperationKind kind) const {
  size_t most = 0;
  for (const PlanStep& step : steps_) most += step.MostOf(kind);
  return most;
}

size_t AugmentPlan::MostOf(OperationSet is_wanted) const {
  size_t most = 0;
  for (size_t step = 0; step < steps_.size(); ++step) most += MostOf(step, is_wanted);
  return most;
}

size_t AugmentPlan::steps() const { return steps_.size(); }

size_t AugmentPlan::MostOf(size_t step, OperationSet is_wanted) const {
  size_t most = 0;
  for (size_t i = 0; i < kOperationKinds; ++i) {
    const auto kind = static_cast<OperationKind>(i);
    if (is_wanted(kind)) most += steps_[step].MostOf(kind);
  }
  return std::min(most, steps_[step].MostOperations());
}

std::optional<OperationKind> AugmentPlan::AlwaysDoes(size_t place) const {
  const PlanStep& step = steps_[place];
  const bool always = step.kind == StepKind::kOperation && step.probability == 1 &&
                      step.first_epoch == 0 && step.last_epoch == PlanStep::kNoLastEpoch;
  return always ? std::optional(step.operation) : std::nullopt;
}

size_t AugmentPlan::MostOperations() const {
  size_t most = 0;
  for (const PlanStep& step : steps_) most += step.MostOperations();
  return most;
}

absl::Status AugmentPlan::Add(OwnOperation operation) {
  RETURN_IF_ERROR(CheckOwnOperation(operation));
  const auto shared = std::make_shared<const OwnOperation>(std::move(operation));
  bool named = false;
  for (PlanStep& step : steps_) {
    if (step.kind != StepKind::kOwn || step.own_name != shared->name) continue;
    if (step.own != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan has an operation called ", shared->name, " already"));
    }
    step.own = shared;
    named = true;
  }
  if (named) return absl::OkStatus();
  ASSIGN_OR_RETURN(AugmentPlan longer, Parse(absl::StrCat(ToText(), " own(", shared->name, ")")));
  for (size_t i = 0; i < steps_.size(); ++i) longer.steps_[i].own = steps_[i].own;
  longer.steps_.back().own = shared;
  *this = std::move(longer);
  return absl::OkStatus();
}

absl::Status AugmentPlan::CheckReady() const {
  for (const PlanStep& step : steps_) {
    if (step.kind == StepKind::kOwn && step.own == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "own(", step.own_name, "): no operation of this name was added to the plan"));
    }
  }
  return NeedsOpenCv() ? OpenCv().status() : absl::OkStatus();
}

bool AugmentPlan::NeedsOpenCv() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const PlanStep& step) {
    return step.kind == StepKind::kOperation && shardpack::NeedsOpenCv(step.operation);
  });
}

std::string AugmentPlan::Facts() const {
  std::string facts = ToText();
  for (const PlanStep& step : steps_) {
    if (step.own != nullptr) absl::StrAppend(&facts, " ", step.own_name, "{", step.own->facts, "}");
  }
  if (!NeedsOpenCv()) return facts;
  const auto opencv = OpenCv();
  if (opencv.ok()) absl::StrAppend(&facts, " opencv{", (*opencv)->version, "}");
  return facts;
}

void AugmentPlan::Draw(const SampleIdentity& sample, uint32_t width, uint32_t height,
                       SampleProgram& program) const {
  program.operations.erase(program.operations.begin(),
                           program.operations.end());  // keeps its memory
  program.own.clear();
  for (const PlanStep& step : steps_) step.Draw(sample, width, height, program);
}

}  // namespace shardpack
