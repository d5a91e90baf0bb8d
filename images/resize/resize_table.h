// ResizeTable: the fixed-point weights of one axis, for all output pixels.
//
//   ResizeTable table;
//   table.Build(MakeResizeAxis(filter, left, right, in_width, out_width), out_width, mirror);
//   const int16_t* weights = table.weights(i);   // table.taps() of them, from table.first(i)
//
// Weights have table.shift() fractional bits, as many as fit into 16 bits, and sum to exactly one,
// so that uniform areas keep their value. All output pixels have the same number of taps, a
// multiple of four; unneeded taps have weight zero and may lie past the last input pixel.
//
// Lifetime: a reusable value; Build replaces its content.
// Thread-safety: const calls from any thread.
// Errors: as std::vector.
// Units: pixels.
#ifndef SHARDPACK_IMAGES_RESIZE_RESIZE_TABLE_H_
#define SHARDPACK_IMAGES_RESIZE_RESIZE_TABLE_H_

#include <cstdint>
#include <vector>

#include "images/resize/resize_weights.h"

namespace shardpack {

class ResizeTable {
 public:
  static constexpr int kFineShift = 7;

  // The approximate memory that Build takes; the table keeps a part of it.
  static uint64_t Bytes(const ResizeAxis& axis, uint32_t out_size);
  // With `mirror`, the last output pixel comes first.
  void Build(const ResizeAxis& axis, uint32_t out_size, bool mirror);

  uint32_t size() const { return static_cast<uint32_t>(first_.size()); }
  uint32_t taps() const { return taps_; }
  int shift() const { return shift_; }
  uint32_t first(uint32_t i) const { return first_[i]; }
  // The number of taps that lie inside the input.
  uint32_t inside(uint32_t i) const { return count_[i]; }
  const int16_t* weights(uint32_t i) const { return weights_.data() + size_t{i} * taps_; }
  bool has_fine() const { return !fine_.empty(); }
  // nullptr if there are none.
  const int16_t* fine(uint32_t i) const {
    return fine_.empty() ? nullptr : fine_.data() + size_t{i} * taps_;
  }
  // The range of input pixels that any output pixel needs.
  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }

 private:
  std::vector<uint32_t> first_, count_;
  std::vector<int16_t> weights_, fine_;
  uint32_t taps_ = 0, begin_ = 0, end_ = 0;
  int shift_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_RESIZE_RESIZE_TABLE_H_
