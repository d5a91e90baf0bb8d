// DeviceLoader: the batches of a Loader, on the device, copied ahead of the consumer.
//
//   PinnedMemory memory(device);
//   auto loader = OpenPinnedLoader(dataset, order, rank, options, memory);
//   auto batches = DeviceLoader::Open(*std::move(loader), device_options, device);
//   while (auto batch = *batches->Next()) { batch->WaitOn(stream); ...; batch->Release(stream); }
//
// One thread takes host batches, enqueues a copy for each slab on a stream of copies, the
// preprocessing on a second stream, and queues the batch; it waits for the consumer and for the
// Loader, not for the device (but see `decode`), and gives slabs back when an event says that their
// copy is done. Buffers on the device are allocated once. Next gives what Loader::Next gives, in
// the same order, with nullopt at the end of an epoch; its cursor counts batches that Next gave.
//
// What a batch holds: pixels, if the Loader decodes to 8-bit pixels in NHWC (OutputFormat's
// default), preprocessed on the device if the options say so, padding to zeros; else encoded bytes.
// With `decode` the images are decoded for the device (cuda/loading/device_decoder.h): by its
// engines, nvJPEG or threads of the CPU, into memory for two batches of whole images, beside the
// buffers; before the third is decoded the thread waits until the first was preprocessed. Without a
// GPU the same works with HostDevice::Get(): batches in host memory.
//
// Lifetime: the device, and the Loader's HostMemory, outlive it and its batches; batches may
// outlive it. The destructor stops it.
// Thread-safety: one caller of Next and NextInto at a time; Stop, cursor, stats from any thread.
// Not across fork: in the child Next is FailedPrecondition.
// Errors: of Open, Unimplemented for a Loader of several views, mixed samples, masks or other
// decoded fields, and InvalidArgument for the cursor of a run with another `decode->augment`; those
// of Loader::Next; ResourceExhausted (less memory has been tried); Unavailable for a lost device:
// at once, for every caller, for good, with the first cause; DeadlineExceeded when no buffer came
// back within `patience`, naming the batches that hold them (a later call may succeed); Cancelled
// after Stop.
// Units: bytes.
#ifndef SHARDPACK_CUDA_LOADING_DEVICE_LOADER_H_
#define SHARDPACK_CUDA_LOADING_DEVICE_LOADER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "cuda/loading/device_batch.h"
#include "cuda/loading/device_decoder.h"
#include "cuda/loading/pinned_memory.h"
#include "readers/loading/loader.h"

namespace shardpack {

struct DevicePreprocess {
  OutputFormat output = {.type = PixelType::kF16, .layout = PixelLayout::kNchw};
  uint32_t width = 0, height = 0;  // 0: as the Loader decodes them
  ResizeFilter filter = ResizeFilter::kBilinear;
};

// What is done about an image that cannot be decoded; the Loader handles those that cannot be read.
struct DeviceBadImages {
  // kSubstitute: the sample of the next slot of this batch that could be decoded stands in.
  BadSamples policy = BadSamples::kFail;
  uint64_t most = 100;  // substituted over the life of the loader; more are an error
};

struct DeviceOptions {
  uint32_t prefetch_batches = 2;  // ready or on their way; there are 2 more buffers than that
  std::optional<DevicePreprocess> preprocess = std::nullopt;
  // For a Loader without a decoder, with LoaderOptions::image_infos; needs `preprocess`, whose
  // width and height are the crop's.
  std::optional<DeviceDecode> decode = std::nullopt;
  DeviceBadImages bad_images = {};
  bool labels = true;    // are copied too
  size_t raw_bytes = 0;  // room for a batch's encoded bytes; 0: a quarter more than the first one's
  std::chrono::milliseconds patience{30'000};      // for a consumer that holds all buffers
  std::chrono::milliseconds stop_patience{5'000};  // for the device, when all ends
  std::function<void(const std::string&)> log = LogToStderr;
};

struct DeviceLoaderStats {
  LoaderStats host;
  uint64_t batches = 0;  // delivered
  uint64_t uploads = 0, uploaded_bytes = 0;
  uint64_t waits = 0;             // calls of Next that found no batch ready
  uint64_t consumer_wait_ns = 0;  // within Next
  uint64_t buffer_wait_ns = 0;    // all buffers were held
  uint64_t copy_wait_ns = 0;      // as many copies as allowed were under way
  uint32_t buffers = 0;
  uint64_t device_bytes = 0;
  uint64_t shrinks = 0, growths = 0;  // of what is allocated on the device
  uint64_t fallbacks = 0;             // things that the device cannot do and were done otherwise
  bool pinned = false;                // the Loader's memory
  std::string why_fallback;           // the first one
  JpegDecoderStats decode;            // with DeviceOptions::decode
  std::string decode_backends;        // JpegDecoder::backends
  int decode_threads = 0;             // of the CPU, for what the engines do not take
  int ranks = 1;                      // of this node, which share its cores: RanksOfNode
};

using AskAt = std::chrono::steady_clock::time_point;

// Where a loader puts a batch: memory on the device that belongs to the consumer.
struct DeviceTarget {
  void* pixels = nullptr;
  size_t pixel_bytes = 0;     // exactly those of a batch
  int64_t* labels = nullptr;  // may be nullptr
  size_t label_bytes = 0;     // exactly those of a batch; 0: not checked
};

// InvalidArgument if it has no room for exactly such a batch.
absl::Status CheckTarget(const DeviceTarget& target, size_t pixel_bytes, size_t slots);

class DeviceLoader {
 public:
  // Takes the first batch from the loader, to know the sizes, and allocates everything. Cancelled
  // if it was interrupted while it waited for that batch; the loader is gone then.
  static absl::StatusOr<DeviceLoader> Open(Loader loader, const DeviceOptions& options,
                                           Device& device,
                                           const Interrupted& interrupted = nullptr);
  DeviceLoader(DeviceLoader&&) noexcept;
  DeviceLoader& operator=(DeviceLoader&&) noexcept;
  ~DeviceLoader();

  // Cancelled if it was interrupted while it waited; the next call gives that batch. `interrupted`
  // is asked at the time `ask_at` too, which may have passed.
  absl::StatusOr<std::optional<DeviceBatch>> Next(const Interrupted& interrupted = nullptr,
                                                  AskAt ask_at = AskAt::max());
  // For graphs, whose memory has fixed addresses: copies the next batch to `target`, on the stream,
  // after what is already enqueued on it.
  absl::StatusOr<std::optional<BatchInfo>> NextInto(const DeviceTarget& target, Stream stream);
  Cursor cursor() const;
  DeviceLoaderStats stats() const;
  std::vector<BadSample> TakeBadSamples();  // in batches that Next gave
  // Ends all work; a waiting Next returns Cancelled.
  void Stop();

 private:
  class Core;
  explicit DeviceLoader(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DEVICE_LOADER_H_
