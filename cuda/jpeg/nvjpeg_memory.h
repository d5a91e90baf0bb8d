// NvjpegMemory: where nvJPEG gets its memory on the device, and its page-locked memory: counted,
// and no more of the former than was allowed.
//
//   NvjpegMemory memory(device, uint64_t{1} << 30);
//   functions.CreateExV2(kNvjpegHybrid, memory.device(), memory.pinned(), 0, &handle);
//   stats.device_bytes += memory.device_bytes();
//
// Beyond the cap nvJPEG is refused memory, and refuses the images in turn. Memory on the device is
// handed out in the order of streams (Device::AllocateOn), so that sizes that differ from batch to
// batch make nobody wait.
//
// Lifetime: the device outlives it, and it outlives the handles made with it; it does not move.
// Thread-safety: any thread.
// Units: bytes.
#ifndef SHARDPACK_CUDA_JPEG_NVJPEG_MEMORY_H_
#define SHARDPACK_CUDA_JPEG_NVJPEG_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cuda/device/device.h"
#include "cuda/dynload/nvjpeg_functions.h"

namespace shardpack {

class NvjpegMemory {
 public:
  NvjpegMemory(Device& device, uint64_t most_bytes);
  NvjpegMemory(const NvjpegMemory&) = delete;
  NvjpegMemory& operator=(const NvjpegMemory&) = delete;

  NvjpegAllocator* device() { return &on_device_; }
  NvjpegAllocator* pinned() { return &on_host_; }

  uint64_t device_bytes() const { return device_bytes_.load(); }
  uint64_t pinned_bytes() const { return pinned_bytes_.load(); }
  uint64_t refusals() const { return refusals_.load(); }  // because of the cap, or of the device

 private:
  int Allocate(void** memory, size_t bytes, Stream stream);
  int Free(void* memory, size_t bytes, Stream stream);
  int AllocatePinned(void** memory, size_t bytes);
  int FreePinned(void* memory, size_t bytes);

  Device& device_;
  const uint64_t most_bytes_;
  NvjpegAllocator on_device_, on_host_;
  std::atomic<uint64_t> device_bytes_{0}, pinned_bytes_{0}, refusals_{0};
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_NVJPEG_MEMORY_H_
