#include "cuda/device/host_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cuda/device/device_error.h"
#include "formats/io/rank_cores.h"

namespace shardpack {
namespace {

uint64_t PageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }
uint64_t TotalBytes() { return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * PageBytes(); }

absl::Status CopyNow(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

}  // namespace

HostDevice::HostDevice() : Device(DeviceKind::kHost, 0), threads_(CoresOfRank()) {}

Device& HostDevice::Get() {
  static auto* const device = new HostDevice();
  return *device;
}

absl::StatusOr<DeviceInfo> HostDevice::Info() {
  DeviceInfo info;
  std::strcpy(info.name, "host");
  info.memory_bytes = TotalBytes();
  return info;
}

absl::StatusOr<DeviceMemory> HostDevice::Memory() {
  return DeviceMemory{
      .free_bytes = static_cast<uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) * PageBytes(),
      .total_bytes = TotalBytes()};
}

absl::Status HostDevice::EnterThread() { return absl::OkStatus(); }

// There is nothing to lock: copies are copies.
absl::Status HostDevice::RegisterHost(void*, size_t) { return absl::OkStatus(); }
absl::Status HostDevice::UnregisterHost(void*) { return absl::OkStatus(); }
absl::StatusOr<bool> HostDevice::IsPinned(const void*) { return true; }

absl::StatusOr<void*> HostDevice::AllocateAligned(size_t bytes, std::string_view doing) {
  const size_t rounded = DeviceAligned(std::max<size_t>(bytes, 1));
  void* const memory = rounded < bytes ? nullptr : std::aligned_alloc(kDeviceAlignment, rounded);
  if (memory == nullptr) return Failure(kDeviceOutOfMemory, "out of memory", doing);
  return memory;
}

absl::StatusOr<void*> HostDevice::AllocateHost(size_t bytes) {
  return AllocateAligned(bytes, PageLocking(bytes));
}
absl::StatusOr<void*> HostDevice::Allocate(size_t bytes, std::string_view purpose) {
  return AllocateAligned(bytes, Allocating(bytes, purpose));
}
absl::Status HostDevice::FreeHost(void* memory) { return Free(memory); }
absl::Status HostDevice::Free(void* memory) {
  std::free(memory);
  return absl::OkStatus();
}

// The default stream is the only one, and it is always idle. An event needs an address alone.
absl::StatusOr<Stream> HostDevice::MakeStream(StreamPriority) { return Stream(nullptr); }
absl::Status HostDevice::DestroyStream(Stream) { return absl::OkStatus(); }
absl::StatusOr<bool> HostDevice::IsIdle(Stream) { return true; }
absl::Status HostDevice::Synchronize(Stream) { return absl::OkStatus(); }
absl::StatusOr<bool> HostDevice::IsCapturing(Stream) { return false; }
absl::Status HostDevice::StreamWait(Stream, Event) { return absl::OkStatus(); }
absl::StatusOr<Event> HostDevice::CreateEvent() { return reinterpret_cast<Event>(new char()); }
absl::Status HostDevice::DestroyEvent(Event event) {
  delete reinterpret_cast<char*>(event);
  return absl::OkStatus();
}
absl::Status HostDevice::RecordEvent(Event, Stream) { return absl::OkStatus(); }
absl::StatusOr<bool> HostDevice::IsDone(Event) { return true; }

absl::Status HostDevice::CopyToDevice(void* to, const void* from, size_t bytes, Stream) {
  return CopyNow(to, from, bytes);
}
absl::Status HostDevice::CopyToHost(void* to, const void* from, size_t bytes, Stream) {
  return CopyNow(to, from, bytes);
}
absl::Status HostDevice::CopyWithin(void* to, const void* from, size_t bytes, Stream) {
  return CopyNow(to, from, bytes);
}
absl::Status HostDevice::Fill(void* to, int byte, size_t bytes, Stream) {
  std::memset(to, byte, bytes);
  return absl::OkStatus();
}

absl::Status HostDevice::Preprocess(const PreprocessLaunch& launch, Stream) {
  if (PreprocessByThreads(launch, threads_).ok()) return absl::OkStatus();
  return Failure(kDeviceInvalidValue, "invalid value", "starting the preprocessing");
}
absl::Status HostDevice::AugmentRound(const RoundLaunch& launch, Stream) {
  AugmentRoundOnHost(launch);
  return absl::OkStatus();
}
absl::Status HostDevice::Gather(const GatherLaunch& launch, Stream) {
  GatherOnHost(launch);
  return absl::OkStatus();
}

}  // namespace shardpack
