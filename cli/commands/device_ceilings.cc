#include "cli/commands/device_ceilings.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cli/terminal/seconds_since.h"
#include "cuda/loading/pinned_memory.h"
#include "cuda/loading/resident_loader.h"
#include "formats/io/status_macros.h"

namespace shardpack::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kDeviceSeconds = 0.5;
constexpr size_t kDeviceCopyBytes = size_t{16} << 20;

// A stream and memory, freed also on errors.
class Bench {
 public:
  explicit Bench(Device& device) : device_(device) {}
  ~Bench() {
    if (stream_) {
      (void)device_.Synchronize(*stream_);
      (void)device_.DestroyStream(*stream_);
    }
    for (void* memory : memory_) (void)device_.Free(memory);
  }

  absl::Status Open() {
    ASSIGN_OR_RETURN(stream_, device_.CreateStream());
    return absl::OkStatus();
  }
  absl::StatusOr<uint8_t*> Allocate(size_t bytes) {
    ASSIGN_OR_RETURN(void* const memory, device_.Allocate(bytes, "the measurement"));
    memory_.push_back(memory);
    return static_cast<uint8_t*>(memory);
  }
  absl::Status Wait() { return device_.Synchronize(*stream_); }
  // Calls per second: one call to warm up, then half a second with a few calls enqueued at once.
  absl::StatusOr<double> Rate(const std::function<absl::Status()>& enqueue) {
    constexpr int kAtOnce = 4;
    absl::Status status = enqueue();
    if (status.ok()) status = Wait();
    int times = 0;
    const Clock::time_point start = Clock::now();
    while (status.ok() && SecondsSince(start) < kDeviceSeconds) {
      for (int i = 0; i < kAtOnce && status.ok(); ++i, ++times) status = enqueue();
      if (status.ok()) status = Wait();
    }
    if (!status.ok()) return status;
    return times / SecondsSince(start);
  }
  Stream stream() const { return *stream_; }

 private:
  Device& device_;
  std::optional<Stream> stream_;
  std::vector<void*> memory_;
};

}  // namespace

absl::StatusOr<double> PinnedCopyCeiling(Device& device) {
  PinnedMemory memory(device);
  ASSIGN_OR_RETURN(std::span<std::byte> host, memory.Allocate(kDeviceCopyBytes));
  absl::StatusOr<double> rate;
  {
    Bench bench(device);
    absl::Status opened = bench.Open();
    absl::StatusOr<uint8_t*> to = opened.ok() ? bench.Allocate(kDeviceCopyBytes) : opened;
    rate = !to.ok() ? to.status() : bench.Rate([&] {
      return device.CopyToDevice(*to, host.data(), kDeviceCopyBytes, bench.stream());
    });
  }
  memory.Free(host);
  if (!rate.ok()) return rate;
  return *rate * static_cast<double>(kDeviceCopyBytes);
}

absl::StatusOr<KernelCeiling> PreprocessCeiling(Device& device, uint32_t side, PixelLayout layout) {
  constexpr uint32_t kImages = 256, kWidth = 500, kHeight = 375, kChannels = 3;
  constexpr size_t kImageBytes = size_t{kWidth} * kHeight * kChannels;
  const PixelOutput output({.type = PixelType::kF16, .layout = layout}, kChannels);
  const size_t in_bytes = kImages * kImageBytes, out_bytes = kImages * output.Bytes(side, side);
  Bench bench(device);
  RETURN_IF_ERROR(bench.Open());
  ASSIGN_OR_RETURN(uint8_t * in, bench.Allocate(in_bytes));
  ASSIGN_OR_RETURN(uint8_t * out, bench.Allocate(std::max(in_bytes, out_bytes)));
  ASSIGN_OR_RETURN(uint8_t * parameters, bench.Allocate(kImages * sizeof(PreprocessSample)));
  std::vector<PreprocessSample> samples;
  for (uint32_t i = 0; i < kImages; ++i) {
    samples.push_back({.pixels = in + i * kImageBytes,
                       .width = kWidth,
                       .height = kHeight,
                       .stride_bytes = kWidth * kChannels,
                       .box = {0, 0, kWidth, kHeight},
                       .mirror = i % 2 == 0});
  }
  absl::Status put = device.Fill(in, 77, in_bytes, bench.stream());
  if (put.ok()) {
    put = device.CopyToDevice(parameters, samples.data(), samples.size() * sizeof(samples[0]),
                              bench.stream());
  }
  if (put.ok()) put = bench.Wait();
  if (!put.ok()) return put;
  const PreprocessLaunch launch = {.samples = reinterpret_cast<const PreprocessSample*>(parameters),
                                   .count = kImages,
                                   .channels = kChannels,
                                   .out_width = side,
                                   .out_height = side,
                                   .filter = ResizeFilter::kBilinear,
                                   .output = output,
                                   .out = out};
  ASSIGN_OR_RETURN(const double launches,
                   bench.Rate([&] { return device.Preprocess(launch, bench.stream()); }));
  ASSIGN_OR_RETURN(const double copies, bench.Rate([&] {
    return device.CopyWithin(out, in, in_bytes, bench.stream());
  }));
  const double copied = copies * 2 * static_cast<double>(in_bytes);
  return KernelCeiling{.images = launches * kImages,
                       .of_copy = launches * static_cast<double>(in_bytes + out_bytes) / copied};
}

