// TestDevice: what a test runs on: the fake device, or the GPU of this machine.
//
//   TestDevice device({.seed = 3});
//   ASSERT_TRUE(device.ok()) << device.why();     // a GPU that is missing is a failure
//   if (FakeDevice* fake = device.fake()) EXPECT_THAT(fake->misuses(), IsEmpty());
//
// Two targets implement it, :test_device and :test_gpu, so that the same sources are tests of both.
//
// Lifetime: as FakeDevice.
// Thread-safety: any thread.
// Errors: aborts.
// Units: bytes.
#ifndef SHARDPACK_CUDA_TESTING_TEST_DEVICE_H_
#define SHARDPACK_CUDA_TESTING_TEST_DEVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "cuda/dynload/nvjpeg_functions.h"
#include "cuda/testing/fake_device.h"

namespace shardpack {

class FakeNvjpeg;

class TestDevice {
 public:
  explicit TestDevice(const FakeOptions& options = {});
  ~TestDevice();

  bool ok() const { return device_ != nullptr; }
  const std::string& why() const { return why_; }
  Device& get() const { return *device_; }
  FakeDevice* fake() { return fake_.get(); }  // nullptr on a GPU
  // For DeviceDecode::nvjpeg: the fake's; nullptr, which is the machine's own, on a GPU.
  const NvjpegFunctions* nvjpeg() const;
  // Whether it is of a kind that has JPEG engines: A100 and A30, Ada, Hopper and newer.
  bool should_have_engines() const;

  Stream MakeStream();
  void* Allocate(size_t bytes);
  void Free(void* memory);
  // A CUDA graph of what `enqueue` puts on the stream: each call launches it there. The last one
  // has run before it ends.
  std::function<void()> Capture(Stream stream, const std::function<void()>& enqueue);
  // After everything that was enqueued on the stream.
  std::string Read(const void* from, size_t bytes, Stream stream);

 private:
  std::unique_ptr<FakeDevice> fake_;
  std::unique_ptr<FakeNvjpeg> fake_nvjpeg_;
  Device* device_ = nullptr;
  std::string why_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_TEST_DEVICE_H_
