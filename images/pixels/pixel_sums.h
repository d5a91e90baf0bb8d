// PixelSums: exact sums over the pixels of any number of images, and the mean and the standard
// deviation that follow from them.
//
//   PixelSums sums;   // one a thread or a shard
//   sums.Add(decoded->view);
//   total.Merge(sums);   // in any order: integers
//   std::array<double, 3> mean = total.Mean();   // of values 0 to 1
//
// Every pixel counts the same, whatever its image's size. Gray counts as red, green and blue.
//
// Thread-safety: as any value.
// Errors: none; sums are exact up to 2.8e14 pixels (2^64 / 255^2).
// Units: samples of 8 bits, divided by 255 in Mean and Deviation; the deviation is that of the
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

  // Of 8-bit samples, 1 (gray) or 3 channels.
  void Add(const PixelView& view);
  void Merge(const PixelSums& other);
  // 0 without pixels.
  std::array<double, 3> Mean() const;
  std::array<double, 3> Deviation() const;
};

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_PIXELS_PIXEL_SUMS_H_
