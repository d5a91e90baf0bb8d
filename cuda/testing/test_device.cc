#include "cuda/testing/test_device.h"

#include <cstdio>
#include <cstdlib>

namespace shardpack {
namespace {

void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

template <typename T>
T Must(const absl::StatusOr<T>& value) {
  Must(value.status());
  return *value;
}

}  // namespace

Stream TestDevice::MakeStream() { return Must(device_->CreateStream()); }

void* TestDevice::Allocate(size_t bytes) { return Must(device_->Allocate(bytes, "a test")); }

void TestDevice::Free(void* memory) { Must(device_->Free(memory)); }

std::string TestDevice::Read(const void* from, size_t bytes, Stream stream) {
  std::string host(bytes, '\0');
  Must(device_->CopyToHost(host.data(), from, bytes, stream));
  Must(device_->Synchronize(stream));
  return host;
}

}  // namespace shardpack
