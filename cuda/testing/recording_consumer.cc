#include "cuda/testing/recording_consumer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "gtest/gtest.h"

namespace shardpack {
namespace {

constexpr size_t kRawBytes = 64 << 10;  // a batch

double HalfValue(uint16_t half) {
  const int exponent = half >> 10 & 31, digits = half & 1023;
  const double size =
      exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(1024 + digits, exponent - 25);
  return half >> 15 ? -size : size;
}

}  // namespace

RecordingConsumer::RecordingConsumer(TestDevice& device, size_t pixel_bytes, size_t batches)
    : device_(device),
      pixel_bytes_(pixel_bytes),
      stream_(device.MakeStream()),
      room_(batches * (std::max(pixel_bytes, kRawBytes) + 1024)),
      memory_(device.Allocate(room_)) {}

RecordingConsumer::~RecordingConsumer() {
  Device& device = device_.get();
  if (device.lost()) return;
  (void)device.Synchronize(stream_);
  (void)device.Free(memory_);
  (void)device.DestroyStream(stream_);
}

bool RecordingConsumer::CopyHere(const void* from, size_t bytes) {
  if (used_ + bytes > room_) {
    ADD_FAILURE() << "the consumer has too little memory";
    return false;
  }
  char* const to = static_cast<char*>(memory_) + used_;
  used_ += bytes;
  return device_.get().CopyWithin(to, from, bytes, stream_).ok();
}

bool RecordingConsumer::Put(DeviceBatch batch) {
  if (!batch.WaitOn(stream_).ok()) return false;
  Kept kept{.info = batch.info(), .at = used_, .image_bytes = {}};
  bool ok = CopyHere(batch.labels()->data, batch.labels()->bytes());
  if (pixel_bytes_ > 0) {
    ok = ok && CopyHere(batch.pixels()->data, pixel_bytes_);
  } else {
    for (size_t slot = 0; slot < batch.size(); ++slot) {
      const DeviceBytes bytes = batch.bytes(0, slot);
      kept.image_bytes.push_back(bytes.size);
      ok = ok && (bytes.size == 0 || CopyHere(bytes.data, bytes.size));
    }
  }
  kept_.push_back(std::move(kept));
  if (kept_.size() % 2 == 0) return ok && batch.Release(stream_).ok();
  return ok;  // the destructor of the batch does the same
}

std::vector<DeviceCopy> RecordingConsumer::Finish() {
  const std::string all = device_.Read(memory_, used_, stream_);
  std::vector<DeviceCopy> copies;
  for (Kept& kept : kept_) {
    DeviceCopy copy{.info = std::move(kept.info), .labels = {}, .pixels = {}, .images = {}};
    size_t at = kept.at;
    copy.labels.resize(copy.info.ids.size());
    std::memcpy(copy.labels.data(), all.data() + at, copy.labels.size() * sizeof(int64_t));
    at += copy.labels.size() * sizeof(int64_t);
    copy.pixels = all.substr(at, pixel_bytes_);
    for (const size_t bytes : kept.image_bytes) {
      copy.images.push_back(all.substr(at, bytes));
      at += bytes;
    }
    copies.push_back(std::move(copy));
  }
  return copies;
}

void ExpectCloseHalves(const std::string& got, const std::string& wanted, double most) {
  ASSERT_EQ(got.size(), wanted.size());
  double largest = 0;
  for (size_t i = 0; i + 1 < got.size(); i += 2) {
    uint16_t a = 0, b = 0;
    std::memcpy(&a, got.data() + i, 2);
    std::memcpy(&b, wanted.data() + i, 2);
    largest = std::max(largest, std::abs(HalfValue(a) - HalfValue(b)));
  }
  EXPECT_LE(largest, most);
}

}  // namespace shardpack