absl::StatusOr<DecodeCeilings> DeviceDecodeCeiling(Device& device, Loader& loader,
                                                   const DeviceDecode& options) {
  ASSIGN_OR_RETURN(std::optional<HostBatch> batch, loader.Next());
  if (!batch.has_value()) return absl::InvalidArgumentError("the dataset has no samples");
  RETURN_IF_ERROR(device.EnterThread());
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceDecoder> decoder,
                   DeviceDecoder::Create(device, options, nullptr));
  std::vector<PreprocessSample> samples(batch->size());
  std::vector<absl::Status> why(batch->size());
  Bench bench(device);
  RETURN_IF_ERROR(bench.Open());
  ASSIGN_OR_RETURN(const double batches, bench.Rate([&] {
    absl::Status status = decoder->Prepare(*batch, 0, bench.stream(), why);
    if (status.ok()) status = decoder->Decode(bench.stream(), samples, why);
    if (status.ok()) status = decoder->Done(bench.stream());
    return status;
  }));
  const auto padding = std::count(batch->ids().begin(), batch->ids().end(), kPaddingId);
  return DecodeCeilings{
      .images = batches * static_cast<double>(batch->size() - static_cast<size_t>(padding)),
      .stats = decoder->stats(),
      .backends = decoder->backends()};
}

absl::StatusOr<double> ResidentStepCost(Device& device, const Dataset& dataset) {
  constexpr int kSteps = 2000, kAtOnce = 50;
  constexpr uint64_t kMostImages = 2048, kBatch = 256;
  std::vector<uint64_t> ids(std::min(dataset.size(), kMostImages));
  std::iota(ids.begin(), ids.end(), 0);
  ASSIGN_OR_RETURN(Dataset some, dataset.Select(ids));
  ASSIGN_OR_RETURN(
      Order order,
      Order::Make({.samples = ids.size(),
                   .global_batch = static_cast<uint32_t>(std::min<uint64_t>(ids.size(), kBatch))}));
  Bench bench(device);
  RETURN_IF_ERROR(bench.Open());
  const ResidentOptions options = {.width = 32, .height = 32, .output = {.type = PixelType::kF16}};
  ASSIGN_OR_RETURN(ResidentLoader loader, ResidentLoader::Open(some, order, {}, options, device));
  Clock::duration asked{};
  for (int step = 0; step < kSteps;) {
    const Clock::time_point start = Clock::now();
    ASSIGN_OR_RETURN(std::optional<DeviceBatch> batch, loader.Next());
    if (!batch.has_value()) continue;  // the end of an epoch
    RETURN_IF_ERROR(batch->WaitOn(bench.stream()));
    RETURN_IF_ERROR(batch->Release(bench.stream()));
    asked += Clock::now() - start;
    if (++step % kAtOnce == 0) RETURN_IF_ERROR(bench.Wait());
  }
  return std::chrono::duration<double, std::micro>(asked).count() / kSteps;
}

}  // namespace shardpack::cli
