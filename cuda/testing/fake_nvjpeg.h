// FakeNvjpeg: an nvJPEG and a device for tests, on top of the project's CPU decoder.
//
//   FakeNvjpeg fake({.engines = 2});
//   JpegDecoder decoder(&fake.functions(), fake.device(), {});
//   fake.FailAt(7, kNvjpegExecutionFailed);   // the 7th call from now on, nvJPEG's or the device's
//   fake.Finish();                            // what was enqueued runs
//
// Without a FakeDevice work of the device runs when something waits for it, not before; with one it
// runs on the FakeDevice's streams. Either way memory that is used again too early yields wrong
// pixels, and is counted as misuse. It takes memory as the library does: of a handle for a batch
// that is reserved, and of each decoder for what it has decoded so far, by the allocators that it
// was given. Misuse is, too, a call from a thread that has not entered the FakeDevice, since the
// library works on the GPU that is current, and a stream of headers that two threads share. One
// fake at a time.
//
// Lifetime: outlives what uses it.
// Thread-safety: any thread with a FakeDevice, else one.
// Errors: as told by FailAt.
// Units: bytes.
#ifndef SHARDPACK_CUDA_TESTING_FAKE_NVJPEG_H_
#define SHARDPACK_CUDA_TESTING_FAKE_NVJPEG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "cuda/dynload/nvjpeg_functions.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/testing/fake_device.h"

namespace shardpack {

// What the library does wrong with a part of an image.
enum class RegionFault : uint8_t {
  kNone,
  kNotSupported,  // the engines say so when they are asked
  kNoParams,      // SetROI fails
  kRefused,       // what decodes fails
  kIgnored,       // the whole image is written, at the pitch of the part
  kElsewhere,     // the part of this size at the image's corner
  kBeside,        // a pixel further to the right
  kBelow,         // a row further down
  kEdges,         // its outermost pixels are wrong, where they are not the image's
};

struct FakeNvjpegOptions {
  int engines = 2;  // 0: the hardware backend is not there
  bool knows_interpolation = true;
  uint32_t engine_us = 0;        // of an image, on one engine; all batches share the engines
  double engine_ns_a_pixel = 0;  // that they write, likewise
  uint32_t parse_us = 0;         // of an image's headers
  std::function<void()> engine_work = nullptr;  // of a batch, before its pixels come
  // What the engines say of an image that they are to decode; one that they refuse fails its batch.
  std::function<int(std::span<const std::byte> file)> engine_status = nullptr;
  bool refuses_late = false;  // a batch has then been begun: something comes to its images later
  // The engines say that they have decoded such an image, and do not touch its pixels, or give
  // those of another one.
  std::function<bool(std::span<const std::byte> file)> skips = nullptr, is_wrong = nullptr;
  RegionFault region_fault = RegionFault::kNone;
  bool engine_regions_only = false;  // of the engines alone
  // Whether the device is current in the calling thread; nullptr: whether it has entered it.
  std::function<bool()> is_current = nullptr;
};

class FakeNvjpeg {
 public:
  // The work runs on the streams of `device`; nullptr: of one of its own, whose memory is the heap.
  explicit FakeNvjpeg(const FakeNvjpegOptions& options, FakeDevice* device = nullptr);
  ~FakeNvjpeg();

  // To be changed by the test: without a symbol, say.
  NvjpegFunctions& functions() { return functions_; }
  Device& device() const;

  void FailAt(int64_t call, int code);
  bool failed() const;
  void Finish() { RunUntil(enqueued_); }

  uint64_t Calls(const std::string& name) const;
  int64_t live() const { return live_; }
  int64_t misuses() const { return misuses_; }
  uint64_t own_bytes() const { return own_bytes_; }  // that no allocator was asked for
  int most_parses() const { return most_parses_; }   // of headers, at once
  uint64_t pixels() const { return pixels_; }        // that were written to images
  const FakeNvjpegOptions& options() const { return options_; }

  // For the functions themselves: counts the call; what it shall return.
  int Enter(const char* name);
  bool IsCurrent() const;
  // How much was enqueued with it.
  uint64_t Enqueue(void* stream, std::function<void()> work);
  void RunUntil(uint64_t count);
  uint64_t enqueued() const { return enqueued_; }
  // Whether what was enqueued with this number has not run.
  bool IsPending(uint64_t number) const;
  void Born() { ++live_; }
  void Died() { --live_; }
  void Misused() { ++misuses_; }
  void BeginParse();
  void EndParse() { --parses_; }
  void TookOwn(int64_t bytes) { own_bytes_ += static_cast<uint64_t>(bytes); }
  std::mutex& engines() { return engines_; }
  void Wrote(uint64_t pixels) { pixels_ += pixels; }

 private:
  class LazyDevice;

  FakeNvjpegOptions options_;
  NvjpegFunctions functions_;
  FakeDevice* const fake_device_;
  const std::unique_ptr<LazyDevice> lazy_device_;
  mutable std::mutex mutex_;  // of calls_, fail_in_, queue_, and the order of what is enqueued
  std::mutex running_;        // of the thread that runs the queue
  std::deque<std::function<void()>> queue_;
  std::map<std::string, uint64_t> calls_;
  std::atomic<uint64_t> enqueued_{0}, done_{0};  // done_: without a FakeDevice
  // With one: what has not run, which may be after the end of this object.
  struct Pending {
    std::mutex mutex;
    std::set<uint64_t> numbers;
  };
  const std::shared_ptr<Pending> pending_ = std::make_shared<Pending>();
  std::atomic<int64_t> live_{0}, misuses_{0};
  std::atomic<uint64_t> own_bytes_{0}, pixels_{0};
  std::atomic<int> parses_{0}, most_parses_{0};  // now, and at once
  std::mutex engines_;
  int64_t fail_in_ = INT64_MAX;
  int code_ = 0;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_FAKE_NVJPEG_H_
