// ResizeTableCache: keeps tables, since images of few sizes need the same ones again and again.
//
//   ResizeTableCache cache;                                  // one per thread and axis
//   const ResizeTable& table = cache.Get(MakeResizeAxis(...), out_size, mirror);
//
// Building the two tables of a small image takes longer than decoding it. A cache takes 3 MB at
// most, and a large table.
//
// Lifetime: a table is valid until the next call of Get.
// Thread-safety: one thread at a time.
// Errors: as std::vector.
#ifndef SHARDPACK_IMAGES_RESIZE_RESIZE_TABLE_CACHE_H_
#define SHARDPACK_IMAGES_RESIZE_RESIZE_TABLE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "images/resize/resize_table.h"

namespace shardpack {

class ResizeTableCache {
 public:
  static constexpr size_t kPlaces = 64;
  // Larger tables are built each time; they are a small part of the work that needs them.
  static constexpr uint64_t kMaxKeptBytes = 32 << 10;

  const ResizeTable& Get(const ResizeAxis& axis, uint32_t out_size, bool mirror);

 private:
  struct Place {
    ResizeAxis axis;
    uint32_t out_size = 0;  // 0: empty
    bool mirror = false;
    ResizeTable table;
  };

  std::vector<Place> places_;
  ResizeTable large_;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_RESIZE_RESIZE_TABLE_CACHE_H_
