// NearestPixels: which pixels of a label map a result takes: columns and rows.
//
//   NearestPixels nearest;
//   ChooseNearest(options.crop, map_width, map_height, crop, /*same_size=*/true,
//                 /*legacy=*/false, nearest);
//   out[y * width + x] = map[nearest.rows[y] * map_width + nearest.columns[x]];
//
// That of each pixel's centre, or with `legacy` of its left and upper edge, rounded as torchvision
// does (label_pipeline.h). A flip of the crop is left to the caller: columns and rows ascend.
//
// Lifetime: plain values; the vectors keep their memory from call to call.
// Thread-safety: a pure function.
// Errors: none: the map is not empty.
// Units: pixels.
#ifndef SHARDPACK_IMAGES_AUGMENT_NEAREST_PIXELS_H_
#define SHARDPACK_IMAGES_AUGMENT_NEAREST_PIXELS_H_

#include <cstdint>
#include <vector>

#include "images/augment/crop.h"
#include "images/pixels/pixels.h"

namespace shardpack {

struct NearestPixels {
  std::vector<uint32_t> columns, rows;  // of the map, for each of the result
};

// `crop` is of the map (SharedCrop). `same_size`: the map has the size of its image, and not just
// its shape, so that a centre crop is exactly the image's.
void ChooseNearest(const CropOptions& wanted, uint32_t width, uint32_t height, const Crop& crop,
                   bool same_size, bool legacy, NearestPixels& nearest);

// The part of a map that has these columns, in any order, and rows, from the top down.
PixelRegion RegionOf(const std::vector<uint32_t>& columns, const std::vector<uint32_t>& rows);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_AUGMENT_NEAREST_PIXELS_H_
