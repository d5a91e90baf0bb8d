// SampleProgram: the operations that one sample gets, in order; what a plan draws, and what can be
// printed and replayed.
//
//   absl::StatusOr<SampleProgram> program = SampleProgram::Parse("rotate(-9) equalize");
//   ProgramRunner runner;
//   absl::Status done = runner.Apply(*program, {pixels, width, height, 3, width * size_t{3}});
//
// Apply changes the pixels in place. Operations that are tables of levels are joined and applied
// once; the result is that of one step after another. Channels: 1 or 3; saturation, hue and
// grayscale leave gray images as they are. Sharpness leaves images with a side below 3 as they are.
//
// Lifetime: a program is a plain value; the runner keeps its buffers from call to call.
// Thread-safety: programs are values; one runner for each thread.
// Errors: InvalidArgument for text that is not a program, naming the column; ResourceExhausted
// beyond kMaxOperations, or when out of memory.
#ifndef SHARDPACK_AUGMENT_PROGRAM_H_
#define SHARDPACK_AUGMENT_PROGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "augment/operation.h"
#include "images/pixels/pixels.h"

namespace shardpack {

struct SampleProgram {
  static constexpr size_t kMaxOperations = 512;

  absl::InlinedVector<Operation, 8> operations;

  static absl::StatusOr<SampleProgram> Parse(std::string_view text);
  std::string ToText() const;  // empty if there are no operations
  // The operations that move pixels, alone.
  SampleProgram Warps() const;

  friend bool operator==(const SampleProgram&, const SampleProgram&) = default;
};

// Pixels that may be changed: 8 bits, interleaved, rows top to bottom.
struct EditablePixels {
  uint8_t* pixels = nullptr;
  uint32_t width = 0, height = 0;
  uint32_t channels = 3;
  size_t stride_bytes = 0;

  uint8_t* Row(uint32_t y) const { return pixels + y * stride_bytes; }
  PixelView view() const { return {pixels, width, height, channels, stride_bytes}; }
};

// Where a warp's result takes its pixels: x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5],
// in pixels from the image's upper left corner; a pixel's centre lies at .5.
std::array<double, 6> SourceOf(const Operation& warp, uint32_t width, uint32_t height);

// The label map of a warped image: each label is that of the pixel that the image takes there, and
// `ignore` outside. Rows have no gaps; the maps do not overlap. Label is uint8_t or uint16_t.
template <typename Label>
void WarpLabels(const Operation& warp, const Label* from, uint32_t width, uint32_t height,
                Label ignore, Label* to);

class ProgramRunner {
 public:
  absl::Status Apply(const SampleProgram& program, const EditablePixels& image);

 private:
  PixelBuffer copy_;
};

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_PROGRAM_H_
