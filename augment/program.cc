#include "augment/program.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "augment/call_text.h"
#include "augment/opencv_functions.h"
#include "augment/opencv_table.h"
#include "augment/pixel_operations.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

absl::StatusOr<Operation> OperationOf(const TextCall& call) {
  const auto kind = FindOperation(call.name);
  if (!kind) {
    return CallReader::ErrorAt(
        call.column, absl::StrCat("no operation is called ", std::string(call.name),
                                  "; the nearest is ", std::string(NearestOperation(call.name))));
  }
  if (*kind == OperationKind::kOwn) {
    return CallReader::ErrorAt(call.column,
                               "an operation of your own is applied by the plan that has it");
  }
  std::array<double, OperationFacts::kMaxParameters> values = {};
  size_t count = 0;
  for (const TextValue& value : call.values) {
    if (!value.key.empty() || !value.word.empty() || value.range) {
      return CallReader::ErrorAt(value.column,
                                 "a program's parameters are plain numbers, as in rotate(-9, 1)");
    }
    if (count == values.size()) return CallReader::ErrorAt(value.column, "too many parameters");
    values[count++] = value.low;
  }
  absl::StatusOr<Operation> made = Operation::Make(*kind, std::span(values.data(), count));
  if (!made.ok()) return CallReader::ErrorAt(call.column, std::string(made.status().message()));
  return made;
}

absl::Status ApplyByOpenCv(const Operation& operation, const EditablePixels& image) {
  if (image.width < 3 || image.height < 3) return absl::OkStatus();
  ASSIGN_OR_RETURN(const OpenCvFunctions* const opencv, OpenCv());
  const OpenCvPixels pixels = {image.pixels, image.width, image.height, image.channels,
                               image.stride_bytes};
  const double value = operation.values[0], second = operation.values[1];
  const char* why = nullptr;
  if (operation.kind == OperationKind::kGaussianBlur) {
    why = opencv->gaussian_blur(pixels, static_cast<uint32_t>(value), second);
  } else if (operation.kind == OperationKind::kMedian) {
    why = opencv->median(pixels, static_cast<uint32_t>(value));
  } else {
    why = opencv->clahe(pixels, value, static_cast<uint32_t>(second));
  }
  if (why == nullptr) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(operation.ToText(), ": OpenCV: ", why));
}

uint32_t WeightOf(const Operation& operation) {
  return static_cast<uint32_t>(std::floor(operation.values[0] * 0x1p16 + 0.5));
}

// Every chain is blended, and no sum of levels is above 255 by more than a rounding.
absl::Status CheckAugMix(std::span<const Operation> operations) {
  bool mixing = false;
  double weight = 0;
  for (const Operation& operation : operations) {
    if (!IsOfAugMix(operation.kind)) continue;
    weight = operation.values[0] + (mixing ? weight : 0);
    if (weight > 1 + 1e-6) {
      return absl::InvalidArgumentError(absl::StrCat("the weights of chains and their blend are ",
                                                     NumberText(weight),
                                                     " together; they are at most 1"));
    }
    if (operation.kind == OperationKind::kBlend && !mixing)
      return absl::InvalidArgumentError("a blend without a chain before it");
    mixing = operation.kind == OperationKind::kChain;
  }
  if (mixing) return absl::InvalidArgumentError("a chain without a blend after it");
  return absl::OkStatus();
}

void CopyRows(const EditablePixels& image, uint8_t* to) {
  const size_t row_bytes = size_t{image.width} * image.channels;
  for (uint32_t y = 0; y < image.height; ++y, to += row_bytes)
    std::memcpy(to, image.Row(y), row_bytes);
}

}  // namespace

absl::StatusOr<SampleProgram> SampleProgram::Parse(std::string_view text) {
  SampleProgram program;
  CallReader reader(text);
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const TextCall call, reader.Next());
    ASSIGN_OR_RETURN(const Operation operation, OperationOf(call));
    if (program.operations.size() == kMaxOperations) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "column ", call.column, ": a program has at most ", kMaxOperations, " operations"));
    }
    program.operations.push_back(operation);
  }
  RETURN_IF_ERROR(CheckAugMix(program.operations));
  return program;
}

std::string SampleProgram::ToText() const {
  std::string text;
  for (const Operation& operation : operations) {
    absl::StrAppend(&text, text.empty() ? "" : " ");
    if (operation.kind == OperationKind::kOwn) {
      absl::StrAppend(&text, "own(", own[static_cast<size_t>(operation.values[0])].name, ")");
    } else {
      absl::StrAppend(&text, operation.ToText());
    }
  }
  return text;
}

SampleProgram SampleProgram::Warps() const {
  SampleProgram warps;
  bool mixing = false;
  for (const Operation& operation : operations) {
    if (IsOfAugMix(operation.kind)) mixing = operation.kind == OperationKind::kChain;
    if (IsWarp(operation.kind) && !mixing) warps.operations.push_back(operation);
  }
  return warps;
}

