// DeviceLoader::Core: the thread behind a DeviceLoader, its streams, and the batches it has ready.
// What is done with a batch is the route's (cuda/loading/batch_route.h).
//
//   auto core = std::make_unique<DeviceLoader::Core>(std::move(loader), options, device);
//   absl::Status opened = core->Open(nullptr);
//   absl::StatusOr<std::optional<DeviceBatch>> batch = core->Next(nullptr, ask_at);
//
// Lifetime: borrows the device; its destructor stops and joins the thread.
// Thread-safety, Errors, Units: those of DeviceLoader (cuda/loading/device_loader.h).
#ifndef SHARDPACK_CUDA_LOADING_DEVICE_LOADER_CORE_H_
#define SHARDPACK_CUDA_LOADING_DEVICE_LOADER_CORE_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cuda/loading/batch_route.h"
#include "cuda/loading/batch_shape.h"
#include "cuda/loading/device_buffers.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/staging_layout.h"
#include "cuda/loading/uploader.h"
#include "formats/io/rank_cores.h"

namespace shardpack {

class DeviceLoader::Core {
 public:
  Core(Loader loader, const DeviceOptions& options, Device& device);
  ~Core();

  absl::Status Open(const Interrupted& interrupted);
  absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted, AskAt ask_at);
  absl::StatusOr<std::optional<BatchInfo>> NextInto(const DeviceTarget& target, Stream stream);
  Cursor cursor() const;
  DeviceLoaderStats stats() const;
  std::vector<BadSample> TakeBadSamples();
  void Stop();
  bool InOwnProcess() const { return ::getpid() == process_; }

 private:
  // What the Loader gave, and where it stood then.
  struct Taken {
    absl::StatusOr<std::optional<HostBatch>> batch;
    Cursor after;
    std::vector<BadSample> bad;
  };
  // What Next gives; without a buffer: the end of an epoch.
  struct Ready {
    DeviceBuffer* buffer = nullptr;
    Cursor after;
    std::vector<BadSample> bad;
  };
  // A batch that is launched and not settled (BatchRoute), with what it was made of.
  struct Unsettled {
    Ready ready;
    std::shared_ptr<HostBatch> batch;
  };
  // What the thread is waiting for.
  enum class Doing : uint8_t { kLoader, kBuffer, kCopy, kDecode, kQueue };

  // By Open.
  absl::Status MakeRoute(const HostBatch& batch);
  absl::Status MakeBuffers(size_t raw_bytes, bool has_kernel);
  void CheckPinned(const HostBatch& batch);
  absl::Status StartThread();
  Taken TakeFromLoader(const Interrupted& interrupted = nullptr);
  void FellBack(const std::string& why);

  // On the thread.
  absl::Status UploadAll();  // returns why it ended
  absl::StatusOr<Taken> TakeNext();
  absl::Status UploadOne(Taken taken);
  absl::Status SettleLast();
  absl::StatusOr<DeviceBuffer*> WaitForBuffer();
  absl::Status WaitForUploads();
  absl::Status Enqueue(std::shared_ptr<HostBatch> shared, DeviceBuffer& buffer,
                       std::vector<BadSample>& bad);
  absl::Status Prepare(const HostBatch& batch, DeviceBuffer& buffer, std::vector<BadSample>& bad);
  void Deliver(Ready ready);
  void Fail(const absl::Status& status);
  void SetDoing(Doing doing);

  // Waits until there is something to give, or an end.
  absl::Status WaitForReady(std::unique_lock<std::mutex>& lock, const Interrupted& interrupted,
                            AskAt ask_at);
  absl::Status WaitedTooLong() const;

  Device& device_;
  const DeviceOptions options_;
  const pid_t process_ = ::getpid();
  const int ranks_ = RanksOfNode();  // when it was opened
  Loader loader_;
  PinnedMemory staging_memory_;
  std::optional<BatchShape> shape_;  // nullopt: there never was a batch
  std::optional<Stream> work_stream_;
  std::shared_ptr<DeviceBuffers> buffers_;
  std::unique_ptr<BatchRoute> route_;
  std::optional<StagingLayout> layout_;
  std::unique_ptr<Uploader> uploader_;
  std::optional<Unsettled> unsettled_;  // of the thread

  mutable std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<Ready> queue_;
  std::optional<Taken> first_;
  absl::Status failed_;  // after what is in the queue; at once if the device is lost
  Cursor cursor_;
  std::vector<BadSample> bad_samples_;
  DeviceLoaderStats stats_;  // memory and growths: those of the route alone
  Doing doing_ = Doing::kLoader;
  std::chrono::steady_clock::time_point doing_since_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DEVICE_LOADER_CORE_H_
