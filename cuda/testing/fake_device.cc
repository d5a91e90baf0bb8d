#include "cuda/testing/fake_device.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/testing/fake_internal.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr uint64_t kMemoryBytes = uint64_t{8} << 30;
constexpr std::byte kGuard{0xFD}, kFresh{0xCD};

bool IsGuard(std::byte byte) { return byte == kGuard; }

const char* NameOf(int code) {
  switch (code) {
    case kDeviceInvalidValue:
      return "cudaErrorInvalidValue";
    case kDeviceOutOfMemory:
      return "cudaErrorMemoryAllocation";
    case kDeviceInvalidHandle:
      return "cudaErrorInvalidResourceHandle";
    case kDeviceIllegalAddress:
      return "cudaErrorIllegalAddress";
    case kDeviceAlreadyRegistered:
      return "cudaErrorHostMemoryAlreadyRegistered";
    case kDeviceNotRegistered:
      return "cudaErrorHostMemoryNotRegistered";
    case kDeviceNotSupported:
      return "cudaErrorNotSupported";
    case kDeviceCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case kDeviceCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "cudaErrorOfTheFake";
  }
}

uint64_t NextNumber() {
  static std::atomic<uint64_t> next{0};
  return next++;
}

// The fakes that the thread has entered, by number: an address may be that of an earlier one.
std::set<uint64_t>& Entered() {
  thread_local std::set<uint64_t> entered;
  return entered;
}

// Of all fakes, for the calls after a fork.
std::mutex& AllFakesMutex() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}
std::set<FakeDevice*>& AllFakes() {
  static auto* const fakes = new std::set<FakeDevice*>();
  return *fakes;
}

// Whether a child of this process would have some of the memory: by the flag "dc" of
// /proc/PID/smaps (do not copy on fork).
bool IsInherited(const void* memory, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory), end = begin + bytes;
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  for (bool within = false; std::getline(maps, line);) {
    uintptr_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      within = from < end && begin < to;
    } else if (within && line.rfind("VmFlags:", 0) == 0 && line.find(" dc") == line.npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::Status FakeDevice::Error(int code, std::string_view doing) {
  return Failure(code, NameOf(code), doing);
}

// The memory is the host's, where a test may look, even if the kind is a GPU's.
FakeDevice::FakeDevice(const FakeOptions& options)
    : Device(options.kind, 0), options_(options), number_(NextNumber()), random_(options.seed) {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(nullptr, AfterForks, nullptr); });
  const std::lock_guard lock(AllFakesMutex());
  AllFakes().insert(this);
}

FakeDevice::~FakeDevice() {
  {
    const std::lock_guard lock(AllFakesMutex());
    AllFakes().erase(this);
  }
  {
    const std::lock_guard lock(mutex_);
    held_ = false;
    for (auto& [handle, stream] : streams_) ended_.push_back(stream);
    for (auto& stream : ended_) stream->ends = true;
  }
  changed_.notify_all();
  for (auto& stream : ended_) stream->thread.join();
}

void FakeDevice::FailCall(uint64_t nth, int code) {
  const std::lock_guard lock(mutex_);
  fail_call_ = {nth, code};
  failed_ = false;
}

bool FakeDevice::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void FakeDevice::FailEntry(std::string_view entry, int code, uint64_t times) {
  const std::lock_guard lock(mutex_);
  fail_entries_[std::string(entry)] = {code, times};
}

void FakeDevice::LoseDevice(int code) {
  {
    const std::lock_guard lock(mutex_);
    lost_code_.store(code);
  }
  changed_.notify_all();
}

void FakeDevice::FailOperation(uint64_t nth, int code) {
  const std::lock_guard lock(mutex_);
  fail_operation_ = {nth, code};
}

void FakeDevice::Hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void FakeDevice::LetGo() {
  {
    const std::lock_guard lock(mutex_);
    held_ = false;
  }
  changed_.notify_all();
}

uint64_t FakeDevice::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}
uint64_t FakeDevice::calls(std::string_view entry) const {
  const std::lock_guard lock(mutex_);
  const auto found = entry_calls_.find(entry);
  return found == entry_calls_.end() ? 0 : found->second;
}
uint64_t FakeDevice::allocations() const {
  const std::lock_guard lock(mutex_);
  return allocations_;
}
uint64_t FakeDevice::host_syncs() const {
  const std::lock_guard lock(mutex_);
  return host_syncs_;
}
uint64_t FakeDevice::frees_after_loss() const {
  const std::lock_guard lock(mutex_);
  return frees_after_loss_;
}
uint64_t FakeDevice::copied_bytes() const {
  const std::lock_guard lock(mutex_);
  return copied_bytes_;
}

uint64_t FakeDevice::device_bytes() const {
  const std::lock_guard lock(mutex_);
  return device_bytes_;
}
uint64_t FakeDevice::launches() const {
  const std::lock_guard lock(mutex_);
  return launches_;
}
uint64_t FakeDevice::urgent_launches() const {
  const std::lock_guard lock(mutex_);
  return urgent_launches_;
}