absl::Status ProgramRunner::ApplyOne(const SampleProgram& program, const Operation& operation,
                                     const EditablePixels& image) {
  const double value = operation.values[0];
  switch (operation.kind) {
    case OperationKind::kSaturation:
      if (image.channels == 3) Saturate(value, image);
      return absl::OkStatus();
    case OperationKind::kHue:
      if (image.channels == 3) TurnHue(value, image);
      return absl::OkStatus();
    case OperationKind::kGrayscale:
      if (image.channels == 3) MakeGray(image);
      return absl::OkStatus();
    case OperationKind::kFlipHorizontal:
      FlipHorizontally(image);
      return absl::OkStatus();
    case OperationKind::kFlipVertical:
      FlipVertically(image);
      return absl::OkStatus();
    case OperationKind::kErase:
      Erase(operation, image);
      return absl::OkStatus();
    case OperationKind::kOwn:
      return RunOwn(program.own[static_cast<size_t>(value)], image);
    case OperationKind::kGaussianBlur:
    case OperationKind::kMedian:
    case OperationKind::kClahe:
      return ApplyByOpenCv(operation, image);
    default:
      break;
  }
  // What reads neighbours or other places needs the pixels as they were.
  const size_t row_bytes = size_t{image.width} * image.channels;
  if (!copy_.Reserve(row_bytes * image.height))
    return absl::ResourceExhaustedError("no memory for a copy of an image");
  CopyRows(image, copy_.data());
  const PixelView from{copy_.data(), image.width, image.height, image.channels, row_bytes};
  if (operation.kind != OperationKind::kSharpness) return Warp(operation, from, field_, image);
  Sharpen(value, from, image);
  return absl::OkStatus();
}

absl::Status ProgramRunner::ApplyRow(const SampleProgram& program, std::span<const Operation> row,
                                     const EditablePixels& image) {
  LevelTables tables;
  bool pending = false;
  const auto flush = [&] {
    if (pending) ApplyTables(tables, image);
    pending = false;
  };
  for (const Operation& operation : row) {
    if (operation.kind == OperationKind::kIdentity) continue;
    if (IsTable(operation.kind)) {
      if (!pending) tables = LevelTables::Identity();
      pending = true;
      JoinTable(operation, image.view(), tables);
      continue;
    }
    flush();
    RETURN_IF_ERROR(ApplyOne(program, operation, image));
  }
  flush();
  return absl::OkStatus();
}

absl::Status ProgramRunner::ApplyAugMix(const SampleProgram& program,
                                        std::span<const Operation> row,
                                        const EditablePixels& image) {
  const size_t row_values = size_t{image.width} * image.channels;
  const size_t values = row_values * image.height;
  if (!original_.Reserve(values) || !sums_.Reserve(values * sizeof(uint32_t)))
    return absl::ResourceExhaustedError("no memory for the copies of an image");
  CopyRows(image, original_.data());
  auto* const sums = reinterpret_cast<uint32_t*>(sums_.data());
  const uint32_t own_weight = WeightOf(row.back());
  const uint8_t* const original = original_.data();
  for (size_t i = 0; i < values; ++i) sums[i] = own_weight * original[i];
  const auto is_of_augmix = [](const Operation& operation) { return IsOfAugMix(operation.kind); };
  while (row.size() > 1) {
    const uint32_t weight = WeightOf(row[0]);
    row = row.subspan(1);
    const auto length =
        static_cast<size_t>(std::find_if(row.begin(), row.end(), is_of_augmix) - row.begin());
    RETURN_IF_ERROR(ApplyRow(program, row.first(length), image));
    row = row.subspan(length);
    for (uint32_t y = 0; y < image.height; ++y) {
      uint8_t* const pixels = image.Row(y);
      uint32_t* const sum = sums + y * row_values;
      for (size_t i = 0; i < row_values; ++i) sum[i] += weight * pixels[i];
      std::memcpy(pixels, original + y * row_values, row_values);
    }
  }
  for (uint32_t y = 0; y < image.height; ++y) {
    for (size_t i = 0; i < row_values; ++i) {
      image.Row(y)[i] = static_cast<uint8_t>(std::min(sums[y * row_values + i] >> 16, 255u));
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramRunner::Apply(const SampleProgram& program, const EditablePixels& image) {
  RETURN_IF_ERROR(CheckAugMix(program.operations));
  std::span<const Operation> rest = program.operations;
  const auto up_to = [&](OperationKind kind) {
    return static_cast<size_t>(
        std::find_if(rest.begin(), rest.end(), [&](const Operation& o) { return o.kind == kind; }) -
        rest.begin());
  };
  while (!rest.empty()) {
    const size_t plain = up_to(OperationKind::kChain);
    RETURN_IF_ERROR(ApplyRow(program, rest.first(plain), image));
    rest = rest.subspan(plain);
    if (rest.empty()) break;
    const size_t mixed = up_to(OperationKind::kBlend) + 1;
    RETURN_IF_ERROR(ApplyAugMix(program, rest.first(mixed), image));
    rest = rest.subspan(mixed);
  }
  return absl::OkStatus();
}

}  // namespace shardpack
