// Resizer: antialiased resizing of a box of 8-bit pixels into the caller's memory, with mirroring.
//
//   Resizer resizer;                                                    // one a thread
//   const PixelOutput output({.type = PixelType::kU8}, 3);
//   absl::Status status = resizer.Resize(image.view, image.box, {.width = 224, .height = 224},
//                                        output, batch_slot);
//
// The filter and its two passes (columns, then rows, 8 bits between them) are those of Pillow's
// Image.resize(size, resample, box), with weights of 16 bits instead of 22: values differ by at
// most 1. As there, pixels of the view around the box take part where the filter reaches them; to
// cut first, give a view of the box alone. Every processor gives the same bytes.
//
// Lifetime: nothing is borrowed after the call.
// Thread-safety: one thread at a time.
// Errors: InvalidArgument for a box that is empty or not inside the view, sizes of 0 or above
// 65,535, or other channels than the output's; ResourceExhausted without memory, or where more than
// 1 GiB of it would be needed besides the result.
// Units: pixels.
#ifndef SHARDPACK_IMAGES_RESIZE_RESIZE_H_
#define SHARDPACK_IMAGES_RESIZE_RESIZE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "images/pixels/pixel_output.h"
#include "images/pixels/pixels.h"
#include "images/resize/resize_kernels.h"
#include "images/resize/resize_table.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

struct ResizeOptions {
  uint32_t width = 0, height = 0;  // of the result
  ResizeFilter filter = ResizeFilter::kBilinear;
  // Rows become columns; then the result is mirrored, as images/pixels/orientation.h has it.
  bool transpose = false;
  bool mirror_x = false, mirror_y = false;
};

class Resizer {
 public:
  explicit Resizer(const ResizeKernels& kernels = BestResizeKernels()) : kernels_(&kernels) {}

  // `out` has room for output.Bytes(options.width, options.height).
  absl::Status Resize(const PixelView& view, const PixelBox& box, const ResizeOptions& options,
                      const PixelOutput& output, void* out);

 private:
  size_t EdgeRowBytes(const PixelView& view) const;
  // Input rows up to `end`, at the result's width.
  void NarrowRows(const PixelView& view, uint32_t end);
  // The rows of the result in the order in which they need the input's: i-th of them.
  uint32_t RowAt(uint32_t i) const { return rows_mirrored_ ? rows_.size() - 1 - i : i; }
  absl::Status PutRows(const PixelView& view, const PixelOutput& output, void* out);
  absl::Status PutTransposed(const PixelView& view, const PixelOutput& output, void* out);
  // In the order of RowAt.
  void MakeRow(const PixelView& view, uint32_t y, size_t size_bytes, uint8_t* to);

  const ResizeKernels* kernels_;
  ResizeTable columns_, rows_;
  std::vector<const uint8_t*> taps_;
  bool rows_mirrored_ = false;
  // A ring of the narrowed rows that results still need; the next one to narrow.
  uint32_t narrow_rows_ = 0, next_row_ = 0;
  size_t narrow_stride_bytes_ = 0;
  PixelBuffer narrow_, edge_, row_, turned_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_RESIZE_RESIZE_H_
