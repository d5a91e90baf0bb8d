#include "augment/program.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "augment/call_text.h"
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
  return program;
}

std::string SampleProgram::ToText() const {
  std::string text;
  for (const Operation& operation : operations)
    absl::StrAppend(&text, text.empty() ? "" : " ", operation.ToText());
  return text;
}

SampleProgram SampleProgram::Warps() const {
  SampleProgram warps;
  for (const Operation& operation : operations) {
    if (IsWarp(operation.kind)) warps.operations.push_back(operation);
  }
  return warps;
}

absl::Status ProgramRunner::Apply(const SampleProgram& program, const EditablePixels& image) {
  LevelTables tables;
  bool pending = false;
  const auto flush = [&] {
    if (pending) ApplyTables(tables, image);
    pending = false;
  };
  for (const Operation& operation : program.operations) {
    if (operation.kind == OperationKind::kIdentity) continue;
    if (IsTable(operation.kind)) {
      if (!pending) tables = LevelTables::Identity();
      pending = true;
      JoinTable(operation, image.view(), tables);
      continue;
    }
    flush();
    const double value = operation.values[0];
    switch (operation.kind) {
      case OperationKind::kSaturation:
        if (image.channels == 3) Saturate(value, image);
        continue;
      case OperationKind::kHue:
        if (image.channels == 3) TurnHue(value, image);
        continue;
      case OperationKind::kGrayscale:
        if (image.channels == 3) MakeGray(image);
        continue;
      case OperationKind::kFlipHorizontal:
        FlipHorizontally(image);
        continue;
      case OperationKind::kFlipVertical:
        FlipVertically(image);
        continue;
      case OperationKind::kErase:
        Erase(operation, image);
        continue;
      default:
        break;
    }
    // What reads neighbours or other places needs the pixels as they were.
    const size_t row_bytes = size_t{image.width} * image.channels;
    if (!copy_.Reserve(row_bytes * image.height))
      return absl::ResourceExhaustedError("no memory for a copy of an image");
    for (uint32_t y = 0; y < image.height; ++y)
      std::memcpy(copy_.data() + y * row_bytes, image.Row(y), row_bytes);
    const PixelView from{copy_.data(), image.width, image.height, image.channels, row_bytes};
    if (operation.kind == OperationKind::kSharpness) {
      Sharpen(value, from, image);
    } else {
      Warp(operation, from, image);
    }
  }
  flush();
  return absl::OkStatus();
}

}  // namespace shardpack
