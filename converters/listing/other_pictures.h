// OtherPictures: files that are images of kinds which pack does not take (AVIF, HEIC, JPEG XL, raw
// files of cameras). They are left out by their extension, and must not be lost without a word.
//
//   if (IsOtherPicture("avif")) ...
//   WarnOfOtherPictures(listing);   // a warning that counts them
//
// Thread-safety: any thread.
#ifndef SHARDPACK_CONVERTERS_LISTING_OTHER_PICTURES_H_
#define SHARDPACK_CONVERTERS_LISTING_OTHER_PICTURES_H_

#include <string_view>

#include "converters/listing/listing.h"

namespace shardpack {

// `extension`: as NameExtension gives it.
bool IsOtherPicture(std::string_view extension);

// Looks at what the listing has ignored.
void WarnOfOtherPictures(Listing& listing);

}  // namespace shardpack

#endif  // SHARDPACK_CONVERTERS_LISTING_OTHER_PICTURES_H_
