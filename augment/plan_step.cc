#include "augment/plan_step.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/io/edit_distance.h"
#include "formats/io/enum_words.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// A step that is not an operation: the parameters that it has besides those of every step.
struct StepFacts {
  std::string_view name;
  StepKind kind;
  struct Parameter {
    std::string_view name = {};
    double least = 0, most = 0;
    ValueRange fallback = {};
    bool whole = false, range = false;
  };
  std::array<Parameter, 7> parameters = {};

  size_t count() const { return CountNamed(parameters); }
};

constexpr StepFacts kSteps[] = {
    {"color_jitter",
     StepKind::kColorJitter,
     {{{"b", 0, 100, {1, 1}, false, true},
       {"c", 0, 100, {1, 1}, false, true},
       {"s", 0, 100, {1, 1}, false, true},
       {"h", -0.5, 0.5, {0, 0}, false, true}}}},
    {"rand_augment",
     StepKind::kRandAugment,
     {{{"n", 0, 16, {2, 2}, true},
       {"m", 0, 999, {9, 9}, true},
       {"bins", 2, 1000, {31, 31}, true}}}},
    {"trivial_augment_wide", StepKind::kTrivialAugmentWide, {{{"bins", 2, 1000, {31, 31}, true}}}},
    {"auto_augment", StepKind::kAutoAugment},
    {"erase",
     StepKind::kErase,
     {{{"scale", 1e-6, 1, {0.02, 0.33}, false, true},
       {"ratio", 1e-3, 1e3, {0.3, 3.3}, false, true},
       {"red", 0, 255, {0, 0}, true},
       {"green", 0, 255, {0, 0}, true},
       {"blue", 0, 255, {0, 0}, true}}}},
    {"perspective",
     StepKind::kPerspective,
     {{{"distortion", 0, 1, {0.5, 0.5}, false, true},
       {"bilinear", 0, 1, {1, 1}, true},
       {"fill", 0, 255, {0, 0}, true}}}},
    {"elastic",
     StepKind::kElastic,
     {{{"alpha", 0, 10'000, {50, 50}, false, true},
       {"sigma", 0, 100, {5, 5}, false, true},
       {"bilinear", 0, 1, {1, 1}, true},
       {"fill", 0, 255, {0, 0}, true}}}},
    {"aug_mix",
     StepKind::kAugMix,
     {{{"severity", 1, 10, {3, 3}, true},
       {"width", 1, 8, {3, 3}, true},
       {"depth", -1, 8, {-1, -1}, true},
       {"alpha", 1e-3, 1e3, {1, 1}},
       {"all_ops", 0, 1, {1, 1}, true},
       {"bilinear", 0, 1, {1, 1}, true},
       {"fill", 0, 255, {0, 0}, true}}}},
    {"own", StepKind::kOwn},
    {"batch", StepKind::kBatch},
};

const StepFacts* StepFactsOf(StepKind kind) {
  for (const StepFacts& facts : kSteps) {
    if (facts.kind == kind) return &facts;
  }
  return nullptr;  // an operation
}

bool IsNamed(StepKind kind) { return kind == StepKind::kOwn || kind == StepKind::kBatch; }

// Unless the text says otherwise: torchvision's.
double ProbabilityOf(StepKind kind) {
  return kind == StepKind::kErase || kind == StepKind::kPerspective ? 0.5 : 1;
}

// Of steps and operations, for messages.
std::string NearestStep(std::string_view name) {
  std::string_view best = NearestOperation(name);
  for (const StepFacts& facts : kSteps) {
    if (EditDistance(name, facts.name) < EditDistance(name, best)) best = facts.name;
  }
  return std::string(best);
}

std::string RangeText(const ValueRange& range) {
  std::string text = NumberText(range.low);
  if (range.low != range.high) absl::StrAppend(&text, "..", NumberText(range.high));
  return text;
}

absl::Status CheckValue(const TextValue& value, const OperationParameter& wanted) {
  const std::string name(wanted.name);
  if (!value.word.empty()) {
    return CallReader::ErrorAt(value.column,
                               absl::StrCat(name, " is a number, not ", std::string(value.word)));
  }
  const auto fits = [&](double number) {
    return number >= wanted.least && number <= wanted.most &&
           (!wanted.whole || number == std::floor(number)) &&
           (!wanted.odd || std::fmod(number, 2) == 1);
  };
  if (fits(value.low) && fits(value.high)) return absl::OkStatus();
  return CallReader::ErrorAt(
      value.column, absl::StrCat(name, " is ", RangeText({value.low, value.high}), "; it is ",
                                 std::string(KindText(wanted)), " from ", NumberText(wanted.least),
                                 " to ", NumberText(wanted.most)));
}

absl::Status NoRange(const TextValue& value, std::string_view name) {
  if (!value.range) return absl::OkStatus();
  return CallReader::ErrorAt(value.column,
                             absl::StrCat(std::string(name), " is one number, not a range"));
}

// p, epochs and stream; false if the value is none of them.
absl::StatusOr<bool> TakeCommon(const TextValue& value, PlanStep& step) {
  const auto once = [&](bool given) {
    return given ? CallReader::ErrorAt(value.column,
                                       absl::StrCat(std::string(value.key), " is given twice"))
                 : absl::OkStatus();
  };
  if (value.key == "p") {
    RETURN_IF_ERROR(once(std::exchange(step.has_probability, true)));
    RETURN_IF_ERROR(NoRange(value, "p"));
    RETURN_IF_ERROR(CheckValue(value, {.name = "p", .least = 0, .most = 1}));
    step.probability = value.low;
  } else if (value.key == "epochs") {
    RETURN_IF_ERROR(once(step.last_epoch != PlanStep::kNoLastEpoch));
    RETURN_IF_ERROR(CheckValue(value, {.name = "epochs", .most = 0x1p53, .whole = true}));
    step.first_epoch = static_cast<uint64_t>(value.low);
    step.last_epoch = static_cast<uint64_t>(value.high);
  } else if (value.key == "stream") {
    RETURN_IF_ERROR(once(step.own_stream));
    RETURN_IF_ERROR(NoRange(value, "stream"));
    RETURN_IF_ERROR(
        CheckValue(value, {.name = "stream", .most = PlanStep::kMaxStream, .whole = true}));
    step.stream = static_cast<uint32_t>(value.low);
    step.own_stream = true;
  } else {
    return false;
  }
  return true;
}

// The place of a value in a table of parameters: named, or the next one by position.
template <typename Facts>
absl::StatusOr<size_t> PlaceOf(const TextValue& value, std::string_view step, const Facts& facts,
                               size_t& next) {
  if (value.key.empty()) {
    if (next < facts.count()) return next++;
    return CallReader::ErrorAt(value.column,
                               absl::StrCat(std::string(step), " has ", facts.count(),
                                            " parameters besides p, epochs and stream"));
  }
  std::string known;
  for (size_t i = 0; i < facts.count(); ++i) {
    if (facts.parameters[i].name == value.key) return i;
    absl::StrAppend(&known, std::string(facts.parameters[i].name), ", ");
  }
  return CallReader::ErrorAt(
      value.column, absl::StrCat(std::string(step), " has no ", std::string(value.key), "; it has ",
                                 known, "p, epochs and stream"));
}

absl::Status TakeOperationValues(const TextCall& call, PlanStep& step) {
  const OperationFacts& facts = FactsOf(step.operation);
  std::array<bool, OperationFacts::kMaxParameters> given = {};
  size_t next = 0;
  for (const TextValue& value : call.values) {
    ASSIGN_OR_RETURN(const bool common, TakeCommon(value, step));
    if (common) continue;
    ASSIGN_OR_RETURN(const size_t place, PlaceOf(value, call.name, facts, next));
    const OperationParameter& parameter = facts.parameters[place];
    RETURN_IF_ERROR(CheckValue(value, parameter));
    if (std::exchange(given[place], true)) {
      return CallReader::ErrorAt(value.column,
                                 absl::StrCat(std::string(parameter.name), " is given twice"));
    }
    step.values[place] = {value.low, value.high};
  }
  for (size_t i = 0; i < facts.count(); ++i) {
    if (given[i]) continue;
    const OperationParameter& parameter = facts.parameters[i];
    if (!parameter.fallback) {
      return CallReader::ErrorAt(call.column, absl::StrCat(std::string(call.name), " needs ",
                                                           std::string(parameter.name)));
    }
    step.values[i] = {*parameter.fallback, *parameter.fallback};
  }
  return absl::OkStatus();
}

// One number of color_jitter stands for a range around no change.
ValueRange JitterRange(const TextValue& value, size_t place) {
  if (value.range) return {value.low, value.high};
  if (place == 3) return {-std::abs(value.low), std::abs(value.low)};
  return {std::max(0.0, 1 - value.low), std::min(1 + value.low, 100.0)};
}

absl::Status TakeWordValue(const TextValue& value, const TextCall& call, PlanStep& step) {
  if (step.kind == StepKind::kAutoAugment && (value.key.empty() || value.key == "policy")) {
    const auto policy = FindWord<AutoAugmentPolicy>(value.word);
    if (policy) {
      step.policy = *policy;
      return absl::OkStatus();
    }
  } else if (IsNamed(step.kind) && value.key.empty()) {
    step.own_name = value.word;
    return absl::OkStatus();
  } else if (step.kind == StepKind::kErase && value.key == "value" && value.word == "random") {
    step.noise = true;
    return absl::OkStatus();
  }
  return CallReader::ErrorAt(value.column, absl::StrCat(std::string(call.name), " does not take ",
                                                        std::string(value.word)));
}

absl::Status TakeStepValues(const TextCall& call, const StepFacts& facts, PlanStep& step) {
  for (size_t i = 0; i < facts.count(); ++i) step.values[i] = facts.parameters[i].fallback;
  size_t next = 0;
  bool has_word = false, has_level = false;
  std::array<bool, std::tuple_size_v<decltype(StepFacts::parameters)>> given = {};
  for (const TextValue& value : call.values) {
    ASSIGN_OR_RETURN(const bool common, TakeCommon(value, step));
    if (common) continue;
    if (!value.word.empty()) {
      if (std::exchange(has_word, true))
        return CallReader::ErrorAt(value.column, "a second word, where one is expected");
      RETURN_IF_ERROR(TakeWordValue(value, call, step));
      continue;
    }
    if (step.kind == StepKind::kErase && value.key.empty()) {
      return CallReader::ErrorAt(value.column,
                                 "the parameters of erase are named: p=, scale=, ratio=, value=");
    }
    if (step.kind == StepKind::kErase && value.key == "value") {  // of all channels
      RETURN_IF_ERROR(NoRange(value, "value"));
      RETURN_IF_ERROR(CheckValue(value, {.name = "value", .most = 255, .whole = true}));
      for (size_t i = 2; i < 5; ++i) step.values[i] = {value.low, value.low};
      has_level = true;
      continue;
    }
    ASSIGN_OR_RETURN(const size_t place, PlaceOf(value, call.name, facts, next));
    const StepFacts::Parameter& parameter = facts.parameters[place];
    if (std::exchange(given[place], true)) {
      return CallReader::ErrorAt(value.column,
                                 absl::StrCat(std::string(parameter.name), " is given twice"));
    }
    if (!parameter.range) RETURN_IF_ERROR(NoRange(value, parameter.name));
    RETURN_IF_ERROR(CheckValue(value, {.name = parameter.name,
                                       .least = parameter.least,
                                       .most = parameter.most,
                                       .whole = parameter.whole}));
    step.values[place] = step.kind == StepKind::kColorJitter ? JitterRange(value, place)
                                                             : ValueRange{value.low, value.high};
  }
  if (IsNamed(step.kind) && step.own_name.empty()) {
    return CallReader::ErrorAt(
        call.column, absl::StrCat(std::string(call.name), " needs the name of an operation"));
  }
  if (step.noise && (has_level || given[2] || given[3] || given[4]))
    return CallReader::ErrorAt(call.column, "erase has value=random or levels, not both");
  if (step.kind == StepKind::kRandAugment && step.values[1].low >= step.values[2].low) {
    return CallReader::ErrorAt(
        call.column, absl::StrCat("m is ", NumberText(step.values[1].low), "; it is below bins (",
                                  NumberText(step.values[2].low), ")"));
  }
  return absl::OkStatus();
}

// Of aug_mix.
size_t ChainsOf(const PlanStep& step) { return static_cast<size_t>(step.values[1].low); }
size_t DepthOf(const PlanStep& step) {
  return step.values[2].low > 0 ? static_cast<size_t>(step.values[2].low) : 3;
}
size_t MostOfAugMix(const PlanStep& step, OperationKind wanted) {
  if (wanted == OperationKind::kBlend) return 1;
  if (wanted == OperationKind::kChain) return ChainsOf(step);
  const std::span<const OperationKind> kinds = AugMixOperations(step.values[4].low != 0);
  const bool known = std::find(kinds.begin(), kinds.end(), wanted) != kinds.end();
  return known ? ChainsOf(step) * DepthOf(step) : 0;
}

}  // namespace

