// FakeDevice: a device made of threads, for tests: it does what the CUDA runtime promises and not a
// bit more, notices wrong use, and fails on demand.
//
//   FakeDevice fake({.seed = 7, .max_delay_us = 300});
//   fake.FailCall(12, kDeviceOutOfMemory);           // the 13th call from here
//   absl::StatusOr<DeviceLoader> loader = DeviceLoader::Open(..., fake);
//   EXPECT_EQ(fake.live_objects(), 0); EXPECT_THAT(fake.misuses(), IsEmpty());
//
// A stream is a thread with a queue. Before each operation it sleeps for a random time, so streams
// overtake each other wherever no event says otherwise, and a copy reads its source when it runs: a
// slab that was given back too early yields wrong bytes (and a report of the thread sanitizer). As
// on a device, copies from memory that is not page-locked block the caller, waits take an event as
// it was last recorded, and after an error that loses the device every call fails and nothing runs.
// The streams 1 and 2 are CUDA's legacy default stream, which is ordered with the per-thread ones,
// and that of the calling thread; a thread's work is found by no other thread. While a stream
// captures a graph, nothing runs there, events recorded there are of no use elsewhere, and to wait
// for an event from outside, to wait for the stream or to ask whether it is idle ends the capture;
// the graph can then be launched again and again, with the arguments as they were. "Device" memory
// lies between guard bytes. A call that frees does so even when it is told to fail, as those of
// CUDA, which report what went wrong before. A process that forks shares its pages with the child,
// and the device goes on reading those: what the parent then writes to page-locked memory never
// reaches it, unless the child was not to have that memory (MADV_DONTFORK).
//
// Lifetime: outlives everything that uses it; the destructor runs what is enqueued and joins.
// Thread-safety: any thread.
// Errors: those of CUDA, with its numbers.
// Units: bytes, microseconds.
#ifndef SHARDPACK_CUDA_TESTING_FAKE_DEVICE_H_
#define SHARDPACK_CUDA_TESTING_FAKE_DEVICE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/device/device.h"
#include "cuda/device/device_error.h"

namespace shardpack {

struct FakeOptions {
  uint64_t seed = 1;
  uint32_t max_delay_us = 200;          // before each operation; 0: none
  DeviceKind kind = DeviceKind::kHost;  // kCuda: as a GPU says of itself
  uint64_t pinned_cap_bytes = UINT64_MAX, device_cap_bytes = UINT64_MAX;
  // Whether freeing waits for all streams, as cudaFree does and nobody promises. Without, the
  // memory has other content at once.
  bool free_waits = true;
  uint32_t copy_us_per_mib = 0;  // of the one engine that copies between host and device
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(const FakeOptions& options = {});
  ~FakeDevice() override;

  // The nth call from now (0: the next one) returns this error, once; errors that lose the device
  // lose it.
  void FailCall(uint64_t nth, int code);
  bool failed() const;  // whether that call has come
  // The next `times` calls of this method of Device.
  void FailEntry(std::string_view entry, int code, uint64_t times = UINT64_MAX);
  void LoseDevice(int code = kDeviceIllegalAddress);
  // The nth operation that runs from now on (0: the next one) loses the device, as a kernel with a
  // wrong address: the call that enqueued it has succeeded, and a later one tells.
  void FailOperation(uint64_t nth, int code = kDeviceIllegalAddress);
  // As cudaStreamBeginCapture and cudaStreamEndCapture: what was enqueued meanwhile, with the
  // arguments that it was given. False if something ended the capture before.
  using Graph = std::vector<std::function<void()>>;
  void BeginCapture(Stream stream);
  bool EndCapture(Stream stream, Graph* graph = nullptr);
  void LaunchGraph(const Graph& graph, Stream stream);
  // Whether the calling thread called EnterThread, and that succeeded.
  bool HasEntered() const;
  // For fakes of libraries that work on streams: runs there, in order. Not counted as a call.
  void Enqueue(Stream stream, std::function<void()> work);
  // Joins the threads of destroyed streams, which first run what is enqueued: a process that forks,
  // or that ends without the destructor, has none left. Not while the streams are held.
  void JoinDestroyed();
  // Nothing runs on any stream until LetGo.
  void Hold();
  void LetGo();

