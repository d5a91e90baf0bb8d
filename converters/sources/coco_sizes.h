// WarnAboutSizes: compares the images, as displayed, with the sizes that a COCO file gives, and
// finds boxes outside of them: resized images often keep their old annotations, and those of images
// that an EXIF orientation turns may have been made of what is stored.
//
//   WarnAboutSizes(root, coco, image_of_row, pool, listing);   // adds to listing.warnings
//
// Reads the header of each image whose size the file gives, and ignores one that it cannot read or
// that shows no size: packing reports those. Internal to CocoSource.
//
// Thread-safety: one caller; uses all threads of the pool.
#ifndef SHARDPACK_CONVERTERS_SOURCES_COCO_SIZES_H_
#define SHARDPACK_CONVERTERS_SOURCES_COCO_SIZES_H_

#include <cstddef>
#include <span>

#include "converters/listing/listing.h"
#include "converters/sources/coco_json.h"
#include "converters/threads/io_pool.h"

namespace shardpack {

// `root` is an open folder; `image_of_row` gives each row's index in coco.images.
void WarnAboutSizes(int root, const CocoFile& coco, std::span<const size_t> image_of_row,
                    IoPool& pool, Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_SOURCES_COCO_SIZES_H_
