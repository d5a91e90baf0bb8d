#include "augment/operation.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "formats/io/edit_distance.h"

namespace shardpack {
namespace {

constexpr double kMany = 1e6;
// Twice the largest image.
constexpr double kMaxShift = 131'070;

constexpr OperationParameter Factor(double most = 100) { return {"factor", 0, most}; }
constexpr OperationParameter kBilinear = {"bilinear", 0, 1, 0, true};
constexpr OperationParameter kSmooth = {"bilinear", 0, 1, 1, true};
constexpr OperationParameter kFill = {"fill", 0, 255, 0, true};
constexpr OperationParameter Corner(std::string_view name) { return {name, -kMaxShift, kMaxShift}; }
constexpr OperationParameter Level(std::string_view name) { return {name, 0, 255, 0, true}; }

// In the order of OperationKind. The limits keep arithmetic finite; useful values lie well inside.
constexpr OperationFacts kFacts[] = {
    {"identity"},
    {"brightness", {Factor()}},
    {"posterize", {{{"bits", 0, 8, std::nullopt, true}}}},
    {"solarize", {{{"threshold", 0, 256}}}},
    {"invert"},
    {"gamma", {{{"gamma", 0, 100}, {"gain", 0, 100, 1}}}},
    {"contrast", {Factor()}},
    {"autocontrast"},
    {"equalize"},
    {"saturation", {Factor()}},
    {"hue", {{{"turn", -0.5, 0.5}}}},  // of the circle of hues
    {"grayscale"},
    {"sharpness", {Factor()}},
    // torchvision's: weights of a Gaussian over kernel x kernel pixels, mirrored at the border.
    {"gaussian_blur", {{{"kernel", 1, 255, std::nullopt, true, true}, {"sigma", 0.01, 100}}}},
    {"median", {{{"kernel", 1, 255, std::nullopt, true, true}}}},
    // Of the luma in tiles x tiles parts; no count of a histogram is above clip times their mean.
    {"clahe", {{{"clip", 0, 256}, {"tiles", 1, 64, 8, true}}}},
    // How far a row moves for each row below the upper edge.
    {"shear_x", {{{"slope", -100, 100}, kBilinear, kFill}}},
    {"shear_y", {{{"slope", -100, 100}, kBilinear, kFill}}},
    {"translate_x", {{{"pixels", -kMaxShift, kMaxShift}, kBilinear, kFill}}},
    {"translate_y", {{{"pixels", -kMaxShift, kMaxShift}, kBilinear, kFill}}},
    // Counterclockwise, about the centre.
    {"rotate", {{{"degrees", -kMany, kMany}, kBilinear, kFill}}},
    // torchvision's affine: rotation clockwise, scale and shear (degrees) about the centre, then
    // translation.
    {"affine",
     {{{"degrees", -kMany, kMany},
       {"dx", -kMaxShift, kMaxShift, 0},
       {"dy", -kMaxShift, kMaxShift, 0},
       {"scale", 0.01, 100, 1},
       {"shear_x", -80, 80, 0},
       {"shear_y", -80, 80, 0},
       kBilinear,
       kFill}}},
    {"flip_horizontal"},
    {"flip_vertical"},
    // torchvision's: where the centres of the corner pixels go, clockwise from the upper left one.
    {"perspective",
     {{Corner("x1"), Corner("y1"), Corner("x2"), Corner("y2"), Corner("x3"), Corner("y3"),
       Corner("x4"), Corner("y4"), kSmooth, kFill}}},
    // Noise of -alpha / 2 to alpha / 2 pixels, blurred by a Gaussian.
    {"elastic",
     {{{"alpha", 0, 10'000},
       {"sigma", 0, 100},
       {"seed", 0, 0x1p53, std::nullopt, true},
       kSmooth,
       kFill}}},
    // Levels per channel, or with a seed above 0 noise.
    {"erase",
     {{{"left", 0, kMany, std::nullopt, true},
       {"top", 0, kMany, std::nullopt, true},
       {"width", 1, kMany, std::nullopt, true},
       {"height", 1, kMany, std::nullopt, true},
       Level("red"),
       Level("green"),
       Level("blue"),
       {"noise", 0, 0x1p53, 0, true}}}},
    // The copy's share, and the image's: in whole 2^-16.
    {"chain", {{{"weight", 0, 1}}}},
    {"blend", {{{"weight", 0, 1}}}},
    {"own", {{{"number", 0, 511, std::nullopt, true}}}},
};
static_assert(std::size(kFacts) == kOperationKinds);

}  // namespace

const OperationFacts& FactsOf(OperationKind kind) { return kFacts[static_cast<size_t>(kind)]; }

std::optional<OperationKind> FindOperation(std::string_view name) {
  for (size_t i = 0; i < kOperationKinds; ++i) {
    if (kFacts[i].name == name) return static_cast<OperationKind>(i);
  }
  return std::nullopt;
}

std::string_view NearestOperation(std::string_view name) {
  const OperationFacts* best = kFacts;
  for (const OperationFacts& facts : kFacts) {
    if (EditDistance(name, facts.name) < EditDistance(name, best->name)) best = &facts;
  }
  return best->name;
}

std::string_view KindText(const OperationParameter& parameter) {
  if (parameter.odd) return "an odd number";
  return parameter.whole ? "a whole number" : "a number";
}

bool IsTable(OperationKind kind) {
  return kind >= OperationKind::kBrightness && kind <= OperationKind::kEqualize;
}

bool IsFixedTable(OperationKind kind) {
  return kind >= OperationKind::kBrightness && kind <= OperationKind::kGamma;
}

bool IsWarp(OperationKind kind) {
  return kind >= OperationKind::kShearX && kind <= OperationKind::kElastic;
}

size_t WarpOptionsOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAffine:
      return 6;
    case OperationKind::kPerspective:
      return 8;
    case OperationKind::kElastic:
      return 3;
    default:
      return 1;
  }
}

