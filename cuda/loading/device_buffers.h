// DeviceBuffers: the fixed set of buffers on the device that batches are copied to, again and
// again.
//
//   absl::StatusOr<std::shared_ptr<DeviceBuffers>> buffers = DeviceBuffers::Create(device, spec);
//   if (DeviceBuffer* buffer = (*buffers)->TryTake()) ...   // filled, given out as a DeviceBatch
//   absl::Status status = (*buffers)->GiveBack(buffer, stream);  // used until what runs there now
//
// A buffer that is given back is taken again at once: what fills it is enqueued after the events
// Dependencies(buffer), when its last use is over. The host waits for none of them. A buffer that
// is given back on a stream that captures a graph stays held until the capture ends.
//
// Lifetime: shared by a loader and its batches; the device outlives it. The destructor waits for
// the last uses for `patience` at most, then leaves the memory to the end of the process.
// Thread-safety: any thread.
// Errors: those of the calls; ResourceExhausted with the sizes.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_DEVICE_BUFFERS_H_
#define SHARDPACK_CUDA_LOADING_DEVICE_BUFFERS_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "cuda/loading/device_augment.h"
#include "readers/loading/host_batch.h"

namespace shardpack {

// What is known of a batch on the host.
struct BatchInfo {
  uint64_t epoch = 0, step = 0;
  std::vector<uint64_t> ids;  // kPaddingId for padding
  std::vector<int64_t> labels;
  std::vector<SampleStatus> status;
};

struct DeviceBytes {
  const void* data = nullptr;  // on the device; nullptr: the sample has no such field
  size_t size = 0;
};

struct DeviceBuffer {
  // On the device, each aligned to kDeviceAlignment.
  uint8_t* pixels = nullptr;  // as the host decoded them
  uint8_t* output = nullptr;  // after preprocessing; == pixels without
  int64_t* labels = nullptr;
  PreprocessSample* samples = nullptr;
  // Of each slot, then of the next round.
  PixelProgram* programs = nullptr;
  RoundTail* tails = nullptr;
  PixelTable* pixel_tables = nullptr;  // of all programs, kMaxTables of each
  bool padded_samples = false;         // `samples` are those of a batch with padding
  uint8_t* raw = nullptr;              // encoded bytes: the slabs one after the other
  size_t raw_bytes = 0;

  Event ready = nullptr, released = nullptr;
  bool was_ready = false, was_released = false;  // recorded, by the last use
  BatchInfo info;
  std::vector<DeviceBytes> fields;  // [field * slots + slot]
  bool held = false;                // by a DeviceBatch that was delivered
  void* memory = nullptr;           // of all but raw
  size_t bytes = 0;                 // of it
};

struct DeviceBufferSpec {
  uint32_t buffers = 4, slots = 0;
  size_t pixel_bytes = 0, output_bytes = 0, raw_bytes = 0;  // a batch; output 0: not preprocessed
  bool samples = false;
  size_t programs = 0, tails = 0;  // a slot
  RoundScratch scratch = {};       // once, for the work on all of them
};

class DeviceBuffers {
 public:
  static constexpr uint32_t kMinBuffers = 2;  // one is filled while one is used

  // Tries again with kMinBuffers if there is too little memory.
  static absl::StatusOr<std::shared_ptr<DeviceBuffers>> Create(Device& device,
                                                               DeviceBufferSpec spec);
  ~DeviceBuffers();
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  Device& device() const { return device_; }
  const DeviceBufferSpec& spec() const { return spec_; }  // buffers: as many as there are
  // Memory for work that ends before the event `ready` of the buffer that it fills.
  uint8_t* scratch() const { return scratch_; }
  bool InOwnProcess() const { return ::getpid() == process_; }

  DeviceBuffer* TryTake();
  // nullptr after `for_at_most`, or when Poke is called.
  DeviceBuffer* Take(std::chrono::microseconds for_at_most);
  void Poke();
  // Events that the next use waits for on the device.
  std::vector<Event> Dependencies(const DeviceBuffer& buffer) const;
  // Makes room for so many encoded bytes; frees unused buffers if there is too little memory.
  absl::Status ReserveRaw(DeviceBuffer& buffer, size_t bytes);
  // Frees unused buffers down to kMinBuffers, so that others have the memory. As ReserveRaw it
  // waits for their last use, polling: that freeing itself waits is not promised. Cancelled by
  // `stop`.
  absl::Status FreeUnused();
  // The buffer belongs to a delivered batch from now on.
  void SetHeld(DeviceBuffer& buffer);
  // With a stream, the buffer is reused only after work already enqueued on it; without, no work is
  // pending.
  absl::Status GiveBack(DeviceBuffer& buffer, std::optional<Stream> stream);

  // "epoch 0 step 3, epoch 0 step 4": the batches that are held; empty if none is.
  std::string Holders() const;
  uint32_t buffers() const;
  uint64_t device_bytes() const;
  uint64_t shrinks() const;  // times that there was too little memory
  uint64_t growths() const;  // of ReserveRaw, after the first
  void set_stop(const std::atomic<bool>* stop) { stop_ = stop; }  // before the first use
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }
  const std::vector<std::unique_ptr<DeviceBuffer>>& all() const { return all_; }

 private:
  DeviceBuffers(Device& device, const DeviceBufferSpec& spec) : device_(device), spec_(spec) {}
  absl::Status AllocateAll(uint32_t buffers);
  absl::Status AllocateOne(DeviceBuffer& buffer);
  void FreeOne(DeviceBuffer& buffer);
  void FreeAll();
  bool Idle(const DeviceBuffer& buffer) const;
  absl::Status WaitForUses(const DeviceBuffer& buffer) const;
  bool ReturnCaptured();

  Device& device_;
  DeviceBufferSpec spec_;
  const pid_t process_ = ::getpid();
  std::chrono::milliseconds patience_{5000};
  const std::atomic<bool>* stop_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable returned_;
  bool poked_ = false;
  std::vector<std::unique_ptr<DeviceBuffer>> all_;
  uint8_t* scratch_ = nullptr;
  std::deque<DeviceBuffer*> free_;  // in the order in which they came back
  // Given back on a stream that captured a graph: no event could be recorded.
  std::vector<std::pair<DeviceBuffer*, Stream>> captured_;
  uint64_t device_bytes_ = 0, shrinks_ = 0, growths_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DEVICE_BUFFERS_H_
