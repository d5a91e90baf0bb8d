// The two passes of a resize over rows of 8-bit samples, in the forms that processors have.
//
//   const ResizeKernels& kernels = BestResizeKernels();
//   kernels.columns(rows, 4, 3, table, outs);
//   kernels.rows(rows, table, y, size_bytes, out);
//
// All forms give the same bytes.
//
// Units: bytes. `columns` may read up to kRowSlackBytes behind the last tap of a row and write as
// many behind each output row.
#ifndef SHARDPACK_IMAGES_RESIZE_RESIZE_KERNELS_H_
#define SHARDPACK_IMAGES_RESIZE_RESIZE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "images/resize/resize_table.h"

namespace shardpack {

struct ResizeKernels {
  // How many rows `columns` takes at once.
  static constexpr uint32_t kRowsAtOnce = 4;
  static constexpr size_t kRowSlackBytes = 32;

  const char* name;
  // Narrows or widens four rows of `channels` samples a pixel; rows may be the same one.
  void (*columns)(const uint8_t* const* rows, uint32_t channels, const ResizeTable& table,
                  uint8_t* const* outs);
  // Output row `y` of the table: the weighted sum of table.inside(y) rows. There is one more row
  // to read when their number is odd.
  void (*rows)(const uint8_t* const* rows, const ResizeTable& table, uint32_t y, size_t size_bytes,
               uint8_t* out);
};

const ResizeKernels& PortableResizeKernels();
// The fastest that this processor can run.
const ResizeKernels& BestResizeKernels();

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_RESIZE_RESIZE_KERNELS_H_
