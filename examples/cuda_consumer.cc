// Consumes batches on a GPU, on a stream of its own and without blocking the host. With the device
// `cpu` the same program uses batches in host memory.
//
//   cuda_consumer DATASET [SIDE [DEVICE]]     e.g. shards 224 cuda:0
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cuda/device/open_device.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/open_pinned_loader.h"

using namespace shardpack;

template <typename T>
T Get(absl::StatusOr<T> value) {  // an example simply exits on an error
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}
void Check(const absl::Status& status) {
  if (!status.ok()) Get<int>(status);
}

int main(int argc, char** argv) {
  // This GPU, or an error: the CPU is used only on request.
  Device& device = *Get(OpenDevice(argc > 3 ? argv[3] : "cuda:0")).device;

  const Dataset dataset = Get(Dataset::Open(argc > 1 ? argv[1] : "shards"));
  const Order order = Get(
      Order::Make({.samples = dataset.size(), .seed = 7, .global_batch = 16, .tail = Tail::kPad}));
  LoaderOptions options = {.epochs = 2, .bad_samples = BadSamples::kSubstitute};
  options.decode.emplace();  // RandomResizedCrop and a flip, to bytes in NHWC
  options.decode->crop.width = options.decode->crop.height =
      argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 224;
  options.decode->crop.flip_probability = 0.5;

  PinnedMemory memory(device);   // must outlive the loaders
  DeviceOptions device_options;  // the device turns the bytes into normalised halves in NCHW
  device_options.preprocess = DevicePreprocess{.output = {.type = PixelType::kF16,
                                                          .layout = PixelLayout::kNchw,
                                                          .mean = {0.485f, 0.456f, 0.406f},
                                                          .std = {0.229f, 0.224f, 0.225f}}};
  Loader host_loader = Get(OpenPinnedLoader(dataset, order, {}, options, memory));
  DeviceLoader loader = Get(DeviceLoader::Open(std::move(host_loader), device_options, device));

  const Stream stream = Get(device.CreateStream());  // or your own cudaStream_t, cast to Stream
  for (uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    while (std::optional<DeviceBatch> batch = Get(loader.Next())) {
      Check(batch->WaitOn(stream));  // the stream waits for the batch, this thread does not
      const DeviceTensor& pixels = *batch->pixels();
      // Train<<<..., stream>>>(pixels.data, batch->labels()->data);
      std::printf("epoch %" PRIu64 " step %" PRIu64 ": %" PRId64 " x %" PRId64 " x %" PRId64
                  " x %" PRId64 " halves at %p\n",
                  batch->info().epoch, batch->info().step, pixels.shape[0], pixels.shape[1],
                  pixels.shape[2], pixels.shape[3], pixels.data);
      Check(batch->Release(stream));  // in use until the work now on the stream is done
    }
  }
  Check(device.Synchronize(stream));
  Check(device.DestroyStream(stream));
  const DeviceLoaderStats stats = loader.stats();
  std::fprintf(stderr, "%" PRIu64 " batches, %" PRIu64 " bytes copied, pinned: %s\n", stats.batches,
               stats.uploaded_bytes, stats.pinned ? "yes" : "no");
}
