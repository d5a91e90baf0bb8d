// Images decoded for a device by a DeviceLoader over a LoaderFixture, and what came of it.
//
//   DeviceOptions options = Decoding(data, &nvjpeg.functions());
//   const Outcome got = RunEpochs(fake, data, options, 2);
//   ExpectEqual(got.batches, RunEpochs(HostDevice::Get(), data, Decoding(data, nullptr)).batches);
//
// Lifetime: values.
// Errors: those of the loader, in the outcome.
#ifndef SHARDPACK_CUDA_TESTING_DECODE_OUTCOME_H_
#define SHARDPACK_CUDA_TESTING_DECODE_OUTCOME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/loading/device_loader.h"
#include "cuda/testing/loader_fixture.h"

namespace shardpack {

// Under the thread sanitizer, which takes ten times as long, loops over all that may fail try one
// in so many, and loops over much of the same fewer of it.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kIsSlow = true;
inline constexpr uint64_t kEvery = 7;
#else
inline constexpr bool kIsSlow = false;
inline constexpr uint64_t kEvery = 1;
#endif

std::string TestName();  // of the test that runs

// What the fixture's Loader would decode, decoded for the device.
DeviceOptions Decoding(const LoaderFixture& data, const NvjpegFunctions* nvjpeg, int threads = 1);
// The Loader of encoded images for it.
LoaderOptions Encoded(const LoaderFixture& data, uint64_t epochs = 1);

// A loader of them that is open, and its memory.
class OpenDecoding {
 public:
  OpenDecoding(Device& device, const LoaderFixture& data, const DeviceOptions& options,
               const LoaderOptions& encoded)
      : memory_(device, {.log = nullptr}), loader_(Open(device, data, options, encoded)) {}

  const absl::Status& status() const { return loader_.status(); }
  bool ok() const { return loader_.ok(); }
  DeviceLoader* operator->() { return &*loader_; }
  void Close() { loader_ = absl::CancelledError(); }

 private:
  absl::StatusOr<DeviceLoader> Open(Device& device, const LoaderFixture& data,
                                    const DeviceOptions& options, const LoaderOptions& encoded);

  PinnedMemory memory_;
  absl::StatusOr<DeviceLoader> loader_;
};

struct Delivered {
  BatchInfo info;
  std::vector<int64_t> labels;
  std::string pixels;
};

struct Outcome {
  std::vector<absl::Status> errors;
  std::vector<Delivered> batches;
  std::vector<BadSample> bad;
  DeviceLoaderStats stats;
};

Outcome RunEpochs(Device& device, const LoaderFixture& data, const DeviceOptions& options,
                  uint64_t epochs = 1, BadSamples unread = BadSamples::kFail);

// Compares with the Loader's own decoding, whose resize rounds its weights differently.
void ExpectClose(const std::vector<Delivered>& got, const std::vector<HostCopy>& expected);
void ExpectEqual(const std::vector<Delivered>& got, const std::vector<Delivered>& expected);

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_TESTING_DECODE_OUTCOME_H_
