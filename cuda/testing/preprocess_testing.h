// Batches to preprocess in tests: images in memory of exactly their size, at odd places and
// pitches.
//
//   const TestBatch batch = MakeTestBatch({.count = 40, .channels = 3, .seed = 7});
//   std::vector<uint8_t> out = OnHost(batch, 224, 224, ResizeFilter::kLanczos, {});
//
// Lifetime: values; samples borrow from their batch.
// Errors: a launch that is refused fails the test.
// Units: pixels.
#ifndef SHARDPACK_CUDA_TESTING_PREPROCESS_TESTING_H_
#define SHARDPACK_CUDA_TESTING_PREPROCESS_TESTING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/kernels/preprocess.h"
#include "images/codecs/decode_testing.h"

namespace shardpack {

struct TestBatchOptions {
  uint32_t count = 16, channels = 3;
  uint32_t min_side = 1, max_side = 300;
  uint32_t seed = 1;
  // Edges at multiples of 1/64, which Pillow's float holds exactly; else anywhere.
  bool coarse_boxes = true;
  bool packed = false;  // no gap between rows, and at any address
};

struct TestBatch {
  uint32_t channels = 3;
  std::vector<TestPixels> images;  // without gaps
  std::vector<std::unique_ptr<uint8_t[]>> memory;
  std::vector<uint32_t> offsets, sizes_bytes;  // of the pixels in `memory`, and its size
  std::vector<PreprocessSample> samples;
};

TestBatch MakeTestBatch(const TestBatchOptions& options);

// Adds an image, at `offset` of its memory, with `gap` bytes after each row but the last.
void AddImage(TestPixels image, const PixelBox& box, bool mirror, uint32_t offset, uint32_t gap,
              TestBatch& batch);

// The same images, each stored as it is before an EXIF orientation turns it.
TestBatch TurnedBatch(const TestBatch& batch, uint8_t exif);

PreprocessLaunch LaunchOf(const TestBatch& batch, uint32_t width, uint32_t height,
                          ResizeFilter filter, const OutputFormat& format, void* out);
std::vector<uint8_t> OnHost(const TestBatch& batch, uint32_t width, uint32_t height,
                            ResizeFilter filter, const OutputFormat& format);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_PREPROCESS_TESTING_H_
