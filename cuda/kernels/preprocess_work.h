// PreprocessWork: a launch in the form that a kernel takes as its argument.
//
//   const PreprocessWork work = MakePreprocessWork(launch);   // CheckPreprocess accepts it
//   kernel<<<TileCount(work), 256, 0, stream>>>(work);
//
// Lifetime: borrows what the launch names.
// Units: pixels; a tile is kTileWidth x kTileHeight pixels of a result.
#ifndef SHARDPACK_CUDA_KERNELS_PREPROCESS_WORK_H_
#define SHARDPACK_CUDA_KERNELS_PREPROCESS_WORK_H_

#include <cstdint>

#include "cuda/kernels/preprocess.h"
#include "cuda/kernels/preprocess_store.h"

namespace shardpack {

inline constexpr uint32_t kTileWidth = 32, kTileHeight = 128;

struct PreprocessWork {
  const PreprocessSample* samples;
  ResizeFilter filter;
  uint32_t tiles_x, tiles_y;  // of one sample
  uint32_t count;
  PreprocessStore store;
  const int64_t* labels;  // nullptr: none
  int64_t* out_labels;
  const PixelProgram* programs;  // nullptr: none
  const PixelTable* pixel_tables;
  const StepSource* source;  // nullptr: samples and labels are as above
};

SHARDPACK_HOST_DEVICE inline const PreprocessSample* SamplesOf(const PreprocessWork& work) {
  return work.source == nullptr ? work.samples : work.source->samples;
}

// nullptr: none are copied.
SHARDPACK_HOST_DEVICE inline const int64_t* LabelsOf(const PreprocessWork& work) {
  if (work.source == nullptr) return work.labels;
  return work.out_labels == nullptr ? nullptr : work.source->labels;
}

PreprocessWork MakePreprocessWork(const PreprocessLaunch& launch);

inline uint64_t TileCount(const PreprocessWork& work) {
  return uint64_t{work.tiles_x} * work.tiles_y * work.count;
}

SHARDPACK_HOST_DEVICE inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// The column of the unmirrored result that column `x` shows; the last one if `x` is after it.
SHARDPACK_HOST_DEVICE inline uint32_t ColumnOf(const PreprocessWork& work,
                                               const PreprocessSample& sample, uint32_t x) {
  x = Least(x, work.store.width - 1);
  return sample.mirror ? work.store.width - 1 - x : x;
}

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_KERNELS_PREPROCESS_WORK_H_
