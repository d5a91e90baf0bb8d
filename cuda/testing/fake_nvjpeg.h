// FakeNvjpeg: an nvJPEG and a device for tests, with the project's CPU decoder behind them.
//
//   FakeNvjpeg fake({.engines = 2});
//   JpegDecoder decoder(&fake.functions(), fake.device(), {});
//   fake.FailAt(7, kNvjpegExecutionFailed);   // the 7th call from now on, nvJPEG's or the device's
//   fake.Finish();                            // what was enqueued runs
//
// Without a FakeApi work of the device runs when something waits for it, not before; with one it
// runs on the FakeApi's streams. Either way memory that is used again too early yields wrong
// pixels, and is counted as misuse. One fake at a time.
//
// Lifetime: outlives what uses it.
// Thread-safety: any thread with a FakeApi, else one.
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
#include <mutex>
#include <string>

#include "cuda/dynload/nvjpeg_functions.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/testing/fake_api.h"

namespace shardpack {

struct FakeNvjpegOptions {
  int engines = 2;  // 0: the hardware backend is not there
  bool knows_interpolation = true;
};

class FakeNvjpeg {
 public:
  // `api`: whose streams the work runs on; nullptr: of the device here, whose memory is the heap.
  explicit FakeNvjpeg(const FakeNvjpegOptions& options, FakeApi* api = nullptr);
  ~FakeNvjpeg();

  // To be changed by the test: without a symbol, say.
  NvjpegFunctions& functions() { return functions_; }
  const DeviceApi& device() const { return api_ == nullptr ? device_ : api_->api(); }

  void FailAt(int64_t call, int code);
  bool failed() const;
  void Finish() { RunUntil(enqueued_); }

  uint64_t Calls(const std::string& name) const;
  int64_t live() const { return live_; }
  int64_t misuses() const { return misuses_; }
  const FakeNvjpegOptions& options() const { return options_; }

  // For the functions themselves: counts the call; what it shall return.
  int Enter(const char* name);
  // How much was enqueued with it.
  uint64_t Enqueue(void* stream, std::function<void()> work);
  void RunUntil(uint64_t count);
  uint64_t enqueued() const { return enqueued_; }
  uint64_t done() const { return done_; }
  void Born() { ++live_; }
  void Died() { --live_; }
  void Misused() { ++misuses_; }

 private:
  FakeNvjpegOptions options_;
  NvjpegFunctions functions_;
  FakeApi* const api_;
  DeviceHealth health_;
  DeviceApi device_;          // only what a decoder calls
  mutable std::mutex mutex_;  // of calls_, fail_in_, and the order of what is enqueued
  std::deque<std::function<void()>> queue_;
  std::map<std::string, uint64_t> calls_;
  std::map<std::byte*, size_t> pinned_;  // of the device here
  std::atomic<uint64_t> enqueued_{0}, done_{0};
  std::atomic<int64_t> live_{0}, misuses_{0};
  int64_t fail_in_ = INT64_MAX;
  int code_ = 0;

  void FillDevice();
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_FAKE_NVJPEG_H_