// Default streams do not count: they need not be created.
uint64_t FakeDevice::live_objects() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size() + registered_.size() + streams_.size() - legacy_stream_.size() -
         thread_streams_.size() + events_.size();
}

std::string FakeDevice::LiveObjects() const {
  const std::lock_guard lock(mutex_);
  return absl::StrCat(blocks_.size(), " blocks, ", registered_.size(), " page locks, ",
                      streams_.size() - legacy_stream_.size() - thread_streams_.size(),
                      " streams, ", events_.size(), " events");
}

std::vector<std::string> FakeDevice::misuses() {
  const std::lock_guard lock(mutex_);
  for (const auto& [memory, block] : blocks_) {
    if (BreakInGuards(block)) misuses_.push_back("a write beyond device memory");
  }
  for (const Block& block : freed_) {
    const std::byte* const begin = block.bytes.get();
    if (!std::all_of(begin, begin + block.size + 2 * kGuardBytes, IsGuard))
      misuses_.push_back("a write to device memory that was freed");
  }
  return misuses_;
}

bool FakeDevice::BreakInGuards(const Block& block) const {
  const std::byte* const begin = block.bytes.get();
  const std::byte* const end = begin + kGuardBytes + block.size;
  return !std::all_of(begin, begin + kGuardBytes, IsGuard) ||
         !std::all_of(end, end + kGuardBytes, IsGuard);
}

// Under mutex_, as Misuse, InBlock and InPageLock.
absl::Status FakeDevice::Begin(std::string_view entry, Kind kind, std::string_view doing) {
  if (doing.empty()) doing = entry;
  ++calls_;
  ++entry_calls_[std::string(entry)];
  if (kind == Kind::kMakes) ++allocations_;
  // Freeing memory waits for the device.
  if (kind == Kind::kWaits || entry == "Free" || entry == "FreeHost" || entry == "UnregisterHost") {
    ++host_syncs_;
  }
  if (lost_code_.load() != 0) {
    if (kind == Kind::kFrees && lost()) ++frees_after_loss_;  // the caller could have known
    return Error(lost_code_.load(), doing);
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
  if (code == kDeviceOk) return absl::OkStatus();
  if (LosesDevice(code)) {
    lost_code_.store(code);
    changed_.notify_all();
  }
  return Error(code, doing);
}

absl::Status FakeDevice::Misuse(std::string_view what, int code) {
  misuses_.emplace_back(what);
  return Error(code, what);
}

bool FakeDevice::InBlock(const void* memory, size_t bytes) {
  auto after = blocks_.upper_bound(memory);
  if (after == blocks_.begin()) return false;
  --after;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(memory) -
                                          static_cast<const std::byte*>(after->first));
  return offset <= after->second.size && bytes <= after->second.size - offset;
}

bool FakeDevice::InPageLock(const void* memory, size_t bytes) {
  auto after = registered_.upper_bound(memory);
  if (after == registered_.begin()) return false;
  --after;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(memory) -
                                          static_cast<const std::byte*>(after->first));
  return offset <= after->second && bytes <= after->second - offset;
}

absl::StatusOr<DeviceInfo> FakeDevice::Info() {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("Info", Kind::kPlain));
  DeviceInfo info;
  std::strcpy(info.name, "fake device");
  info.memory_bytes = std::min(options_.device_cap_bytes, kMemoryBytes);
  info.copy_engines = 2;
  return info;
}

absl::StatusOr<DeviceMemory> FakeDevice::Memory() {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("Memory", Kind::kPlain));
  const uint64_t total_bytes = std::min(options_.device_cap_bytes, kMemoryBytes);
  return DeviceMemory{.free_bytes = total_bytes - std::min(device_bytes_, total_bytes),
                      .total_bytes = total_bytes};
}

absl::Status FakeDevice::EnterThread() {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("EnterThread", Kind::kPlain));
  Entered().insert(number_);
  return absl::OkStatus();
}

bool FakeDevice::HasEntered() const { return Entered().count(number_) > 0; }

absl::StatusOr<bool> FakeDevice::IsPinned(const void* memory) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("IsPinned", Kind::kPlain));
  return InPageLock(memory, 1);
}

// In the parent.
void FakeDevice::AfterForks() {
  const std::lock_guard lock(AllFakesMutex());
  for (FakeDevice* const fake : AllFakes()) fake->NoteFork();
}

void FakeDevice::NoteFork() {
  const std::lock_guard lock(mutex_);
  for (const auto& [memory, bytes] : registered_) {
    if (!IsInherited(memory, bytes)) continue;
    const auto* const from = static_cast<const std::byte*>(memory);
    shared_with_children_[memory].assign(from, from + bytes);
  }
}

const void* FakeDevice::AsDeviceSees(const void* memory) const {
  auto found = shared_with_children_.upper_bound(memory);
  if (found == shared_with_children_.begin()) return memory;
  --found;
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(memory) -
                                          static_cast<const std::byte*>(found->first));
  return offset < found->second.size() ? found->second.data() + offset : memory;
}

