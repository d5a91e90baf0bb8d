// Preprocess: crop, antialiased resize, mirror, normalise and cast of a batch of images at once.
//
//   PreprocessLaunch launch{.samples = samples, .count = 256, .channels = 3, .out_width = 224,
//                           .out_height = 224, .output = output, .out = tensor};
//   absl::Status status = PreprocessOnHost(launch);
//
// Lifetime: all pointers are borrowed until the work is done. Thread-safety: pure. Errors:
// InvalidArgument for a box outside its image. Units: pixels; bytes in names.
#ifndef SHARDPACK_CUDA_PREPROCESS_H_
#define SHARDPACK_CUDA_PREPROCESS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "images/pixel_output.h"
#include "images/pixels.h"
#include "images/resize_weights.h"

namespace shardpack {

// 8-bit pixels, channels interleaved; the number of channels is the launch's.
struct PreprocessSample {
  const uint8_t* pixels;
  uint32_t width, height;
  uint32_t stride_bytes;
  PixelBox box;
  bool mirror;
};

struct PreprocessLaunch {
  const PreprocessSample* samples;  // where `pixels` lie: on the device
  uint32_t count, channels, out_width, out_height;
  ResizeFilter filter;
  PixelOutput output;
  void* out;
};

// The same maths on the CPU; all pointers are readable by the host.
absl::Status PreprocessOnHost(const PreprocessLaunch& launch);
// A cudaError_t; only where the kernel is linked.
int LaunchPreprocess(const PreprocessLaunch& launch, void* cuda_stream);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_PREPROCESS_H_
