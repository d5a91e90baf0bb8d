#include "cuda/kernels/augment_round.h"

#include <cstring>

#include "cuda/kernels/augment_round_pixels.h"
#include "cuda/kernels/preprocess.h"
#include "cuda/kernels/preprocess_work.h"

namespace shardpack {
namespace {

template <uint32_t kChannels>
void Count(const RoundWork& work, uint64_t image) {
  RoundStatistics& statistics = work.statistics[image];
  std::memset(&statistics, 0, sizeof(statistics));
  for (uint32_t y = 0; y < work.store.height; ++y) {
    for (uint32_t x = 0; x < work.store.width; ++x) {
      CountPixel<kChannels>(
          work, image, x, y, [&](uint32_t c, uint8_t level) { ++statistics.histogram[c][level]; },
          [&](uint32_t gray) { statistics.gray += gray; });
    }
  }
}

template <uint32_t kChannels>
void AugmentAll(const RoundWork& work, uint32_t count) {
  for (uint64_t image = 0; image < count; ++image) {
    if (work.statistics != nullptr && NeedsStatistics(work.tails[image].kind)) {
      Count<kChannels>(work, image);
      for (uint32_t c = 0; c < kChannels; ++c) {
        for (uint32_t x = 0; x < 256; ++x)
          work.tables[image].of[c][x] = RoundTableLevel(work, image, c, x);
      }
    }
    for (uint32_t y = 0; y < work.store.height; ++y) {
      const WarpRow row = WarpRowOf(work.tails[image], y);
      for (uint32_t x = 0; x < work.store.width; x += 4)
        MoveFourPixels<kChannels>(work, image, x, y, row);
    }
  }
}

}  // namespace

RoundWork MakeRoundWork(const RoundLaunch& launch) {
  const PreprocessLaunch as_preprocess{
      .samples = nullptr,
      .count = launch.count,
      .channels = launch.channels,
      .out_width = launch.width,
      .out_height = launch.height,
      .filter = ResizeFilter::kBilinear,
      .output = launch.output.value_or(PixelOutput({}, launch.channels)),
      .out = launch.out};
  return {.tails = launch.tails,
          .programs = launch.programs,
          .pixel_tables = launch.pixel_tables,
          .from = launch.from,
          .statistics = launch.statistics,
          .tables = launch.tables,
          .last = launch.output.has_value(),
          .store = MakePreprocessWork(as_preprocess).store};
}

void AugmentRoundOnHost(const RoundLaunch& launch) {
  const RoundWork work = MakeRoundWork(launch);
  launch.channels == 1 ? AugmentAll<1>(work, launch.count) : AugmentAll<3>(work, launch.count);
}

}  // namespace shardpack
