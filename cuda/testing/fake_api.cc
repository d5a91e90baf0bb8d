#include "cuda/testing/fake_api.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/testing/fake_internal.h"

namespace shardpack {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xFD}, kFresh{0xCD};

bool LosesDevice(int code) { return ClassOf({code, ""}) == FailureClass::kLost; }

FakeApi& Of(void* self) { return *static_cast<FakeApi*>(self); }

}  // namespace

DeviceStatus FakeError(int code) {
  switch (code) {
    case kDeviceOk:
      return {};
    case kDeviceInvalidValue:
      return {code, "cudaErrorInvalidValue"};
    case kDeviceOutOfMemory:
      return {code, "cudaErrorMemoryAllocation"};
    case kDeviceInvalidHandle:
      return {code, "cudaErrorInvalidResourceHandle"};
    case kDeviceNotReady:
      return {code, "cudaErrorNotReady"};
    case kDeviceIllegalAddress:
      return {code, "cudaErrorIllegalAddress"};
    case kDeviceAlreadyRegistered:
      return {code, "cudaErrorHostMemoryAlreadyRegistered"};
    case kDeviceNotRegistered:
      return {code, "cudaErrorHostMemoryNotRegistered"};
    case kDeviceNotSupported:
      return {code, "cudaErrorNotSupported"};
    default:
      return {code, "cudaErrorOfTheFake"};
  }
}

FakeApi::FakeApi(const FakeOptions& options) : options_(options), random_(options.seed) {
  FillTable();
}

FakeApi::~FakeApi() {
  {
    const std::lock_guard lock(mutex_);
    held_ = false;
    for (auto& [handle, stream] : streams_) ended_.push_back(stream);
    for (auto& stream : ended_) stream->ends = true;
  }
  changed_.notify_all();
  for (auto& stream : ended_) stream->thread.join();
}

void FakeApi::FailCall(uint64_t nth, int code) {
  const std::lock_guard lock(mutex_);
  fail_call_ = {nth, code};
  failed_ = false;
}

bool FakeApi::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void FakeApi::FailEntry(std::string_view entry, int code, uint64_t times) {
  const std::lock_guard lock(mutex_);
  fail_entries_[std::string(entry)] = {code, times};
}

void FakeApi::LoseDevice(int code) {
  {
    const std::lock_guard lock(mutex_);
    lost_.store(code);
  }
  changed_.notify_all();
}

void FakeApi::Hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void FakeApi::LetGo() {
  {
    const std::lock_guard lock(mutex_);
    held_ = false;
  }
  changed_.notify_all();
}

uint64_t FakeApi::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}
uint64_t FakeApi::calls(std::string_view entry) const {
  const std::lock_guard lock(mutex_);
  const auto found = entry_calls_.find(entry);
  return found == entry_calls_.end() ? 0 : found->second;
}
uint64_t FakeApi::allocations() const {
  const std::lock_guard lock(mutex_);
  return allocations_;
}
uint64_t FakeApi::host_syncs() const {
  const std::lock_guard lock(mutex_);
  return host_syncs_;
}
uint64_t FakeApi::frees_after_loss() const {
  const std::lock_guard lock(mutex_);
  return frees_after_loss_;
}
uint64_t FakeApi::copied_bytes() const {
  const std::lock_guard lock(mutex_);
  return copied_bytes_;
}

// The default stream is there without being asked for.
uint64_t FakeApi::live_objects() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size() + registered_.size() + streams_.size() - streams_.count(nullptr) +
         events_.size();
}

std::string FakeApi::LiveObjects() const {
  const std::lock_guard lock(mutex_);
  return absl::StrCat(blocks_.size(), " blocks, ", registered_.size(), " page locks, ",
                      streams_.size() - streams_.count(nullptr), " streams, ", events_.size(),
                      " events");
}

std::vector<std::string> FakeApi::misuses() {
  const std::lock_guard lock(mutex_);
  for (const auto& [memory, block] : blocks_) {
    if (BreakInGuards(block)) misuses_.push_back("a write beyond device memory");
  }
  return misuses_;
}

bool FakeApi::BreakInGuards(const Block& block) const {
  const auto is_guard = [](std::byte byte) { return byte == kGuard; };
  const std::byte* const begin = block.bytes.get();
  const std::byte* const end = begin + kGuardBytes + block.size;
  return !std::all_of(begin, begin + kGuardBytes, is_guard) ||
         !std::all_of(end, end + kGuardBytes, is_guard);
}

