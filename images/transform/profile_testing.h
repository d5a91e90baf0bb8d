// ICC profiles for tests, and JPEGs that contain them.
//
//   const Image file = WithProfile(EncodeJpeg(pixels, {}), WideRgbProfile());
//
// Errors: a Little CMS error yields an empty profile.
#ifndef SHARDPACK_IMAGES_TRANSFORM_PROFILE_TESTING_H_
#define SHARDPACK_IMAGES_TRANSFORM_PROFILE_TESTING_H_

#include "images/probe/probe_testing.h"

namespace shardpack {

Image SrgbProfile();  // Little CMS's own
// Named "Linear sRGB", and linear: its primaries alone are those of sRGB.
Image LinearSrgbProfile();
Image WideRgbProfile();  // the primaries of Adobe RGB (1998), gamma 2.2
Image GrayProfile();     // gamma 1.4
Image InkProfile();      // CMYK, by a table from CMYK to Lab

// Puts the profile into APP2 segments of at most 19,200 bytes, after the SOI.
Image WithProfile(const Image& jpeg, const Image& profile);

}  // namespace shardpack

#endif  // SHARDPACK_IMAGES_TRANSFORM_PROFILE_TESTING_H_
