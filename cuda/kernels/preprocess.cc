#include "cuda/kernels/preprocess.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/kernels/preprocess_tile.h"
#include "cuda/kernels/preprocess_work.h"
#include "cuda/kernels/run_on_threads.h"

namespace shardpack {
namespace {

// A block of one thread.
struct OneThread {
  template <typename F>
  void Spread(uint32_t count, const F& f) const {
    for (uint32_t i = 0; i < count; ++i) f(i);
  }
  template <typename F>
  void SpreadRows(uint32_t rows, uint32_t columns, const F& f) const {
    for (uint32_t y = 0; y < rows; ++y) {
      for (uint32_t x = 0; x < columns; ++x) f(y, x);
    }
  }
  void Wait() const {}
};

template <uint32_t kChannels>
void MakeTiles(const PreprocessWork& work) {
  const auto memory = std::make_unique<TileMemory>();
  for (uint64_t i = 0; i < TileCount(work); ++i) {
    PreprocessTile<kChannels>(work, i, *memory, OneThread());
  }
}

// Then no filter changes a pixel: at this scale its weights are 1 and zeros.
bool NeedsNoResize(const PreprocessSample& sample, const PreprocessLaunch& launch) {
  const PixelBox& box = sample.box;
  return sample.pixels != nullptr && !IsTurned(sample) &&
         box.IsInside(sample.width, sample.height) && box.left == std::floor(box.left) &&
         box.top == std::floor(box.top) && box.right - box.left == launch.out_width &&
         box.bottom - box.top == launch.out_height;
}

void Convert(const PreprocessSample& sample, const PreprocessLaunch& launch) {
  const size_t channels = launch.channels, row_bytes = launch.out_width * channels;
  const uint8_t* row = sample.pixels + static_cast<size_t>(sample.box.top) * sample.stride_bytes +
                       static_cast<size_t>(sample.box.left) * channels;
  std::vector<uint8_t> mirrored(sample.mirror ? row_bytes : 0);
  for (uint32_t y = 0; y < launch.out_height; ++y, row += sample.stride_bytes) {
    for (size_t x = 0; x < mirrored.size(); x += channels) {
      std::copy_n(row + row_bytes - channels - x, channels, mirrored.data() + x);
    }
    launch.output.PutRow(sample.mirror ? mirrored.data() : row, y, launch.out_width,
                         launch.out_height, launch.out);
  }
}

}  // namespace

absl::Status CheckPreprocess(const PreprocessLaunch& launch) {
  if (launch.channels != launch.output.channels() ||
      (launch.channels != 1 && launch.channels != 3)) {
    return absl::InvalidArgumentError("preprocess: channels are 1 or 3, and the output's");
  }
  if (launch.out_width == 0 || launch.out_height == 0 || launch.out_width > kMaxResize ||
      launch.out_height > kMaxResize) {
    return absl::InvalidArgumentError("preprocess: width and height are 1 to 65535");
  }
  const bool has_samples = launch.samples != nullptr || launch.source != nullptr;
  if (launch.count != 0 && (!has_samples || launch.out == nullptr)) {
    return absl::InvalidArgumentError("preprocess: no samples or no output");
  }
  const OutputFormat& format = launch.output.format();
  if (reinterpret_cast<uintptr_t>(launch.out) % BytesOf(format.type) != 0) {
    return absl::InvalidArgumentError("preprocess: the output is not aligned for its type");
  }
  for (uint32_t c = 0; format.type != PixelType::kU8 && c < launch.channels; ++c) {
    if (!std::isfinite(format.mean[c]) || !std::isfinite(format.std[c]) || format.std[c] <= 0) {
      return absl::InvalidArgumentError("preprocess: mean and std are finite, std is above 0");
    }
  }
  return absl::OkStatus();
}

PreprocessWork MakePreprocessWork(const PreprocessLaunch& launch) {
  const OutputFormat& format = launch.output.format();
  PreprocessWork work = {};
  work.samples = launch.samples;
  work.filter = launch.filter;
  work.tiles_x = (launch.out_width + kTileWidth - 1) / kTileWidth;
  work.tiles_y = (launch.out_height + kTileHeight - 1) / kTileHeight;
  work.count = launch.count;
  work.labels = launch.labels;
  work.out_labels = launch.out_labels;
  work.programs = launch.programs;
  work.pixel_tables = launch.pixel_tables;
  work.source = launch.source;
  PreprocessStore& store = work.store;
  store.out = static_cast<uint8_t*>(launch.out);
  store.width = launch.out_width;
  store.height = launch.out_height;
  store.type = format.type;
  store.layout = format.layout;
  store.vectors = launch.out_width % 4 == 0 &&
                  reinterpret_cast<uintptr_t>(launch.out) % (4 * BytesOf(format.type)) == 0;
  const uint64_t row_bytes = uint64_t{launch.out_width} * launch.channels * BytesOf(format.type);
  store.lines = format.layout == PixelLayout::kNhwc && row_bytes % kLineBytes == 0 &&
                reinterpret_cast<uintptr_t>(launch.out) % kLineBytes == 0;
  for (uint32_t c = 0; c < 3; ++c) {
    store.scale[c] = MakeChannelScale(format.mean[c], format.std[c]);
  }
  return work;
}

absl::Status PreprocessOnHost(const PreprocessLaunch& launch) {
  if (auto status = CheckPreprocess(launch); !status.ok()) return status;
  const PreprocessWork work = MakePreprocessWork(launch);
  for (uint32_t i = 0; i < launch.count; ++i) {
    const PreprocessSample& sample = SamplesOf(work)[i];
    if (sample.pixels != nullptr && !sample.box.IsInside(sample.width, sample.height)) {
      return absl::InvalidArgumentError(
          absl::StrCat("preprocess: sample ", i, ": the box is not inside the pixels"));
    }
  }
  launch.channels == 1 ? MakeTiles<1>(work) : MakeTiles<3>(work);
  return absl::OkStatus();
}

absl::Status PreprocessEach(const PreprocessLaunch& given, int threads, const MakeSample& make) {
  if (auto status = CheckPreprocess(given); !status.ok()) return status;
  PreprocessLaunch launch = given;
  const PreprocessWork work = MakePreprocessWork(given);
  launch.samples = SamplesOf(work);
  launch.labels = LabelsOf(work);
  launch.source = nullptr;
  const size_t out_bytes = launch.output.Bytes(launch.out_width, launch.out_height);
  std::atomic<uint32_t> next{0};
  std::mutex mutex;
  absl::Status first;
  RunOnThreads(static_cast<size_t>(std::max(threads, 1)), [&](size_t thread) {
    for (uint32_t i; (i = next.fetch_add(1)) < launch.count;) {
      PreprocessLaunch one = launch;
      one.samples = launch.samples + i;
      one.count = 1;
      one.out = static_cast<uint8_t*>(launch.out) + i * out_bytes;
      if (launch.labels != nullptr) {
        launch.out_labels[i] = launch.labels[i];
        one.labels = nullptr;
      }
      if (launch.programs != nullptr) one.programs = launch.programs + i;
      const absl::Status made = make(thread, i, one);
      if (made.ok()) continue;
      const std::lock_guard lock(mutex);
      first.Update(made);
    }
  });
  return first;
}

absl::Status PreprocessOne(const PreprocessLaunch& one) {
  if (one.programs != nullptr || !NeedsNoResize(*one.samples, one)) return PreprocessOnHost(one);
  Convert(*one.samples, one);
  return absl::OkStatus();
}

absl::Status PreprocessByThreads(const PreprocessLaunch& given, int threads) {
  return PreprocessEach(given, threads, [](size_t, uint32_t, const PreprocessLaunch& one) {
    return PreprocessOne(one);
  });
}

}  // namespace shardpack
