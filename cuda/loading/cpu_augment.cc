#include "cuda/loading/cpu_augment.h"

#include <algorithm>
#include <cstddef>

#include "formats/io/status_macros.h"

namespace shardpack {

CpuAugment::CpuAugment(const AugmentPlan& plan, int threads)
    : plan_(plan), workers_(static_cast<size_t>(std::max(threads, 1))) {}

absl::Status CpuAugment::Preprocess(const PreprocessLaunch& launch,
                                    std::span<const std::optional<SampleIdentity>> samples,
                                    std::span<absl::Status> why) {
  return PreprocessEach(launch, static_cast<int>(workers_.size()),
                        [&](size_t thread, uint32_t i, const PreprocessLaunch& one) {
                          why[i] = one.samples->pixels == nullptr || !samples[i]
                                       ? PreprocessOne(one)
                                       : Make(workers_[thread], one, *samples[i]);
                          return absl::OkStatus();
                        });
}

absl::Status CpuAugment::Make(Worker& worker, const PreprocessLaunch& one,
                              const SampleIdentity& sample) {
  const uint32_t width = one.out_width, height = one.out_height;
  const size_t row_bytes = size_t{width} * one.channels;
  worker.levels.resize(row_bytes * height);
  uint8_t* const levels = worker.levels.data();
  PreprocessLaunch resize = one;
  resize.output = PixelOutput({}, one.channels);
  resize.out = levels;
  RETURN_IF_ERROR(PreprocessOne(resize));
  plan_.Draw(sample, width, height, worker.program);
  RETURN_IF_ERROR(
      worker.runner.Apply(worker.program, {levels, width, height, one.channels, row_bytes}));
  for (uint32_t y = 0; y < height; ++y)
    one.output.PutRow(levels + y * row_bytes, y, width, height, one.out);
  return absl::OkStatus();
}

}  // namespace shardpack
