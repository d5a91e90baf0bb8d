// The arithmetic of operations on 8-bit pixels; what ProgramRunner joins.
//
// Thread-safety: pure functions of their arguments.
// Errors: of warps alone; sizes, channels (1 or 3) and parameters are the caller's to check.
// Units: levels of 0 to 255; pixels.
#ifndef SHARDPACK_AUGMENT_PIXEL_OPERATIONS_H_
#define SHARDPACK_AUGMENT_PIXEL_OPERATIONS_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "augment/elastic_field.h"
#include "augment/operation.h"
#include "augment/program.h"
#include "images/pixels/pixels.h"

namespace shardpack {

using LevelTable = std::array<uint8_t, 256>;
// A table per channel.
struct LevelTables {
  std::array<LevelTable, 3> of;

  static LevelTables Identity();
  // First these, then `next`.
  void Then(uint32_t channel, const LevelTable& next);
};

// Joins a table operation to the tables that are still to be applied to the image.
void JoinTable(const Operation& operation, const PixelView& image, LevelTables& tables);
void ApplyTables(const LevelTables& tables, const EditablePixels& image);

// The results are the same.
enum class Instructions : uint8_t { kBest, kPortable };

// In place.
void Saturate(double factor, const EditablePixels& image, Instructions = Instructions::kBest);
void TurnHue(double turn, const EditablePixels& image, Instructions = Instructions::kBest);
void MakeGray(const EditablePixels& image, Instructions = Instructions::kBest);
void FlipHorizontally(const EditablePixels& image);
void FlipVertically(const EditablePixels& image);
void Erase(const Operation& operation, const EditablePixels& image);

// From a copy of the image.
void Sharpen(double factor, const PixelView& from, const EditablePixels& image);
// InvalidArgument and ResourceExhausted: as SourceOf and ElasticField.
absl::Status Warp(const Operation& operation, const PixelView& from, ElasticField& field,
                  const EditablePixels& image);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_PIXEL_OPERATIONS_H_
