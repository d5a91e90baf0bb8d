// PixelSums: exact sums over the pixels of any number of images, and their mean and standard
// deviation.
//
//   PixelSums sums;   // one per thread or shard
//   sums.Add(decoded->view);
//   total.Merge(sums);   // in any order: the sums are integers
//   std::array<double, 3> mean = total.Mean();   // of values 0 to 1
//
// Every pixel has the same weight, whatever its image's size. Gray counts as red, green and blue.
//
// Thread-safety: as any plain value.
// Errors: none; sums are exact up to 2.8e14 pixels (2^64 / 255^2).
// Units: 8-bit samples, divided by 255 in Mean and Deviation; the deviation is that of the
// population (numpy.std).
#ifndef SHARDPACK_IMAGES_PIXELS_PIXEL_SUMS_H_
#define SHARDPACK_IMAGES_PIXELS_PIXEL_SUMS_H_

#include <array>
#include <cstdint>

#include "images/pixels/pixels.h"

namespace shardpack {

struct PixelSums {
  uint64_t pixels = 0;
  std::array<uint64_t, 3> sum = {}, squares = {};

  // Adds 8-bit samples with 1 (gray) or 3 channels.
  void Add(const PixelView& view);
  void Merge(const PixelSums& other);
  // 0 if there are no pixels.
  std::array<double, 3> Mean() const;
  std::array<double, 3> Deviation() const;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_PIXEL_SUMS_H_