absl::StatusOr<PlanStep> PlanStep::Make(const TextCall& call, uint32_t place) {
  PlanStep step;
  step.stream = place;
  for (const StepFacts& facts : kSteps) {
    if (facts.name != call.name) continue;
    step.kind = facts.kind;
    step.probability = ProbabilityOf(step.kind);
    RETURN_IF_ERROR(TakeStepValues(call, facts, step));
    return step;
  }
  const auto operation = FindOperation(call.name);
  if (!operation) {
    return CallReader::ErrorAt(
        call.column, absl::StrCat("no step is called ", std::string(call.name), "; the nearest is ",
                                  NearestStep(call.name)));
  }
  if (IsOfAugMix(*operation)) {
    return CallReader::ErrorAt(
        call.column, absl::StrCat(std::string(call.name), " is of programs; a plan has aug_mix"));
  }
  step.operation = *operation;
  RETURN_IF_ERROR(TakeOperationValues(call, step));
  return step;
}

std::string PlanStep::ToText() const {
  std::vector<std::string> parts;
  const StepFacts* const facts = StepFactsOf(kind);
  const std::string_view name = facts == nullptr ? FactsOf(operation).name : facts->name;
  if (facts == nullptr) {
    const OperationFacts& own = FactsOf(operation);
    for (size_t i = 0; i < own.count(); ++i) {
      const OperationParameter& parameter = own.parameters[i];
      if (values[i] ==
          ValueRange{parameter.fallback.value_or(NAN), parameter.fallback.value_or(NAN)})
        continue;
      parts.push_back(absl::StrCat(std::string(parameter.name), "=", RangeText(values[i])));
    }
  } else {
    if (kind == StepKind::kAutoAugment) parts.push_back(Word(policy));
    if (IsNamed(kind)) parts.push_back(own_name);
    for (size_t i = 0; i < facts->count(); ++i) {
      const StepFacts::Parameter& parameter = facts->parameters[i];
      if (values[i] == parameter.fallback) continue;
      const bool both = kind == StepKind::kColorJitter;  // one number would mean a range around it
      parts.push_back(absl::StrCat(
          std::string(parameter.name), "=", NumberText(values[i].low),
          both || values[i].low != values[i].high ? ".." + NumberText(values[i].high) : ""));
    }
    if (noise) parts.emplace_back("value=random");
  }
  if (probability != ProbabilityOf(kind))
    parts.push_back(absl::StrCat("p=", NumberText(probability)));
  if (first_epoch != 0 || last_epoch != kNoLastEpoch)
    parts.push_back(absl::StrCat("epochs=", first_epoch, "..", last_epoch));
  if (own_stream) parts.push_back(absl::StrCat("stream=", stream));
  std::string text(name);
  if (!parts.empty()) absl::StrAppend(&text, "(", absl::StrJoin(parts, ", "), ")");
  return text;
}

