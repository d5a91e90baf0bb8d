#include "cuda/device/host_api.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "formats/io/resources.h"

namespace shardpack {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAlignment = 256;  // as cudaMalloc

DeviceStatus AllocateMemory(void*, void** memory, size_t bytes) {
  const size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  *memory = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
  return *memory == nullptr ? DeviceStatus{kDeviceOutOfMemory, "out of memory"} : DeviceStatus();
}

DeviceStatus FreeMemory(void*, void* memory) {
  std::free(memory);
  return {};
}

DeviceStatus CopyNow(void*, void* to, const void* from, size_t bytes, Stream) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return {};
}

DeviceStatus Info(void*, DeviceInfo* info) {
  *info = {};
  std::strcpy(info->name, "host");
  info->memory_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return {};
}

DeviceStatus MemoryInfo(void*, uint64_t* free_bytes, uint64_t* total_bytes) {
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  *free_bytes = static_cast<uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) * page_bytes;
  *total_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * page_bytes;
  return {};
}

void FillMemory(DeviceApi& api) {
  // Nothing to lock: copies are copies.
  api.host_register = [](void*, void*, size_t) { return DeviceStatus(); };
  api.host_unregister = [](void*, void*) { return DeviceStatus(); };
  api.host_alloc = AllocateMemory;
  api.host_free = FreeMemory;
  api.is_pinned = [](void*, const void*, bool* pinned) {
    *pinned = true;
    return DeviceStatus();
  };
  api.allocate = AllocateMemory;
  api.free = FreeMemory;
  api.copy_to_device = api.copy_to_host = api.copy_within = CopyNow;
  api.fill = [](void*, void* to, int byte, size_t bytes, Stream) {
    std::memset(to, byte, bytes);
    return DeviceStatus();
  };
  api.preprocess = [](void*, const PreprocessLaunch& launch, Stream) {
    return PreprocessByThreads(launch, AvailableCores()).ok()
               ? DeviceStatus()
               : DeviceStatus{kDeviceInvalidValue, "invalid value"};
  };
  api.gather = [](void*, const GatherLaunch& launch, Stream) {
    GatherOnHost(launch);
    return DeviceStatus();
  };
}

void FillStreams(DeviceApi& api) {
  api.stream_create = [](void*, Stream* stream) {
    *stream = nullptr;
    return DeviceStatus();
  };
  api.stream_destroy = api.stream_query =
      api.stream_synchronize = [](void*, Stream) { return DeviceStatus(); };
  api.stream_wait = [](void*, Stream, Event) { return DeviceStatus(); };
  // An event is the time of its record.
  api.event_create = [](void*, Event* event, bool) {
    *event = reinterpret_cast<Event>(new Clock::time_point());
    return DeviceStatus();
  };
  api.event_destroy = [](void*, Event event) {
    delete reinterpret_cast<Clock::time_point*>(event);
    return DeviceStatus();
  };
  api.event_record = [](void*, Event event, Stream) {
    *reinterpret_cast<Clock::time_point*>(event) = Clock::now();
    return DeviceStatus();
  };
  api.event_query = api.event_synchronize = [](void*, Event) { return DeviceStatus(); };
  api.event_elapsed_ms = [](void*, float* ms, Event from, Event to) {
    *ms = std::chrono::duration<float, std::milli>(*reinterpret_cast<Clock::time_point*>(to) -
                                                   *reinterpret_cast<Clock::time_point*>(from))
              .count();
    return DeviceStatus();
  };
}

DeviceApi MakeHostApi() {
  static DeviceHealth health;
  DeviceApi api;
  api.health = &health;
  api.info = Info;
  api.memory_info = MemoryInfo;
  api.enter_thread = api.last_error = [](void*) { return DeviceStatus(); };
  FillMemory(api);
  FillStreams(api);
  return api;
}

}  // namespace

const DeviceApi& HostApi() {
  static const DeviceApi api = MakeHostApi();
  return api;
}

}  // namespace shardpack
