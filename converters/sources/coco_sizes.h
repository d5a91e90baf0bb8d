// WarnAboutSizes: what a COCO file says of its images' sizes, and boxes that lie outside of them,
// compared with the pictures: who resizes images may forget the annotations.
//
//   WarnAboutSizes(root, coco, image_of_row, pool, listing);   // adds to listing.warnings
//
// Reads the head of each image whose size the file gives; one that cannot be read there, or says
// nothing, is passed over: packing it tells why.
//
// Thread-safety: one caller; uses all threads of the pool. Internal to CocoSource.
#ifndef SHARDPACK_CONVERTERS_SOURCES_COCO_SIZES_H_
#define SHARDPACK_CONVERTERS_SOURCES_COCO_SIZES_H_

#include <cstddef>
#include <span>

#include "converters/listing/listing.h"
#include "converters/sources/coco_json.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

// `root` is an open folder; `image_of_row` has a position in coco.images for each row.
void WarnAboutSizes(int root, const CocoFile& coco, std::span<const size_t> image_of_row,
                    IoPool& pool, Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_COCO_SIZES_H_