  uint64_t calls() const;  // of all methods
  uint64_t calls(std::string_view entry) const;
  uint64_t allocations() const;  // calls that make memory, streams, events or page locks
  uint64_t host_syncs() const;   // calls that (may) wait for the device
  uint64_t live_objects() const;
  std::string LiveObjects() const;  // what they are
  uint64_t frees_after_loss() const;
  uint64_t copied_bytes() const;       // to the device
  uint64_t device_bytes() const;       // allocated
  uint64_t launches() const;           // of kernels
  uint64_t urgent_launches() const;    // of these, on streams of high priority
  std::vector<std::string> misuses();  // also looks at all guard bytes

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
  absl::StatusOr<void*> AllocateOn(Stream stream, size_t bytes, std::string_view purpose) override;
  absl::Status FreeOn(Stream stream, void* memory) override;
  absl::Status DestroyStream(Stream stream) override;
  absl::StatusOr<bool> IsIdle(Stream stream) override;
  absl::Status Synchronize(Stream stream) override;
  absl::StatusOr<bool> IsCapturing(Stream stream) override;
  absl::Status StreamWait(Stream stream, Event event) override;
  absl::StatusOr<Event> CreateEvent() override;
  absl::Status DestroyEvent(Event event) override;
  absl::Status RecordEvent(Event event, Stream stream) override;
  absl::StatusOr<bool> IsDone(Event event) override;
  absl::Status CopyToDevice(void* to, const void* from, size_t bytes, Stream stream) override {
    return Copy("CopyToDevice", to, from, bytes, stream);
  }
  absl::Status CopyToHost(void* to, const void* from, size_t bytes, Stream stream) override {
    return Copy("CopyToHost", to, from, bytes, stream);
  }
  absl::Status CopyWithin(void* to, const void* from, size_t bytes, Stream stream) override {
    return Copy("CopyWithin", to, from, bytes, stream);
  }
  absl::Status Fill(void* to, int byte, size_t bytes, Stream stream) override;
  absl::Status Preprocess(const PreprocessLaunch& launch, Stream stream) override;
  absl::Status AugmentRound(const RoundLaunch& launch, Stream stream) override;
  absl::Status Gather(const GatherLaunch& launch, Stream stream) override;

 protected:
  absl::StatusOr<Stream> MakeStream(StreamPriority priority) override;
  int CodeNow() override { return lost_code_.load(); }

 private:
  struct FakeStream;
  struct FakeEvent;
  struct Block;
  enum class Kind : uint8_t { kPlain, kMakes, kFrees, kWaits };

