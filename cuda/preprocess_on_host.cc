#include "cuda/preprocess.h"
#include "images/resize.h"

namespace shardpack {

absl::Status PreprocessOnHost(const PreprocessLaunch& launch) {
  Resizer resizer;
  const size_t bytes = launch.output.Bytes(launch.out_width, launch.out_height);
  for (uint32_t i = 0; i < launch.count; ++i) {
    const PreprocessSample& sample = launch.samples[i];
    const PixelView view{sample.pixels, sample.width, sample.height, launch.channels,
                         sample.stride_bytes};
    absl::Status resized =
        resizer.Resize(view, sample.box,
                       {.width = launch.out_width,
                        .height = launch.out_height,
                        .filter = launch.filter,
                        .mirror_x = sample.mirror},
                       launch.output, static_cast<char*>(launch.out) + i * bytes);
    if (!resized.ok()) return resized;
  }
  return absl::OkStatus();
}

}  // namespace shardpack
