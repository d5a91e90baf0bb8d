// OpenCvFunctions: what operations take from OpenCV, as a table, so that nothing here links OpenCV.
//
//   absl::StatusOr<const OpenCvFunctions*> opencv = OpenCv();
//   if (opencv.ok()) status = (*opencv)->median({pixels, 224, 224, 3, 672}, 5);
//
// A program that links //augment/opencv has the table. In any other, the first call opens
// libshardpack_opencv.so.0: the file beside the one that contains this code, else the one that the
// system's loader finds.
//
// Lifetime: the table and the library stay.
// Thread-safety: any thread.
// Errors: FailedPrecondition where OpenCV is missing, saying what to install.
#ifndef SHARDPACK_AUGMENT_OPENCV_FUNCTIONS_H_
#define SHARDPACK_AUGMENT_OPENCV_FUNCTIONS_H_

#include <string>

#include "absl/status/statusor.h"
#include "augment/opencv_table.h"

namespace shardpack {

// The first call also makes OpenCV start no threads, unless KeepOpenCvThreads was called before.
absl::StatusOr<const OpenCvFunctions*> OpenCv();
void KeepOpenCvThreads();

// What //augment/opencv calls before main.
bool UseOpenCv(const OpenCvFunctions* functions);
// For tests: opens a library by its path, and changes nothing.
absl::StatusOr<const OpenCvFunctions*> OpenOpenCv(const std::string& path);

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_OPENCV_FUNCTIONS_H_
