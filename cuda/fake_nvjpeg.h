// FakeNvjpeg: an nvJPEG and a device for tests, with the project's CPU decoder behind them.
//
//   FakeNvjpeg fake({.engines = 2});
//   JpegDecoder decoder(&fake.functions(), fake.device(), {});
//   fake.FailAt(7, kNvjpegExecutionFailed);   // the 7th call from now on, nvJPEG's or the device's
//   fake.Finish();                            // what was enqueued runs
//
// Work of the device runs when something waits for it, not before: memory that is used again too
// early yields wrong pixels, and is counted as misuse. "Device memory" is the heap. One fake at a
// time. Lifetime: outlives what uses it. Thread-safety: one thread. Errors: as told by FailAt.
// Units: bytes.
#ifndef SHARDPACK_CUDA_FAKE_NVJPEG_H_
#define SHARDPACK_CUDA_FAKE_NVJPEG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "cuda/jpeg_decoder.h"
#include "cuda/nvjpeg_functions.h"

namespace shardpack {

struct FakeNvjpegOptions {
  int engines = 2;  // 0: the hardware backend is not there
  bool knows_interpolation = true;
};

class FakeNvjpeg {
 public:
  explicit FakeNvjpeg(const FakeNvjpegOptions& options);
  ~FakeNvjpeg();

  // To be changed by the test: without a symbol, say.
  NvjpegFunctions& functions() { return functions_; }
  const DeviceApi& device() const { return device_; }

  void FailAt(int64_t call, int code) { fail_in_ = call, code_ = code; }
  bool failed() const { return fail_in_ <= 0; }
  void Finish() { RunUntil(enqueued_); }

  uint64_t Calls(const std::string& name) const;
  int64_t live() const { return live_; }
  int64_t misuses() const { return misuses_; }
  const FakeNvjpegOptions& options() const { return options_; }

  // For the functions themselves: counts the call; what it shall return.
  int Enter(const char* name);
  void Enqueue(std::function<void()> work);
  void RunUntil(uint64_t count);
  uint64_t enqueued() const { return enqueued_; }
  uint64_t done() const { return done_; }
  void Born() { ++live_; }
  void Died() { --live_; }
  void Misused() { ++misuses_; }

 private:
  FakeNvjpegOptions options_;
  NvjpegFunctions functions_;
  DeviceApi device_;  // only what a decoder calls
  std::deque<std::function<void()>> queue_;
  std::map<std::string, uint64_t> calls_;
  uint64_t enqueued_ = 0, done_ = 0;
  int64_t fail_in_ = INT64_MAX, live_ = 0, misuses_ = 0;
  int code_ = 0;

  void FillDevice();
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_FAKE_NVJPEG_H_
