// FirstChangedInput: an input that is not as it was when a dataset was packed, for a message that
// says that some are.
//
//   std::string line = FirstChangedInput("OUT", manifest, plan.listing());   // "dog/7.jpg has 9 bytes, 8 were packed"
//
// Told by the dataset's indexes: paths, classes and, where pixels were kept, sizes.
//
// Thread-safety: pure but for reading.
// Errors: "" where no input is found, and where the indexes cannot be read.
#ifndef SHARDPACK_CONVERTERS_PUBLISHING_CHANGED_INPUTS_H_
#define SHARDPACK_CONVERTERS_PUBLISHING_CHANGED_INPUTS_H_

#include <string>

#include "converters/listing/listing.h"
#include "formats/core/manifest.h"

namespace shardpack {

std::string FirstChangedInput(const std::string& dataset, const Manifest& manifest,
                              const Listing& now);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_PUBLISHING_CHANGED_INPUTS_H_
