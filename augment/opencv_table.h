// OpenCvFunctions: the table of functions between augment/opencv_functions.h and the library that
// links OpenCV.
//
//   const char* why = functions.median({pixels, 224, 224, 3, 672}, 5);   // nullptr: done
//
// All work in place, on 1 or 3 channels.
//
// Thread-safety: any thread.
// Errors: a text, valid until the thread's next call; nullptr: none.
// Units: pixels.
#ifndef SHARDPACK_AUGMENT_OPENCV_TABLE_H_
#define SHARDPACK_AUGMENT_OPENCV_TABLE_H_

#include <cstddef>
#include <cstdint>

namespace shardpack {

// Of C, since a library that others have built may be opened. A change of anything here is another
// name of the entry.
struct OpenCvPixels {
  uint8_t* pixels;
  uint32_t width, height, channels;
  size_t stride_bytes;
};
struct OpenCvFunctions {
  const char* version;  // "4.6.0"
  const char* (*gaussian_blur)(OpenCvPixels image, uint32_t kernel, double sigma);
  const char* (*median)(OpenCvPixels image, uint32_t kernel);
  // Of the luma; the colours keep their distance from it.
  const char* (*clahe)(OpenCvPixels image, double clip, uint32_t tiles);
  // cv::setNumThreads(0): OpenCV starts no threads beside those of a loader, in all of the process.
  void (*no_threads)();
};
inline constexpr char kOpenCvEntry[] = "shardpack_opencv_v1";  // returns the table
inline constexpr char kOpenCvLibrary[] = "libshardpack_opencv.so.0";

}  // namespace shardpack

#endif  // SHARDPACK_AUGMENT_OPENCV_TABLE_H_
