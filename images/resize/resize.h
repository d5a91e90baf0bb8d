// Resizer: antialiased resizing of a box of 8-bit pixels into the caller's memory, with mirroring.
//
//   Resizer resizer;                                                    // one per thread
//   const PixelOutput output({.type = PixelType::kU8}, 3);
//   absl::Status status = resizer.Resize(image.view, image.box, {.width = 224, .height = 224},
//                                        output, batch_slot);
//
// The filter and its two passes (columns, then rows, with 8 bits in between) match Pillow's
// Image.resize(size, resample, box), but with 16-bit weights instead of 22: values differ by at
// most 1. As in Pillow, the filter also uses pixels of the view around the box; to crop first, pass
// a view of only the box. Every processor produces the same bytes.
//
// Lifetime: nothing is borrowed after the call.
// Thread-safety: one thread at a time.
// Errors: InvalidArgument for a box that is empty or not inside the view, sizes of 0 or above
// 65,535, or channels other than the output's; ResourceExhausted when out of memory, or if more
// than 1 GiB would be needed in addition to the result.
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
#include "images/resize/resize_table_cache.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

struct ResizeOptions {
  uint32_t width = 0, height = 0;  // of the result
  ResizeFilter filter = ResizeFilter::kBilinear;
  // Swaps rows and columns, then mirrors the result, as in images/pixels/orientation.h.
  bool transpose = false;
  bool mirror_x = false, mirror_y = false;
};

class Resizer {
 public:
  explicit Resizer(const ResizeKernels& kernels = BestResizeKernels()) : kernels_(&kernels) {}

  // `out` must have room for output.Bytes(options.width, options.height).
  absl::Status Resize(const PixelView& view, const PixelBox& box, const ResizeOptions& options,
                      const PixelOutput& output, void* out);

 private:
  size_t EdgeRowBytes(const PixelView& view) const;
  // Resizes the input rows up to `end` to the result's width.
  void NarrowRows(const PixelView& view, uint32_t end);
  // The i-th row of the result, in the order in which their input rows are needed.
  uint32_t RowAt(uint32_t i) const { return rows_mirrored_ ? rows_->size() - 1 - i : i; }
  absl::Status PutRows(const PixelView& view, const PixelOutput& output, void* out);
  absl::Status PutTransposed(const PixelView& view, const PixelOutput& output, void* out);
  // To be called in the order of RowAt.
  void MakeRow(const PixelView& view, uint32_t y, size_t size_bytes, uint8_t* to);

  const ResizeKernels* kernels_;
  ResizeTableCache column_tables_, row_tables_;
  const ResizeTable *columns_ = nullptr, *rows_ = nullptr;  // of the current call
  std::vector<const uint8_t*> taps_;
  bool rows_mirrored_ = false;
  // A ring of narrowed rows that results still need; next_row_ is the next one to narrow.
  uint32_t narrow_rows_ = 0, next_row_ = 0;
  size_t narrow_stride_bytes_ = 0;
  PixelBuffer narrow_, edge_, row_, turned_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_RESIZE_RESIZE_H_
