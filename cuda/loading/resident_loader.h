// ResidentLoader: batches of a dataset that stays on the device: decoded once, then gathered there.
//
//   ResidentOptions options{.width = 32, .height = 32, .output = {.type = PixelType::kF16}};
//   auto batches = ResidentLoader::Open(dataset, order, rank, options, device);
//   while (auto batch = *batches->Next()) { batch->WaitOn(stream); ...; batch->Release(stream); }
//
// Open decodes every image to width x height 8-bit pixels, with a Loader, and uploads them; each
// batch is then one launch on the device (crop, resize, mirror and cast, or a plain gather) of the
// images that the order names, and one event. Order, labels and crops of an epoch are made by a
// thread during the one before and go up in one copy (resident_order.h). Random crops are those
// that a Loader with the same seed chooses, but from the resized image. Nothing is read or decoded
// again. Next, cursor and ends of epochs are those of DeviceLoader.
//
// In a CUDA graph, whose launches have fixed arguments:
//
//   Begin capture; EnqueueStep({.pixels = x, .pixel_bytes = n, .labels = y}, stream); Train(x, y);
//   end capture;
//   while (auto info = *batches->NextStep(stream)) cudaGraphLaunch(graph, stream);
//
// Lifetime: as DeviceLoader. Launches of EnqueueStep have run before it is destroyed; for copies of
// NextStep it waits for 5 s at most (`patience` if that is less), then leaves its memory to the end
// of the process.
// Thread-safety: one thread at a time. Not across fork.
// Errors: FailedPrecondition where Next and NextStep are mixed, InvalidArgument for another stream
// or a target of the wrong size; of Open, ResourceExhausted with both sizes if the images do not
// fit, those of the Loader (a bad sample ends it), and InvalidArgument; of Next, those of
// DeviceLoader.
// Units: bytes, pixels.
#ifndef SHARDPACK_CUDA_LOADING_RESIDENT_LOADER_H_
#define SHARDPACK_CUDA_LOADING_RESIDENT_LOADER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "cuda/loading/device_batch.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/pinned_memory.h"
#include "images/augment/crop.h"
#include "images/pixels/pixel_output.h"
#include "readers/dataset/dataset.h"
#include "readers/loading/loader.h"
#include "readers/order/cursor.h"
#include "readers/order/order.h"
#include "readers/order/rank.h"

namespace shardpack {

struct ResidentOptions {
  uint32_t width = 0, height = 0;  // of the images as they are kept
  uint8_t channels = 3;
  ResizeFilter filter = ResizeFilter::kBilinear;
  std::optional<CropOptions> crop = std::nullopt;  // else batches have whole images as kept
  OutputFormat output = {};
  uint64_t augment_seed = 0;
  uint64_t epochs = 0;           // after so many, Next always gives nullopt; 0: no end
  double share_of_memory = 0.8;  // of the device's free memory, at most, for the images
  uint32_t buffers = 4;          // batches at once
  int threads = 0;               // that decode, within Open
  std::chrono::milliseconds patience{30'000};
  std::function<void(const std::string&)> log = LogToStderr;
};

struct ResidentStats {
  uint64_t images = 0, image_bytes = 0;  // on the device
  uint64_t batches = 0;
  double fill_seconds = 0;
  uint64_t uploaded_bytes = 0;  // since it was filled: orders, crops and labels
};

class ResidentLoader {
 public:
  // Cancelled if it was interrupted while it waited, as Next, whose next call gives that batch.
  static absl::StatusOr<ResidentLoader> Open(Dataset dataset, Order order, Rank rank,
                                             const ResidentOptions& options, Device& device,
                                             std::optional<Cursor> cursor = std::nullopt,
                                             const Interrupted& interrupted = nullptr);
  ResidentLoader(ResidentLoader&&) noexcept;
  ResidentLoader& operator=(ResidentLoader&&) noexcept;
  ~ResidentLoader();

  // As DeviceLoader::Next.
  absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted = nullptr,
                                                  AskAt ask_at = AskAt::max());
  // Enqueues one launch on the stream, which may capture a graph: it puts into the target, memory
  // of the consumer, the step that NextStep gave last when it runs; before the first one padding:
  // zeros and kNoLabel. Any number of such launches.
  absl::Status EnqueueStep(const DeviceTarget& target, Stream stream);
  // The next step is what launches of EnqueueStep put from now on, in the order of the stream:
  // always the same one, which captures no graph. It enqueues a copy of a few bytes, and the first
  // step of a window its order. As Next in all else, instead of which it is called: a loader does
  // one of the two.
  absl::StatusOr<std::optional<BatchInfo>> NextStep(Stream stream,
                                                    const Interrupted& interrupted = nullptr,
                                                    AskAt ask_at = AskAt::max());
  Cursor cursor() const;
  ResidentStats stats() const;

 private:
  class Core;
  explicit ResidentLoader(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_RESIDENT_LOADER_H_
