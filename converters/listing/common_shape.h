// UseCommonShape: options for a layout of pixels of one shape, where the images have one already.
//
//   absl::Status status = UseCommonShape(listing, &options.pixels);   // as --resize exact would say
//
// Sets the size that all images have when they are upright, to which nothing is resized, and where
// no colors are asked for, those that all of them have.
//
// Thread-safety: a pure function.
// Errors: InvalidArgument when the images have several sizes, which names two; the listing has been
// probed.
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
