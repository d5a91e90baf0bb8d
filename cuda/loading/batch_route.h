// BatchRoute: what a DeviceLoader does with a host batch on its way to a buffer on the device.
//
//   route->Begin(copy_stream);                                        // once
//   absl::Status status = route->Prepare(batch, buffer, bad);
//   status = route->Stage(batch, buffer, payload, copies, bad);
//   ...                                                               // the copies are enqueued
//   absl::StatusOr<Stream> last = route->Launch(buffer, copied);      // the batch is ready after it
//   if (route->has_to_settle()) status = route->Settle(buffer, bad);  // later, in the same order
//   route->End();                                                     // once
//
// There are three, of which one is chosen when a loader is opened:
//   CopyPixels          pixels as the Loader decodes them; or none, for encoded bytes
//   PreprocessOnDevice  the Loader's pixels, which a kernel preprocesses
//   DecodeOnDevice      images that are decoded for the device, and then preprocessed there
// PreprocessOnCpu and DecodeOnCpu stand in for the last two if no kernel runs on the device, or
// cannot do the augmentation: the CPU preprocesses, and the result is copied.
//
// Lifetime: what RouteContext refers to outlives it.
// Thread-safety: the loader's thread alone, after the constructor.
// Errors: those of the device and of images; Cancelled by `stop`.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_BATCH_ROUTE_H_
#define SHARDPACK_CUDA_LOADING_BATCH_ROUTE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/loading/batch_shape.h"
#include "cuda/loading/device_buffers.h"
#include "cuda/loading/uploader.h"
#include "formats/io/rank_cores.h"

namespace shardpack {

// What a route uses of its loader.
struct RouteContext {
  Device& device;
  const DeviceOptions& options;
  const BatchShape& shape;
  DeviceBuffers& buffers;
  Stream work_stream;
  const std::atomic<bool>& stop;
  std::function<void(const std::string&)> fell_back;  // logs and counts it
  std::function<std::string(uint64_t id)> describe;   // where a sample is
  // That threads may use: asked for by the thread that opens, which may change the environment.
  int cores = CoresOfRank();
};

class BatchRoute {
 public:
  explicit BatchRoute(RouteContext context) : context_(std::move(context)) {}
  virtual ~BatchRoute() = default;
  BatchRoute(const BatchRoute&) = delete;
  BatchRoute& operator=(const BatchRoute&) = delete;

  // Staging memory that Stage takes.
  virtual size_t payload_bytes() const = 0;
  // On the thread of all later calls. `copy_stream` is the one that copies are enqueued on.
  virtual absl::Status Begin(Stream copy_stream) {
    copy_stream_ = copy_stream;
    return absl::OkStatus();
  }
  // Before anything of this batch is enqueued; may put other samples in the place of bad ones.
  virtual absl::Status Prepare(const HostBatch&, DeviceBuffer&, std::vector<BadSample>&) {
    return absl::OkStatus();
  }
  // Adds the copies that the route needs, from the batch and from `payload`. May put other samples
  // in the place of bad ones, too; after it, labels are those of the batch.
  virtual absl::Status Stage(const HostBatch& batch, DeviceBuffer& buffer, std::byte* payload,
                             std::vector<UploadCopy>& copies, std::vector<BadSample>& bad) = 0;
  // Enqueues the work on the device that follows the copies, which end with the event `copied`.
  // Returns the stream of the last piece of work.
  virtual absl::StatusOr<Stream> Launch(DeviceBuffer&, Event /*copied*/) { return copy_stream_; }
  // Whether Settle has to be called, before the batch that was launched last is given out and
  // before the next but one is prepared; its host batch lives until then. Others may be launched
  // meanwhile.
  virtual bool has_to_settle() const { return false; }
  // Waits until it is known whether all has gone as it seemed, and repairs what has not.
  virtual absl::Status Settle(DeviceBuffer&, std::vector<BadSample>&) { return absl::OkStatus(); }
  // Adds what the route knows.
  virtual void FillStats(DeviceLoaderStats&) const {}
  virtual void End() {}

 protected:
  const BatchShape& shape() const { return context_.shape; }
  Device& device() const { return context_.device; }
  // Stages the parameters of a kernel that is launched later.
  void StageSamples(std::span<const PreprocessSample> samples, const DeviceBuffer& buffer,
                    std::byte* payload, std::vector<UploadCopy>& copies) const;
  // Stages what the CPU preprocesses, by `work`.
  absl::Status StagePreprocessed(
      std::span<const PreprocessSample> samples, const DeviceBuffer& buffer, std::byte* payload,
      std::vector<UploadCopy>& copies,
      const std::function<absl::Status(const PreprocessLaunch&, int threads)>& work =
          PreprocessByThreads) const;

  const RouteContext context_;
  Stream copy_stream_ = nullptr;
};

// Enqueues what makes these slots of a batch on the device: the preprocessing, and after it the
// rounds of augmentation.
absl::Status EnqueueSlots(Device& device, const BatchShape& shape, const DeviceBuffers& buffers,
                          const DeviceBuffer& buffer, size_t first, size_t count, Stream stream);

// Writes the parameters of each buffer, which stay right for batches without padding, and runs all
// kernels of a batch once, on zeros: Unimplemented if they were not built for this device.
absl::Status TryKernel(Device& device, const BatchShape& shape, const DeviceBuffers& buffers,
                       Stream stream);

// `has_kernel`: TryKernel succeeded.
std::unique_ptr<BatchRoute> MakeBatchRoute(RouteContext context, bool has_kernel);
// Of those, the ones with DeviceOptions::decode.
std::unique_ptr<BatchRoute> MakeDecodeRoute(RouteContext context, bool has_kernel);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_BATCH_ROUTE_H_
