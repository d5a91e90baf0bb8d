// UseCommonShape: sets the pixel options of a fixed-shape layout from images that share one shape.
//
//   absl::Status status = UseCommonShape(listing, &options.pixels);   // as --resize exact would do
//
// Sets the size that all images have when upright, so that none is resized, and, unless colors are
// given, the colors that all of them have. The listing must be probed.
//
// Thread-safety: a pure function.
// Errors: InvalidArgument, naming two images, when sizes differ.
// Units: pixels.
#ifndef SHARDPACK_CONVERTERS_LISTING_COMMON_SHAPE_H_
#define SHARDPACK_CONVERTERS_LISTING_COMMON_SHAPE_H_

#include "absl/status/status.h"
#include "converters/listing/listing.h"
#include "images/transform/transform_options.h"

namespace shardpack {

absl::Status UseCommonShape(const Listing& listing, TransformOptions* pixels);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_COMMON_SHAPE_H_
