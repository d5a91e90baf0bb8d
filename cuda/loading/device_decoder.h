// DeviceDecoder: decodes the encoded images of a host batch to pixels on the device, and says which
// part of each the preprocessing takes.
//
//   auto decoder = DeviceDecoder::Create(device, decode, &stop);
//   absl::Status status = (*decoder)->Prepare(batch, 0, stream, why);   // room for it
//   status = (*decoder)->Decode(stream, samples, why);
//   ...                                     // enqueued after it: what reads samples[i].pixels
//   status = (*decoder)->Done(stream);      // of what reads them
//   if ((*decoder)->has_to_check()) again = (*decoder)->Check(stream, why);
//
// Images are decoded by JpegDecoder (cuda/jpeg/jpeg_decoder.h) into one of two pieces of device
// memory, which grow when a batch needs more than any before: what the crop takes of them, and a
// little more where nvJPEG decodes; or whole, if nvJPEG cannot decode parts, or the filter reads
// beyond the crop. Crops and flips are those that the Loader would choose
// (images/augment/crop.h: a function of seed, epoch and id). The result differs from that of the
// Loader's own decoding if that decodes a JPEG at a smaller scale, as here only the CPU does where
// `choose` has chosen it. The host waits until the piece's
// last batch was read, since the engines do not (cuda/jpeg/nvjpeg_backends.h). Nor do they always
// write what they say (skipped_images.h): a piece is filled with kUnpainted before, and Check
// decodes again on the CPU what they skipped.
//
// Lifetime: the device outlives it; the batch lives until the stream has run.
// Thread-safety: one thread at a time, one that entered the device, always with the same streams.
// Errors: those of an image in `why`, its sample without pixels; ResourceExhausted from Prepare,
// which may be called again; all others are the device's, or Cancelled by `stop`.
// Units: bytes, pixels.
#ifndef SHARDPACK_CUDA_LOADING_DEVICE_DECODER_H_
#define SHARDPACK_CUDA_LOADING_DEVICE_DECODER_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "augment/plan.h"
#include "cuda/device/device.h"
#include "cuda/device/device_event.h"
#include "cuda/dynload/nvjpeg_library.h"
#include "cuda/jpeg/jpeg_decoder.h"
#include "cuda/loading/skipped_images.h"
#include "formats/io/rank_cores.h"
#include "images/augment/crop.h"
#include "readers/loading/host_batch.h"

namespace shardpack {

struct DeviceDecode {
  CropOptions crop = {};
  uint64_t augment_seed = 0;  // of random crops and flips
  uint8_t channels = 3;       // 1: gray, 3: RGB
  bool orient = true;
  // After crop, resize and flip; drawn as a Loader's with the same seed. What a device cannot do
  // (device_augment.h) is done by the CPU, together with all decoding, and said; or it is an error.
  AugmentPlan augment = {};
  bool augment_on_device_only = false;
  uint64_t max_pixels = JpegDecoderOptions().max_pixels;  // of an image
  uint32_t max_scans = JpegDecoderOptions().max_scans;    // of a progressive JPEG
  int threads =
      0;  // for what the GPU's engines do not take; 0: CoresOfRank (formats/io/rank_cores.h)
  bool use_hardware = true, use_hybrid = true;
  bool share = true;    // JpegDecoderOptions::share
  bool choose = false;  // JpegDecoderOptions::choose
  // Of random crops nvJPEG decodes what they take, once that was seen to be right; `choose` tries
  // it in any case. Off by default as long as no GPU has confirmed it (docs/decisions/0034).
  bool regions = false;
  uint64_t nvjpeg_bytes = JpegDecoderOptions().nvjpeg_bytes;  // on the device, of nvJPEG itself
  // nullptr: NvjpegLibrary::Open, if the device is a GPU.
  const NvjpegFunctions* nvjpeg = nullptr;
};

class DeviceDecoder {
 public:
  // `stop`, which may be nullptr, ends waiting for the device.
  static absl::StatusOr<std::unique_ptr<DeviceDecoder>> Create(Device& device,
                                                               const DeviceDecode& options,
                                                               const std::atomic<bool>* stop);
  ~DeviceDecoder();

