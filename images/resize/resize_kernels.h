// The two passes of a resize over rows of 8-bit samples, in variants for different processors.
//
//   const ResizeKernels& kernels = BestResizeKernels();
//   kernels.columns(rows, 4, 3, table, outs);
//   kernels.rows(rows, table, y, size_bytes, out);
//
// All variants produce the same bytes.
//
// Units: bytes. `columns` may read up to kRowSlackBytes past the last tap of a row, and write as
// many past each output row.
#ifndef SHARDPACK_IMAGES_RESIZE_RESIZE_KERNELS_H_
#define SHARDPACK_IMAGES_RESIZE_RESIZE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "images/resize/resize_table.h"

namespace shardpack {

struct ResizeKernels {
  // The number of rows that `columns` processes per call.
  static constexpr uint32_t kRowsAtOnce = 4;
  static constexpr size_t kRowSlackBytes = 32;

  const char* name;
  // Resizes four rows of `channels` samples per pixel horizontally; the rows may be identical.
  void (*columns)(const uint8_t* const* rows, uint32_t channels, const ResizeTable& table,
                  uint8_t* const* outs);
  // Output row `y` of the table: the weighted sum of table.inside(y) rows. If that number is odd,
  // one more row must be readable.
  void (*rows)(const uint8_t* const* rows, const ResizeTable& table, uint32_t y, size_t size_bytes,
               uint8_t* out);
};

const ResizeKernels& PortableResizeKernels();
// The fastest variant that this processor supports.
const ResizeKernels& BestResizeKernels();

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_RESIZE_RESIZE_KERNELS_H_
