// Operation: one step on decoded 8-bit pixels, with its parameters: rotate(-9), equalize, hue(0.1).
//
//   absl::StatusOr<Operation> turn = Operation::Make(OperationKind::kRotate, {-9});
//   std::string text = turn->ToText();                          // "rotate(-9)"
//   const OperationFacts& facts = FactsOf(turn->kind);          // names of parameters, their ranges
//
// Definitions are those of torchvision.transforms.v2 (0.29) for uint8 tensors; docs/augment.md says
// where and by how much results differ. Every parameter is a number; one that is not given has its
// default. Warps move pixels: the value of a result's pixel comes from where its centre lies in the
// source.
//
// Lifetime: plain values.
// Errors: InvalidArgument, naming the operation, the parameter, its value and its range.
// Units: those of the table in operation.cc: factors, degrees, pixels, levels of 0 to 255.
#ifndef SHARDPACK_AUGMENT_OPERATION_H_
#define SHARDPACK_AUGMENT_OPERATION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shardpack {

enum class OperationKind : uint8_t {
  kIdentity,
  // A table each channel, which needs no other pixel.
  kBrightness,
  kPosterize,
  kSolarize,
  kInvert,
  kGamma,
  // A table each channel, made from statistics of the image.
  kContrast,
  kAutocontrast,
  kEqualize,
  // Channels of one pixel.
  kSaturation,
  kHue,
  kGrayscale,
  // Neighbouring pixels.
  kSharpness,
  // The same, by OpenCV (opencv_functions.h).
  kGaussianBlur,
  kMedian,
  kClahe,
  // Warps.
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kAffine,
  kFlipHorizontal,
  kFlipVertical,
  kPerspective,
  kElastic,
  // A rectangle.
  kErase,
  // AugMix: what follows a chain is done to a copy of the image; a blend adds the copies up.
  kChain,
  kBlend,
  // One of a user (own_operation.h): its number in SampleProgram::own.
  kOwn,
};
inline constexpr size_t kOperationKinds = static_cast<size_t>(OperationKind::kOwn) + 1;

// A parameter without a default must be given.
struct OperationParameter {
  std::string_view name = {};
  double least = 0, most = 0;
  std::optional<double> fallback = std::nullopt;
  bool whole = false;  // a whole number
  bool odd = false;    // and an odd one
};

// Of a table of parameters whose unused entries, at its end, have no name.
template <typename Table>
size_t CountNamed(const Table& parameters) {
  size_t count = 0;
  while (count < parameters.size() && !parameters[count].name.empty()) ++count;
  return count;
}

struct OperationFacts {
  static constexpr size_t kMaxParameters = 10;

  std::string_view name;
  std::array<OperationParameter, kMaxParameters> parameters = {};

  size_t count() const { return CountNamed(parameters); }
};

// "a whole number": for messages.
std::string_view KindText(const OperationParameter& parameter);

const OperationFacts& FactsOf(OperationKind kind);
std::optional<OperationKind> FindOperation(std::string_view name);
// The known name that is most like it, for messages.
std::string_view NearestOperation(std::string_view name);

struct Operation {
  OperationKind kind = OperationKind::kIdentity;
  std::array<double, OperationFacts::kMaxParameters> values = {};

  // The parameters in the order of the table; the rest have their defaults.
  static absl::StatusOr<Operation> Make(OperationKind kind, std::span<const double> values);
  absl::Status Check() const;
  // Parameters that have their defaults are left out where nothing follows them.
  std::string ToText() const;

  friend bool operator==(const Operation&, const Operation&) = default;
};

// Whether it is a table of levels for each channel, and whether that is the same for every image.
bool IsTable(OperationKind kind);
bool IsFixedTable(OperationKind kind);
// Whether the operation moves pixels, so that boxes and masks would have to move as well.
bool IsWarp(OperationKind kind);
// The first of a warp's options among its values, bilinear and then fill: they come after those
// that say where to. Flips have none.
size_t WarpOptionsOf(OperationKind kind);
// Whether it is a part of AugMix, which programs have and plans do not.
bool IsOfAugMix(OperationKind kind);
// Whether OpenCV does it.
bool NeedsOpenCv(OperationKind kind);

// The shortest decimal number that reads back as the same value.
std::string NumberText(double value);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_OPERATION_H_
