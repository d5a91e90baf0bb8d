// Preprocessing of a batch in one launch: crop, antialiased resize, mirror, normalise, cast,
// layout.
//
//   const PreprocessLaunch launch{samples, 256, 3, 224, 224, ResizeFilter::kBilinear,
//                                 PixelOutput({.type = PixelType::kF16}, 3), out};
//   if (LaunchPreprocess(launch, stream) != 0) ...   // cudaError_t
//   absl::Status status = PreprocessOnHost(launch);  // the same bytes, on the CPU
//
// The box of each sample is resized to out_width x out_height as Pillow's Image.resize(size,
// resample, box) does it, bit for bit (Pillow keeps the box's edges in float): filters, weights of
// 22 bits, 8 bits between columns and rows. Numbers are those of PixelOutput. Pixels around the box
// count if the filter reaches them. An image that an EXIF orientation turns is read turned. Every
// reduction works, without additional memory. A sample without pixels (nullptr), or whose box is
// not inside them, becomes zeros.
//
// Lifetime: samples, their pixels and `out` must live until the launch has run.
// Errors: InvalidArgument from CheckPreprocess and PreprocessOnHost; LaunchPreprocess gives 1
// (cudaErrorInvalidValue) for the same, the error of the launch, or 801 (cudaErrorNotSupported) in
// a build without a CUDA toolkit.
// Units: pixels, unless a name says bytes. `out` is [count] images of output.Bytes(out_width,
// out_height), aligned at least as the type is; an alignment of 16 bytes and a width that is a
// multiple of 4 allow vector stores.
#ifndef SHARDPACK_CUDA_KERNELS_PREPROCESS_H_
#define SHARDPACK_CUDA_KERNELS_PREPROCESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "cuda/kernels/pixel_steps.h"
#include "cuda/kernels/step_source.h"
#include "images/pixels/host_device.h"
#include "images/pixels/orientation.h"
#include "images/pixels/pixel_output.h"
#include "images/pixels/pixels.h"
#include "images/resize/resize_weights.h"

namespace shardpack {

// 8-bit samples, channels interleaved, rows top to bottom; as many channels as the launch has.
struct PreprocessSample {
  const uint8_t* pixels;  // on the device, of any alignment
  uint32_t width, height;
  uint32_t stride_bytes;
  PixelBox box;
  bool mirror;  // left to right, after the resize
  // From the pixels as they lie to those that are resized, of which width, height and box are.
  Orientation turn = {};
};

SHARDPACK_HOST_DEVICE inline bool IsTurned(const PreprocessSample& sample) {
  return sample.turn.transpose || sample.turn.mirror_x || sample.turn.mirror_y;
}

struct PreprocessLaunch {
  const PreprocessSample* samples;  // on the device
  uint32_t count, channels;         // channels: 1 or 3
  uint32_t out_width, out_height;   // 1 to 65535
  ResizeFilter filter;
  PixelOutput output;
  void* out;  // on the device
  // On the device, one a sample, copied to out_labels; nullptr: none are.
  const int64_t* labels = nullptr;
  int64_t* out_labels = nullptr;
  // On the device, one a sample: what is done to its pixels before they are normalised
  // (pixel_steps.h); nullptr: nothing. Padding stays zeros.
  const PixelProgram* programs = nullptr;
  const PixelTable* pixel_tables = nullptr;  // on the device, of all programs
  // On the device, read when the launch runs: samples and labels are those that it names; labels
  // are copied if there are out_labels.
  const StepSource* source = nullptr;
};

// Checks everything but the samples.
absl::Status CheckPreprocess(const PreprocessLaunch& launch);

// All pointers are to host memory. One thread.
absl::Status PreprocessOnHost(const PreprocessLaunch& launch);

// The same by several threads, and without a resize for samples whose box has the output's size and
// lies on whole pixels: the same bytes.
absl::Status PreprocessByThreads(const PreprocessLaunch& given, int threads);
// What that is made of: copies labels, and gives each sample to one of the threads, numbered from
// 0, as a launch of its own. The first error.
using MakeSample =
    std::function<absl::Status(size_t thread, uint32_t sample, const PreprocessLaunch& one)>;
absl::Status PreprocessEach(const PreprocessLaunch& given, int threads, const MakeSample& make);
absl::Status PreprocessOne(const PreprocessLaunch& one);

// In the target //cuda/kernels:preprocess_cuda. `cuda_stream` is a cudaStream_t.
int LaunchPreprocess(const PreprocessLaunch& launch, void* cuda_stream);

// What a block of the kernel takes, and how many run on a multiprocessor of the current device.
struct PreprocessOccupancy {
  int error = 0;  // a cudaError_t
  int registers = 0, blocks = 0;
  size_t shared_bytes = 0;
};
PreprocessOccupancy MeasurePreprocess(uint32_t channels);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_PREPROCESS_H_