  // `field` holds the images; `why` has one status a slot.
  absl::Status Prepare(const HostBatch& batch, size_t field, Stream stream,
                       std::span<absl::Status> why);
  // For the batch that was prepared, which is still alive. One sample a slot; padding has no
  // pixels.
  absl::Status Decode(Stream stream, std::span<PreprocessSample> samples,
                      std::span<absl::Status> why);
  absl::Status Done(Stream stream);
  // Whether the batch that was decoded last has to be checked, before the next but one.
  bool has_to_check() const { return has_to_check_; }
  // Of the oldest batch that was not; its files are still there. Waits for its decoding. What the
  // CPU then decodes is enqueued on `stream`, and those slots are the result, in `why` those that
  // it cannot decode. After what reads them again: CheckDone.
  absl::StatusOr<std::vector<size_t>> Check(Stream stream, std::span<absl::Status> why);
  absl::Status CheckDone(Stream stream);

  // As JpegDecoder::WaitUntilIdle.
  bool WaitUntilIdle(std::chrono::milliseconds patience) const {
    return decoder_->WaitUntilIdle(patience);
  }
  JpegDecoderStats stats() const { return decoder_->stats(); }
  bool has_hardware() const { return decoder_->has_hardware(); }
  bool has_hybrid() const { return decoder_->has_hybrid(); }
  // JpegDecoder::backends, or why there is no nvJPEG.
  std::string backends() const;
  int threads() const { return threads_; }
  // nvJPEG's included.
  uint64_t memory_bytes() const {
    return pieces_[0].bytes + pieces_[1].bytes + decoder_->stats().nvjpeg_bytes;
  }
  uint64_t growths() const { return growths_; }  // after the first allocation of a piece

 private:
  // Images of one batch, until the preprocessing has read them.
  struct Piece {
    Piece(Device& device, const std::atomic<bool>* stop)
        : read(device, stop), skipped(device, stop) {}
    void* memory = nullptr;
    size_t bytes = 0;
    bool unpainted = false;  // filled, when `read` is done
    DeviceEvent read;
    SkippedImages skipped;
  };
  // An image of the batch: its slot, the offset of its pixels in the piece, and its sample, which
  // has no pixels until it is known who decoded it.
  struct DecodedSlot {
    size_t slot, offset;
    PreprocessSample sample;
    PixelBox crop;      // of the image as stored
    bool part = false;  // of the image is all that is read
  };

  DeviceDecoder(Device& device, const DeviceDecode& options, const std::atomic<bool>* stop)
      : device_(device),
        options_(options),
        threads_(options.threads > 0 ? options.threads : CoresOfRank()),
        pieces_{Piece(device, stop), Piece(device, stop)} {}
  absl::Status Reserve(Piece& piece, size_t bytes);
  // For the next batch, once the stream has read it.
  absl::Status MakeReady(Piece& piece, Stream stream);
  absl::Status Unpaint(Piece& piece, Stream stream);
  // Places the images in the piece, parts of them or whole ones, and makes room.
  absl::Status Arrange(size_t slots);
  // Sets the sample and the crop of the slot, and what of the image is needed for them.
  void Take(const SampleIdentity& identity, DecodedSlot& slot, JpegImage& image) const;
  void PointAt(const JpegImage& image, const JpegResult& result, const DecodedSlot& slot,
               PreprocessSample& sample) const;

  Device& device_;
  const DeviceDecode options_;
  const int threads_;
  std::optional<NvjpegLibrary> library_;
  std::string why_no_library_;
  std::array<Piece, 2> pieces_;
  size_t piece_ = 0;           // the next one
  bool has_to_check_ = false;  // the one before
  std::deque<size_t> checks_;  // pieces
  size_t checked_ = 0;         // the last of them
  uint64_t growths_ = 0;
  std::unique_ptr<JpegDecoder> decoder_;
  // For one batch.
  std::vector<JpegImage> images_;
  std::vector<DecodedSlot> slots_;  // one an image
  std::vector<JpegResult> results_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_LOADING_DEVICE_DECODER_H_
