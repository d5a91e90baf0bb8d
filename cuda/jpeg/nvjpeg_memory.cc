#include "cuda/jpeg/nvjpeg_memory.h"

namespace shardpack {
namespace {

constexpr int kDone = 0, kRefused = 1;

NvjpegMemory& Of(void* context) { return *static_cast<NvjpegMemory*>(context); }

}  // namespace

NvjpegMemory::NvjpegMemory(Device& device, uint64_t most_bytes)
    : device_(device), most_bytes_(most_bytes) {
  on_device_ = {.allocate =
                    [](void* context, void** memory, size_t bytes, void* stream) {
                      return Of(context).Allocate(memory, bytes, static_cast<Stream>(stream));
                    },
                .free =
                    [](void* context, void* memory, size_t bytes, void* stream) {
                      return Of(context).Free(memory, bytes, static_cast<Stream>(stream));
                    },
                .context = this};
  on_host_ = {.allocate = [](void* context, void** memory, size_t bytes,
                             void*) { return Of(context).AllocatePinned(memory, bytes); },
              .free = [](void* context, void* memory, size_t bytes,
                         void*) { return Of(context).FreePinned(memory, bytes); },
              .context = this};
}

int NvjpegMemory::Allocate(void** memory, size_t bytes, Stream stream) {
  *memory = nullptr;
  if (device_bytes_.fetch_add(bytes) + bytes <= most_bytes_) {
    const absl::StatusOr<void*> made = device_.AllocateOn(stream, bytes, "nvJPEG");
    if (made.ok()) {
      *memory = *made;
      return kDone;
    }
  }
  device_bytes_.fetch_sub(bytes);
  ++refusals_;
  return kRefused;
}

// What a lost device may still use is left to the end of the process.
int NvjpegMemory::Free(void* memory, size_t bytes, Stream stream) {
  if (memory == nullptr) return kDone;
  device_bytes_.fetch_sub(bytes);
  if (device_.lost()) return kDone;
  return device_.FreeOn(stream, memory).ok() ? kDone : kRefused;
}

int NvjpegMemory::AllocatePinned(void** memory, size_t bytes) {
  *memory = nullptr;
  const absl::StatusOr<void*> made = device_.AllocateHost(bytes);
  if (!made.ok()) {
    ++refusals_;
    return kRefused;
  }
  *memory = *made;
  pinned_bytes_.fetch_add(bytes);
  return kDone;
}

int NvjpegMemory::FreePinned(void* memory, size_t bytes) {
  if (memory == nullptr) return kDone;
  pinned_bytes_.fetch_sub(bytes);
  if (device_.lost()) return kDone;
  return device_.FreeHost(memory).ok() ? kDone : kRefused;
}

}  // namespace shardpack
