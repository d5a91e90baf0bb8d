// SampleProgram: the operations that one sample gets, in order; what a plan draws, and what can be
// printed and replayed.
//
//   absl::StatusOr<SampleProgram> program = SampleProgram::Parse("rotate(-9) equalize");
//   ProgramRunner runner;
//   absl::Status done = runner.Apply(*program, {pixels, width, height, 3, width * size_t{3}});
//
// Apply changes the pixels in place. Operations that are tables of levels are joined and applied
// once; the result is that of one step after another. Channels: 1 or 3; saturation, hue and
// grayscale leave gray images as they are. Sharpness, blurs, perspective and elastic leave images
// with a side below 3 as they are.
//
// "chain(0.25) invert chain(0.25) rotate(-9) equalize blend(0.5)" is AugMix: each chain is applied
// to the image as it was before the first one, and the results are added up, with the image itself,
// by their weights: of at most 1 together, in whole 2^-16, the sum rounded down as torchvision's.
//
// Lifetime: a program is a plain value; the runner keeps its buffers from call to call.
// Thread-safety: programs are values; one runner for each thread.
// Errors: InvalidArgument for text that is not a program, naming the column, and for chains without
// a blend or weights above 1; ResourceExhausted
// beyond kMaxOperations, or when out of memory; FailedPrecondition without OpenCV
// (opencv_functions.h) where an operation is its; InvalidArgument for corners of a perspective that
// no image of this size has. Operations of users: DataLoss.
#ifndef SHARDPACK_AUGMENT_PROGRAM_H_
#define SHARDPACK_AUGMENT_PROGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "augment/editable_pixels.h"
#include "augment/elastic_field.h"
#include "augment/operation.h"
#include "augment/own_operation.h"
#include "images/pixels/pixels.h"

namespace shardpack {

struct SampleProgram {
  static constexpr size_t kMaxOperations = 4096;

  absl::InlinedVector<Operation, 8> operations;
  std::vector<OwnDraw> own = {};  // those of users among them, which their text names

  static absl::StatusOr<SampleProgram> Parse(std::string_view text);
  std::string ToText() const;  // empty if there are no operations
  // The operations that move pixels, alone; none of AugMix, whose copies go different ways.
  SampleProgram Warps() const;

  friend bool operator==(const SampleProgram&, const SampleProgram&) = default;
};

// Where a warp's result takes its pixels: row by row a matrix of (x, y, 1), whose third result
// divides the others, in pixels from the image's upper left corner; a pixel's centre lies at .5.
using WarpMatrix = std::array<double, 9>;
// nullopt: an elastic warp, which is not such a map, and corners of a perspective that do not form
// a convex quadrilateral, or whose horizon lies in the image.
std::optional<WarpMatrix> SourceOf(const Operation& warp, uint32_t width, uint32_t height);

// The label map of a warped image: each label is that of the pixel that the image takes there, and
// `ignore` outside. Rows have no gaps; the maps do not overlap. Label is uint8_t or uint16_t.
// InvalidArgument: no SourceOf. `field` keeps its memory.
template <typename Label>
absl::Status WarpLabels(const Operation& warp, const Label* from, uint32_t width, uint32_t height,
                        Label ignore, ElasticField& field, Label* to);

class ProgramRunner {
 public:
  absl::Status Apply(const SampleProgram& program, const EditablePixels& image);

 private:
  // Some in a row, none of them of AugMix.
  absl::Status ApplyRow(const SampleProgram& program, std::span<const Operation> row,
                        const EditablePixels& image);
  // From the first chain to the blend.
  absl::Status ApplyAugMix(const SampleProgram& program, std::span<const Operation> row,
                           const EditablePixels& image);
  absl::Status ApplyOne(const SampleProgram& program, const Operation& operation,
                        const EditablePixels& image);

  PixelBuffer copy_;
  PixelBuffer original_, sums_;  // of AugMix
  ElasticField field_;
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_PROGRAM_H_