bool IsOfAugMix(OperationKind kind) {
  return kind == OperationKind::kChain || kind == OperationKind::kBlend;
}

bool NeedsOpenCv(OperationKind kind) {
  return kind >= OperationKind::kGaussianBlur && kind <= OperationKind::kClahe;
}

std::string NumberText(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value == 0 ? 0.0 : value).ptr;
  return std::string(text, end);
}

absl::StatusOr<Operation> Operation::Make(OperationKind kind, std::span<const double> values) {
  const OperationFacts& facts = FactsOf(kind);
  const size_t count = facts.count();
  if (values.size() > count) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(facts.name), " has ", count, " parameters, not ", values.size()));
  }
  Operation made{kind};
  for (size_t i = 0; i < count; ++i) {
    const OperationParameter& parameter = facts.parameters[i];
    if (i < values.size()) {
      made.values[i] = values[i];
    } else if (parameter.fallback) {
      made.values[i] = *parameter.fallback;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(facts.name), " needs ", std::string(parameter.name)));
    }
  }
  if (absl::Status good = made.Check(); !good.ok()) return good;
  return made;
}

absl::Status Operation::Check() const {
  const OperationFacts& facts = FactsOf(kind);
  for (size_t i = 0; i < facts.count(); ++i) {
    const OperationParameter& parameter = facts.parameters[i];
    const double value = values[i];
    const bool inside = value >= parameter.least && value <= parameter.most;  // false for NaN
    if (inside && (!parameter.whole || value == std::floor(value)) &&
        (!parameter.odd || std::fmod(value, 2) == 1)) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(facts.name), ": ", std::string(parameter.name), " is ",
                     NumberText(value), "; it is ", std::string(KindText(parameter)), " from ",
                     NumberText(parameter.least), " to ", NumberText(parameter.most)));
  }
  return absl::OkStatus();
}

std::string Operation::ToText() const {
  const OperationFacts& facts = FactsOf(kind);
  size_t shown = facts.count();
  while (shown > 0 && facts.parameters[shown - 1].fallback == values[shown - 1]) --shown;
  std::string text(facts.name);
  for (size_t i = 0; i < shown; ++i)
    absl::StrAppend(&text, i == 0 ? "(" : ", ", NumberText(values[i]));
  if (shown > 0) text += ')';
  return text;
}

}  // namespace shardpack