  // Counts the call, whose name is `entry`; the error that it is to return. `doing` is the error's
  // text, the name of the call if it is empty.
  absl::Status Begin(std::string_view entry, Kind kind, std::string_view doing = "");
  absl::Status Error(int code, std::string_view doing);
  absl::Status Misuse(std::string_view what, int code);
  bool Stopped() const;
  std::shared_ptr<FakeStream> FindStream(Stream stream);
  std::shared_ptr<FakeStream> DefaultStream(std::map<uint64_t, Stream>& known, uint64_t thread);
  std::shared_ptr<FakeStream> StartStream(StreamPriority priority);
  bool IsDefault(const FakeStream& stream) const;
  void Push(FakeStream& stream, std::function<void()> run, std::function<bool()> may_run = nullptr,
            std::function<void()> after = nullptr);
  void PushKernel(FakeStream& stream, std::function<void()> run);
  std::shared_ptr<FakeEvent> FindEvent(Event event);
  absl::StatusOr<void*> MakeBlock(size_t bytes, std::string_view purpose);
  absl::Status EndBlock(const void* memory);
  bool InBlock(const void* memory, size_t bytes);
  template <typename Launch>
  bool LabelsInBlock(const Launch& launch) {
    const size_t bytes = launch.count * sizeof(int64_t);
    return launch.labels == nullptr ||
           (InBlock(launch.labels, bytes) && InBlock(launch.out_labels, bytes));
  }
  // While the launch runs: whether the tables of its programs are device memory.
  template <typename Launch>
  bool TablesInBlock(const Launch& launch) {
    if (launch.programs == nullptr) return true;
    const std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < launch.count; ++i) {
      const PixelProgram& program = launch.programs[i];
      bool good = program.count <= PixelProgram::kMaxSteps;
      for (uint32_t n = 0; good && n < program.count; ++n) {
        const PixelStep& step = program.steps[n];
        good = step.kind != PixelStepKind::kTable ||
               InBlock(launch.pixel_tables + step.table, sizeof(PixelTable));
      }
      if (good) continue;
      misuses_.push_back("a launch with a program whose tables are not device memory");
      return false;
    }
    return true;
  }
  // While the launch runs: whether what the source names is device memory, of these sizes.
  template <typename Launch>
  bool NamesBlocks(const StepSource& source, const Launch& launch, size_t sample_bytes,
                   size_t row_bytes) {
    const std::lock_guard lock(mutex_);
    const bool good = (sample_bytes == 0 || InBlock(source.samples, sample_bytes)) &&
                      (row_bytes == 0 || InBlock(source.rows, row_bytes)) &&
                      (launch.out_labels == nullptr ||
                       (InBlock(source.labels, launch.count * sizeof(int64_t)) &&
                        InBlock(launch.out_labels, launch.count * sizeof(int64_t))));
    if (!good) misuses_.push_back("a launch whose source names no device memory");
    return good;
  }
  bool InPageLock(const void* memory, size_t bytes);
  static void AfterForks();
  void NoteFork();
  // Where the device finds what it is told to read from here.
  const void* AsDeviceSees(const void* memory) const;
  bool BreakInGuards(const Block& block) const;
  absl::Status Copy(std::string_view entry, void* to, const void* from, size_t bytes,
                    Stream stream);
  void RunStream(FakeStream& stream);

  const FakeOptions options_;
  const uint64_t number_;  // of all fakes of this process: no other has it
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a stream went on, an event came, held, lost
  bool held_ = false;
  std::atomic<int> lost_code_{0};
  std::mt19937_64 random_;
  uint64_t calls_ = 0, allocations_ = 0, host_syncs_ = 0, frees_after_loss_ = 0, copied_bytes_ = 0;
  uint64_t pinned_bytes_ = 0, device_bytes_ = 0;
  std::map<std::string, uint64_t, std::less<>> entry_calls_;
  std::optional<std::pair<uint64_t, int>> fail_call_;
  bool failed_ = false;
  std::map<std::string, std::pair<int, uint64_t>, std::less<>> fail_entries_;
  std::map<const void*, Block> blocks_;       // device memory
  std::vector<Block> freed_;                  // without waiting: something may still write there
  std::map<const void*, size_t> registered_;  // page locks
  std::map<const void*, std::vector<std::byte>> shared_with_children_;  // as they were then
  std::map<const void*, std::unique_ptr<std::byte[]>> host_blocks_;     // of AllocateHost
  std::map<Stream, std::shared_ptr<FakeStream>> streams_;
  std::map<uint64_t, Stream> legacy_stream_, thread_streams_;  // made when first used
  uint64_t launches_ = 0, urgent_launches_ = 0;
  std::optional<std::pair<uint64_t, int>> fail_operation_;
  std::mutex copy_engine_;
  std::map<Event, std::shared_ptr<FakeEvent>> events_;
  std::vector<std::shared_ptr<FakeStream>> ended_;
  std::vector<std::string> misuses_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_FAKE_DEVICE_H_
