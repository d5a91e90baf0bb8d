// RecordingConsumer: keeps all batches on the device, and looks at them only at the end, so that
// nothing but events orders its work and that of the loader.
//
//   RecordingConsumer consumer(device, pixel_bytes, 16);
//   consumer.Put(**std::move(batch));                 // enqueues copies, releases the batch
//   std::vector<DeviceCopy> got = consumer.Finish();
//
// Lifetime: the device outlives it.
// Thread-safety: one thread at a time.
// Errors: test failures.
// Units: bytes.
#ifndef SHARDPACK_CUDA_TESTING_RECORDING_CONSUMER_H_
#define SHARDPACK_CUDA_TESTING_RECORDING_CONSUMER_H_

#include <string>
#include <vector>

#include "cuda/loading/device_batch.h"
#include "cuda/testing/test_device.h"

namespace shardpack {

struct DeviceCopy {
  BatchInfo info;
  std::vector<int64_t> labels;
  std::string pixels;
  std::vector<std::string> images;
};

class RecordingConsumer {
 public:
  // pixel_bytes 0: batches of encoded bytes.
  RecordingConsumer(TestDevice& device, size_t pixel_bytes, size_t batches);
  ~RecordingConsumer();

  // False when a call failed.
  bool Put(DeviceBatch batch);
  std::vector<DeviceCopy> Finish();
  Stream stream() const { return stream_; }

 private:
  struct Kept {
    BatchInfo info;
    size_t at = 0;                    // labels, then pixels or images
    std::vector<size_t> image_bytes;  // a slot each
  };
  bool CopyHere(const void* from, size_t bytes);

  TestDevice& device_;
  const size_t pixel_bytes_;
  Stream stream_;
  size_t room_, used_ = 0;
  void* memory_;
  std::vector<Kept> kept_;
};

// Of two rows of halves.
void ExpectCloseHalves(const std::string& got, const std::string& wanted, double most);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_RECORDING_CONSUMER_H_
