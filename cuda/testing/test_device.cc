#include "cuda/testing/test_device.h"

#include <cstdio>
#include <cstdlib>

namespace shardpack {
namespace {

void Must(const DeviceStatus& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.name);
  std::abort();
}

}  // namespace

Stream TestDevice::MakeStream() {
  Stream stream = nullptr;
  Must(api_->stream_create(api_->self, &stream), "stream_create");
  return stream;
}

void* TestDevice::Allocate(size_t bytes) {
  void* memory = nullptr;
  Must(api_->allocate(api_->self, &memory, bytes), "allocate");
  return memory;
}

void TestDevice::Free(void* memory) { Must(api_->free(api_->self, memory), "free"); }

std::string TestDevice::Read(const void* device, size_t bytes, Stream stream) {
  std::string host(bytes, '\0');
  Must(api_->copy_to_host(api_->self, host.data(), device, bytes, stream), "copy_to_host");
  Must(api_->stream_synchronize(api_->self, stream), "stream_synchronize");
  return host;
}

}  // namespace shardpack