// Under mutex_, as all that follows, unless it says otherwise.
std::optional<DeviceStatus> FakeApi::Begin(std::string_view entry, Kind kind) {
  ++calls_;
  ++entry_calls_[std::string(entry)];
  if (kind == Kind::kMakes) ++allocations_;
  // Freeing memory waits for the device.
  if (kind == Kind::kWaits || entry == "free" || entry == "host_free" ||
      entry == "host_unregister") {
    ++host_syncs_;
  }
  if (lost_.load() != 0) {
    if (kind == Kind::kFrees && IsLost(api_)) ++frees_after_loss_;  // and they knew
    return FakeError(lost_.load());
  }
  int code = kDeviceOk;
  if (fail_call_ && fail_call_->first-- == 0) {
    code = fail_call_->second;
    fail_call_.reset();
    failed_ = true;
  }
  const auto found = fail_entries_.find(entry);
  if (found != fail_entries_.end() && found->second.second > 0) {
    --found->second.second;
    code = found->second.first;
  }
  if (code == kDeviceOk) return std::nullopt;
  if (LosesDevice(code)) {
    lost_.store(code);
    changed_.notify_all();
  }
  return FakeError(code);
}

DeviceStatus FakeApi::Misuse(const std::string& what, int code) {
  misuses_.push_back(what);
  return FakeError(code);
}

bool FakeApi::InBlock(const void* memory, size_t bytes) {
  auto after = blocks_.upper_bound(memory);
  if (after == blocks_.begin()) return false;
  --after;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(memory) -
                                          static_cast<const std::byte*>(after->first));
  return offset <= after->second.size && bytes <= after->second.size - offset;
}

bool FakeApi::IsPinned(const void* memory, size_t bytes) {
  auto after = registered_.upper_bound(memory);
  if (after == registered_.begin()) return false;
  --after;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(memory) -
                                          static_cast<const std::byte*>(after->first));
  return offset <= after->second && bytes <= after->second - offset;
}

DeviceStatus FakeApi::HostRegister(void* memory, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("host_register", Kind::kMakes)) return *error;
  if (bytes > options_.pinned_cap_bytes - std::min(pinned_bytes_, options_.pinned_cap_bytes)) {
    return FakeError(kDeviceOutOfMemory);
  }
  if (IsPinned(memory, 1)) return Misuse("memory registered twice", kDeviceAlreadyRegistered);
  registered_[memory] = bytes;
  pinned_bytes_ += bytes;
  return {};
}

DeviceStatus FakeApi::HostUnregister(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto error = Begin("host_unregister", Kind::kFrees);
  if (error && lost_.load() != 0) return *error;
  const auto found = registered_.find(memory);
  if (found == registered_.end() || host_blocks_.count(memory) > 0) {
    return Misuse("memory unregistered that was not registered", kDeviceNotRegistered);
  }
  pinned_bytes_ -= found->second;
  registered_.erase(found);
  return error.value_or(DeviceStatus());
}

DeviceStatus FakeApi::HostAlloc(void** memory, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("host_alloc", Kind::kMakes)) return *error;
  if (bytes > options_.pinned_cap_bytes - std::min(pinned_bytes_, options_.pinned_cap_bytes)) {
    return FakeError(kDeviceOutOfMemory);
  }
  auto block = std::make_unique<std::byte[]>(bytes + 4096);
  const auto address = reinterpret_cast<uintptr_t>(block.get());
  *memory = reinterpret_cast<void*>((address + 4095) / 4096 * 4096);
  registered_[*memory] = bytes;
  pinned_bytes_ += bytes;
  host_blocks_[*memory] = std::move(block);
  return {};
}

DeviceStatus FakeApi::HostFree(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto error = Begin("host_free", Kind::kFrees);
  if (error && lost_.load() != 0) return *error;
  if (host_blocks_.erase(memory) == 0) {
    return Misuse("host memory freed that was not allocated", kDeviceInvalidValue);
  }
  pinned_bytes_ -= registered_[memory];
  registered_.erase(memory);
  return error.value_or(DeviceStatus());
}

DeviceStatus FakeApi::Allocate(void** memory, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto error = Begin("allocate", Kind::kMakes)) return *error;
  if (bytes > (size_t{1} << 40) ||
      bytes > options_.device_cap_bytes - std::min(device_bytes_, options_.device_cap_bytes)) {
    return FakeError(kDeviceOutOfMemory);
  }
  Block block{std::make_unique<std::byte[]>(bytes + 2 * kGuardBytes), bytes};
  std::fill_n(block.bytes.get(), bytes + 2 * kGuardBytes, kGuard);
  std::fill_n(block.bytes.get() + kGuardBytes, bytes, kFresh);
  *memory = block.bytes.get() + kGuardBytes;
  device_bytes_ += bytes;
  blocks_[*memory] = std::move(block);
  return {};
}