bool PlanStep::MayWarp() const {
  return kind == StepKind::kRandAugment || kind == StepKind::kTrivialAugmentWide ||
         kind == StepKind::kAutoAugment || kind == StepKind::kPerspective ||
         kind == StepKind::kElastic || kind == StepKind::kAugMix ||
         (kind == StepKind::kOperation && IsWarp(operation));
}

size_t PlanStep::MostOf(OperationKind wanted) const {
  const auto changes = [this](size_t i, double same) {
    return values[i].low != same || values[i].high != same;
  };
  switch (kind) {
    case StepKind::kOperation:
      return operation == wanted ? 1 : 0;
    case StepKind::kColorJitter:
      return (wanted == OperationKind::kBrightness && changes(0, 1)) ||
             (wanted == OperationKind::kContrast && changes(1, 1)) ||
             (wanted == OperationKind::kSaturation && changes(2, 1)) ||
             (wanted == OperationKind::kHue && changes(3, 0));
    case StepKind::kErase:
      return wanted == OperationKind::kErase ? 1 : 0;
    case StepKind::kPerspective:
      return wanted == OperationKind::kPerspective ? 1 : 0;
    case StepKind::kElastic:
      return wanted == OperationKind::kElastic ? 1 : 0;
    case StepKind::kAugMix:
      return MostOfAugMix(*this, wanted);
    case StepKind::kOwn:
      return wanted == OperationKind::kOwn ? 1 : 0;
    case StepKind::kBatch:
      return 0;
    default:
      break;
  }
  const std::span<const OperationKind> kinds = PolicyOperations();
  const bool known = std::find(kinds.begin(), kinds.end(), wanted) != kinds.end() ||
                     (kind == StepKind::kAutoAugment && wanted == OperationKind::kInvert);
  return known ? MostOperations() : 0;
}

size_t PlanStep::MostOperations() const {
  switch (kind) {
    case StepKind::kColorJitter:
      return MostOf(OperationKind::kBrightness) + MostOf(OperationKind::kContrast) +
             MostOf(OperationKind::kSaturation) + MostOf(OperationKind::kHue);
    case StepKind::kRandAugment:
      return static_cast<size_t>(values[0].high);
    case StepKind::kAutoAugment:
      return 2;
    case StepKind::kAugMix:
      return ChainsOf(*this) * (1 + DepthOf(*this)) + 1;
    case StepKind::kBatch:
      return 0;
    default:
      return 1;
  }
}

}  // namespace shardpack
