// DeviceLoader::Core: the thread behind a DeviceLoader, its streams, and what it has ready.
//
//   auto core = std::make_unique<DeviceLoader::Core>(std::move(loader), options, api);
//   absl::Status opened = core->Open(nullptr);
//   absl::StatusOr<std::optional<DeviceBatch>> batch = core->Next(nullptr);
//
// Lifetime, thread-safety, errors, units: as DeviceLoader (cuda/loading/device_loader.h).
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

#include "cuda/loading/device_buffers.h"
#include "cuda/loading/device_loader.h"
#include "cuda/loading/uploader.h"

namespace shardpack {

class DeviceLoader::Core {
 public:
  Core(Loader loader, const DeviceOptions& options, const DeviceApi& api);
  ~Core();

  absl::Status Open(const Interrupted& interrupted);
  absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted);
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
  // What Next gives; no buffer: the end of an epoch.
  struct Ready {
    DeviceBuffer* buffer = nullptr;
    Cursor after;
    std::vector<BadSample> bad;
  };
  // What the thread is waiting for.
  enum class Doing : uint8_t { kLoader, kBuffer, kCopy, kDecode, kQueue };

  Taken TakeFromLoader(const Interrupted& interrupted = nullptr);
  absl::Status LearnShapes(const HostBatch& batch);
  absl::Status LearnToDecode(const HostBatch& batch);
  absl::Status MakeStreams();
  absl::Status MakeBuffers(size_t raw_bytes);
  absl::Status WriteSamples();
  absl::Status TryKernel();
  absl::Status UploadAll();  // why it ended
  // Cancelled after Stop.
  absl::Status UploadOne(Taken taken);
  absl::StatusOr<DeviceBuffer*> WaitForBuffer();
  absl::Status WaitForUploads();
  absl::Status Enqueue(HostBatch batch, DeviceBuffer& buffer, std::vector<BadSample>& bad);
  void PlanCopies(const HostBatch& batch, DeviceBuffer& buffer, std::vector<UploadCopy>& copies);
  absl::Status PreprocessToSide(std::byte* to);  // of host_samples_
  void PutSamples(DeviceBuffer& buffer, std::byte* side, std::vector<UploadCopy>& copies);
  absl::Status MakeDecoder();
  void EndDecoder();
  absl::Status DecodeImages(const HostBatch& batch, DeviceBuffer& buffer,
                            std::vector<BadSample>& bad);
  void TellOfCpu(const JpegDecoderStats& now);
  absl::Status MendBadImages(DeviceBuffer& buffer, std::vector<BadSample>& bad);
  std::vector<PreprocessSample>& SamplesAt(const uint8_t* pixels, const BatchInfo* info);
  PreprocessLaunch LaunchOf(const DeviceBuffer& buffer) const;
  void Deliver(Ready ready);
  void Fail(const absl::Status& status);
  void FellBack(const std::string& why);
  absl::Status WaitedTooLong() const;
  void SetDoing(Doing doing);
  DeviceTensor PixelsOf(const DeviceBuffer& buffer) const;
  size_t pixel_bytes() const;  // of a batch, as it is given out
  Stream DecodeStream() const { return on_host_ ? nullptr : uploader_->stream(); }
  uint32_t out_width() const {  // of a preprocessed image
    return options_.preprocess->width > 0 ? options_.preprocess->width : width_;
  }
  uint32_t out_height() const {
    return options_.preprocess->height > 0 ? options_.preprocess->height : height_;
  }

  const DeviceApi& api_;
  const DeviceOptions options_;
  const pid_t process_ = ::getpid();
  Loader loader_;
  PinnedMemory side_memory_;
  std::unique_ptr<Uploader> uploader_;
  std::shared_ptr<DeviceBuffers> buffers_;
  Stream work_stream_ = nullptr;
  bool has_work_stream_ = false;

  // Of a batch; of the first, and of all others.
  uint32_t slots_ = 0, width_ = 0, height_ = 0, channels_ = 0;
  size_t decoded_bytes_ = 0;     // as the Loader gives them
  OutputFormat decoded_format_;  // type and layout of these
  bool decoded_ = false, raw_ = false;
  bool preprocess_ = false;  // on the device
  bool on_host_ = false;     // asked for, but by the CPU
  bool exhausted_ = false;   // there never was a batch
  std::optional<PixelOutput> output_;
  std::vector<PreprocessSample> host_samples_;
  // With DeviceOptions::decode; made and ended on the thread, which nvJPEG's device is current on.
  // Its work is on the stream of the copies, and so is then the preprocessing.
  std::unique_ptr<DeviceDecoder> decoder_;
  size_t image_field_ = 0;
  std::vector<absl::Status> why_bad_;
  uint64_t bad_images_ = 0;
  bool had_engines_ = false;

  mutable std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::deque<Ready> queue_;
  std::optional<Taken> first_;
  absl::Status failed_;  // after what is in the queue; at once where the device is lost
  Cursor cursor_;
  std::vector<BadSample> bad_samples_;
  DeviceLoaderStats stats_;  // memory and growths: the decoder's alone
  Doing doing_ = Doing::kLoader;
  std::chrono::steady_clock::time_point doing_since_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DEVICE_LOADER_CORE_H_
