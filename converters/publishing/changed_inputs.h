// FirstChangedInput: names one input that changed since a dataset was packed, for a message that
// says that some did.
//
//   std::string line = FirstChangedInput("OUT", manifest, plan.listing());
//   // "dog/7.jpg has 9 bytes, 8 were packed"
//
// Compares with the dataset's indexes: paths, classes and, where pixels were kept, sizes.
//
// Thread-safety: pure except for reading.
// Errors: "" if no input is found, or the indexes cannot be read.
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