// Waits, as cudaFree: what is enqueued may use the memory.
DeviceStatus FakeApi::Free(void* memory) {
  std::unique_lock lock(mutex_);
  const auto error = Begin("free", Kind::kFrees);
  if (error && lost_.load() != 0) return *error;
  changed_.wait(lock, [this] {
    return lost_.load() != 0 || std::all_of(streams_.begin(), streams_.end(),
                                            [](const auto& entry) { return entry.second->idle(); });
  });
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) return Misuse("device memory freed twice", kDeviceInvalidValue);
  if (BreakInGuards(found->second)) misuses_.push_back("a write beyond device memory");
  device_bytes_ -= found->second.size;
  blocks_.erase(found);
  return error.value_or(DeviceStatus());
}

void FakeApi::FillTable() {
  api_.self = this;
  api_.health = &health_;
  api_.kind = options_.kind;  // the memory is the host's, where a test may look
  api_.info = [](void* self, DeviceInfo* info) {
    FakeApi& fake = Of(self);
    const std::lock_guard lock(fake.mutex_);
    if (const auto error = fake.Begin("info", Kind::kPlain)) return *error;
    *info = {};
    std::strcpy(info->name, "fake device");
    info->memory_bytes = std::min<uint64_t>(fake.options_.device_cap_bytes, uint64_t{8} << 30);
    info->copy_engines = 2;
    return DeviceStatus();
  };
  api_.memory_info = [](void* self, uint64_t* free_bytes, uint64_t* total_bytes) {
    FakeApi& fake = Of(self);
    const std::lock_guard lock(fake.mutex_);
    if (const auto error = fake.Begin("memory_info", Kind::kPlain)) return *error;
    *total_bytes = std::min<uint64_t>(fake.options_.device_cap_bytes, uint64_t{8} << 30);
    *free_bytes = *total_bytes - std::min(fake.device_bytes_, *total_bytes);
    return DeviceStatus();
  };
  api_.enter_thread = [](void* self) {
    const std::lock_guard lock(Of(self).mutex_);
    return Of(self).Begin("enter_thread", Kind::kPlain).value_or(DeviceStatus());
  };
  api_.last_error = [](void* self) {
    const std::lock_guard lock(Of(self).mutex_);
    return Of(self).Begin("last_error", Kind::kPlain).value_or(DeviceStatus());
  };
  FillMemoryEntries();
  FillStreamEntries();
}

void FakeApi::FillMemoryEntries() {
  api_.host_register = [](void* self, void* m, size_t bytes) {
    return Of(self).HostRegister(m, bytes);
  };
  api_.host_unregister = [](void* self, void* m) { return Of(self).HostUnregister(m); };
  api_.host_alloc = [](void* self, void** m, size_t bytes) { return Of(self).HostAlloc(m, bytes); };
  api_.host_free = [](void* self, void* m) { return Of(self).HostFree(m); };
  api_.is_pinned = [](void* self, const void* m, bool* pinned) {
    const std::lock_guard lock(Of(self).mutex_);
    if (const auto error = Of(self).Begin("is_pinned", Kind::kPlain)) return *error;
    *pinned = Of(self).IsPinned(m, 1);
    return DeviceStatus();
  };
  api_.allocate = [](void* self, void** m, size_t bytes) { return Of(self).Allocate(m, bytes); };
  api_.free = [](void* self, void* m) { return Of(self).Free(m); };
  api_.copy_to_device = [](void* self, void* to, const void* from, size_t bytes, Stream stream) {
    return Of(self).Copy("copy_to_device", to, from, bytes, stream);
  };
  api_.copy_to_host = [](void* self, void* to, const void* from, size_t bytes, Stream stream) {
    return Of(self).Copy("copy_to_host", to, from, bytes, stream);
  };
  api_.copy_within = [](void* self, void* to, const void* from, size_t bytes, Stream stream) {
    return Of(self).Copy("copy_within", to, from, bytes, stream);
  };
  api_.fill = [](void* self, void* to, int byte, size_t bytes, Stream stream) {
    return Of(self).Fill(to, byte, bytes, stream);
  };
}

}  // namespace shardpack
