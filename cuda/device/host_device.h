// HostDevice: a machine without a GPU: everything happens at once, on the CPU.
//
//   absl::StatusOr<Device*> cuda = OpenCudaDevice(0);
//   Device& device = cuda.ok() ? **cuda : HostDevice::Get();   // cuda.status() says why not
//
// So a program written for the GPU runs unchanged, with batches in host memory (DeviceKind::kHost).
//
// Thread-safety: any thread; there is no stream to wait for, so threads that share memory order
// their use of it themselves.
// Errors: out of memory.
// Units: bytes.
#ifndef SHARDPACK_CUDA_DEVICE_HOST_DEVICE_H_
#define SHARDPACK_CUDA_DEVICE_HOST_DEVICE_H_

#include "cuda/device/device.h"

namespace shardpack {

class HostDevice : public Device {
 public:
  HostDevice();
  static Device& Get();  // the machine; static

  bool is_cpu() const override { return true; }
  absl::StatusOr<DeviceInfo> Info() override;
  absl::StatusOr<DeviceMemory> Memory() override;
  absl::Status EnterThread() override;

  absl::Status RegisterHost(void* memory, size_t bytes) override;
  absl::Status UnregisterHost(void* memory) override;
  absl::StatusOr<void*> AllocateHost(size_t bytes) override;
  absl::Status FreeHost(void* memory) override;
  absl::StatusOr<bool> IsPinned(const void* memory) override;
  absl::StatusOr<void*> Allocate(size_t bytes, std::string_view purpose) override;
  absl::Status Free(void* memory) override;

  absl::Status DestroyStream(Stream stream) override;
  absl::StatusOr<bool> IsIdle(Stream stream) override;
  absl::Status Synchronize(Stream stream) override;
  absl::StatusOr<bool> IsCapturing(Stream stream) override;
  absl::Status StreamWait(Stream stream, Event event) override;
  absl::StatusOr<Event> CreateEvent() override;
  absl::Status DestroyEvent(Event event) override;
  absl::Status RecordEvent(Event event, Stream stream) override;
  absl::StatusOr<bool> IsDone(Event event) override;

  absl::Status CopyToDevice(void* to, const void* from, size_t bytes, Stream stream) override;
  absl::Status CopyToHost(void* to, const void* from, size_t bytes, Stream stream) override;
  absl::Status CopyWithin(void* to, const void* from, size_t bytes, Stream stream) override;
  absl::Status Fill(void* to, int byte, size_t bytes, Stream stream) override;
  absl::Status Preprocess(const PreprocessLaunch& launch, Stream stream) override;
  absl::Status AugmentRound(const RoundLaunch& launch, Stream stream) override;
  absl::Status Gather(const GatherLaunch& launch, Stream stream) override;

 protected:
  absl::StatusOr<Stream> MakeStream(StreamPriority priority) override;

 private:
  absl::StatusOr<void*> AllocateAligned(size_t bytes, std::string_view doing);

  const int threads_;  // of the preprocessing
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_DEVICE_HOST_DEVICE_H_