absl::Status FakeDevice::RegisterHost(void* memory, size_t bytes) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("RegisterHost", Kind::kMakes, PageLocking(bytes)));
  if (bytes > options_.pinned_cap_bytes - std::min(pinned_bytes_, options_.pinned_cap_bytes)) {
    return Error(kDeviceOutOfMemory, PageLocking(bytes));
  }
  if (InPageLock(memory, 1)) return Misuse("memory registered twice", kDeviceAlreadyRegistered);
  registered_[memory] = bytes;
  pinned_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status FakeDevice::UnregisterHost(void* memory) {
  const std::lock_guard lock(mutex_);
  absl::Status error = Begin("UnregisterHost", Kind::kFrees);
  if (lost_code_.load() != 0) return error;
  const auto found = registered_.find(memory);
  if (found == registered_.end() || host_blocks_.count(memory) > 0) {
    return Misuse("memory unregistered that was not registered", kDeviceNotRegistered);
  }
  pinned_bytes_ -= found->second;
  shared_with_children_.erase(memory);
  registered_.erase(found);
  return error;
}

absl::StatusOr<void*> FakeDevice::AllocateHost(size_t bytes) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("AllocateHost", Kind::kMakes, PageLocking(bytes)));
  if (bytes > options_.pinned_cap_bytes - std::min(pinned_bytes_, options_.pinned_cap_bytes)) {
    return Error(kDeviceOutOfMemory, PageLocking(bytes));
  }
  auto block = std::make_unique<std::byte[]>(bytes + 4096);
  const auto address = reinterpret_cast<uintptr_t>(block.get());
  auto* const memory = reinterpret_cast<void*>((address + 4095) / 4096 * 4096);
  registered_[memory] = bytes;
  pinned_bytes_ += bytes;
  host_blocks_[memory] = std::move(block);
  return memory;
}

absl::Status FakeDevice::FreeHost(void* memory) {
  const std::lock_guard lock(mutex_);
  absl::Status error = Begin("FreeHost", Kind::kFrees);
  if (lost_code_.load() != 0) return error;
  if (host_blocks_.erase(memory) == 0) {
    return Misuse("host memory freed that was not allocated", kDeviceInvalidValue);
  }
  pinned_bytes_ -= registered_[memory];
  registered_.erase(memory);
  return error;
}

// Under mutex_, as EndBlock.
absl::StatusOr<void*> FakeDevice::MakeBlock(size_t bytes, std::string_view purpose) {
  if (bytes > (size_t{1} << 40) ||
      bytes > options_.device_cap_bytes - std::min(device_bytes_, options_.device_cap_bytes)) {
    return Error(kDeviceOutOfMemory, Allocating(bytes, purpose));
  }
  Block block{std::make_unique<std::byte[]>(bytes + 2 * kGuardBytes), bytes};
  std::fill_n(block.bytes.get(), bytes + 2 * kGuardBytes, kGuard);
  std::fill_n(block.bytes.get() + kGuardBytes, bytes, kFresh);
  void* const memory = block.bytes.get() + kGuardBytes;
  device_bytes_ += bytes;
  blocks_[memory] = std::move(block);
  return memory;
}

absl::Status FakeDevice::EndBlock(const void* memory) {
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) return Misuse("device memory freed twice", kDeviceInvalidValue);
  if (BreakInGuards(found->second)) misuses_.push_back("a write beyond device memory");
  device_bytes_ -= found->second.size;
  if (!options_.free_waits) {
    std::fill_n(found->second.bytes.get(), found->second.size + kGuardBytes, kGuard);
    freed_.push_back(std::move(found->second));
  }
  blocks_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<void*> FakeDevice::Allocate(size_t bytes, std::string_view purpose) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("Allocate", Kind::kMakes, Allocating(bytes, purpose)));
  return MakeBlock(bytes, purpose);
}

// Waits, as cudaFree: what is enqueued may use the memory.
absl::Status FakeDevice::Free(void* memory) {
  std::unique_lock lock(mutex_);
  absl::Status error = Begin("Free", Kind::kFrees);
  if (lost_code_.load() != 0) return error;
  changed_.wait(lock, [this] {
    return lost_code_.load() != 0 || !options_.free_waits ||
           std::all_of(streams_.begin(), streams_.end(),
                       [](const auto& entry) { return entry.second->idle(); });
  });
  absl::Status ended = EndBlock(memory);
  return ended.ok() ? error : ended;
}

absl::StatusOr<void*> FakeDevice::AllocateOn(Stream stream, size_t bytes,
                                             std::string_view purpose) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(Begin("AllocateOn", Kind::kMakes, Allocating(bytes, purpose)));
  if (FindStream(stream) == nullptr) return Error(kDeviceInvalidHandle, "AllocateOn");
  return MakeBlock(bytes, purpose);
}

absl::Status FakeDevice::FreeOn(Stream stream, void* memory) {
  const std::lock_guard lock(mutex_);
  absl::Status error = Begin("FreeOn", Kind::kFrees);
  if (lost_code_.load() != 0) return error;
  const std::shared_ptr<FakeStream> found = FindStream(stream);
  if (found == nullptr) return Error(kDeviceInvalidHandle, "FreeOn");
  Push(*found, nullptr, nullptr, [this, memory] { (void)EndBlock(memory); });
  return error;
}

}  // namespace shardpack
