// JpegDecoder: decodes a batch of encoded images to pixels on the device, each by the fastest way
// that can.
//
//   absl::StatusOr<NvjpegLibrary> library = NvjpegLibrary::Open();
//   JpegDecoder decoder(library.ok() ? &library->functions() : nullptr, device, {});
//   absl::Status status = decoder.Decode(images, stream, results);   // one result an image
//
// Three ways: the GPU's JPEG engines, a batch in one call (baseline JPEG); nvJPEG's hybrid decoder
// (Huffman codes on the CPU, the rest on the GPU; progressive JPEG too); and the project's decoder
// on the CPU with a copy to the device, for everything that the others refuse or fail at: other
// formats, CMYK, RGB without YCbCr, truncated files, images that `orient` turns. Which
// of them exist is found out at construction; backends() says it, with the reasons. What the
// engines do not take is spread over `threads`, which then share what they do take
// (decode_balance.h). They parse all headers before, and stay (worker_threads.h). The engines and
// up to four threads have streams of their own (decode_streams.h). With `choose` the first batches
// find out which way is the fastest here, which then takes all that it can (decode_choice.h).
// Pixels have 8 bits, channels interleaved. The ways round differently, by a few levels. The CPU
// decodes and copies the part of an image that is needed; so does nvJPEG, of images that come with
// a room for it (JpegImage::room), once a trial has shown that it is right (region_trial.h).
//
// Lifetime: functions, device and stream outlive the decoder; files and outputs live until the
// stream has run.
// Thread-safety: one thread at a time, one that entered the device (Device::EnterThread).
// Errors: a bad image has its status in its result and others are not touched; Decode itself fails
// only when the device does or `stop` is set (Cancelled), and then all outputs are undefined.
// Damage within a file that has its end is found as far as nvJPEG finds it; readers compare hashes
// before.
// Units: pixels; bytes in names.
#ifndef SHARDPACK_CUDA_JPEG_JPEG_DECODER_H_
#define SHARDPACK_CUDA_JPEG_JPEG_DECODER_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device/device.h"
#include "cuda/dynload/nvjpeg_functions.h"
#include "formats/core/image_info.h"
#include "images/codecs/decode.h"
#include "images/pixels/pixels.h"

namespace shardpack {

// What the outputs hold before the engines write to them, wherever an image skipped by them is to
// be found out: see DecodeSkipped.
inline constexpr uint8_t kUnpainted = 0x6B;

struct JpegDecoderOptions {
  uint8_t channels = 3;  // 1: luma, 3: RGB
  bool use_hardware = true, use_hybrid = true;
  bool orient = false;  // images as they are meant to be seen
  int threads = 1;      // the caller's is one of them, unless it feeds the engines
  // With threads, those take images of the engines too, so that both finish together: more images
  // per second, and pixels that differ by a few levels from run to run.
  bool share = true;
  // The first batches are decoded by each way in turn, waited for and timed; all others by the one
  // that took least, the rest by what it would otherwise go to. Pixels then differ by a few levels
  // from run to run, unless the ways are bit-equal; by more where the CPU may decode at a smaller
  // scale (JpegImage::min_width).
  bool choose = false;
  // Images come with a room where takes_rooms() says so; with `choose`, decoding by region is a way
  // of its own.
  bool regions = false;
  // Batches that the engines, images that each thread's hybrid decoder may have under way.
  uint32_t hardware_batches = 2, hybrid_pages = 2;
  uint64_t max_pixels = 64'000'000;                // of an image
  uint32_t max_scans = DecodeOptions().max_scans;  // of a progressive JPEG
  uint64_t nvjpeg_bytes = uint64_t{1} << 30;       // on the device, at most, of nvJPEG itself
  const std::atomic<bool>* stop = nullptr;         // ends waiting for the device
  std::function<double()> now_us = nullptr;        // for tests: the clock of `choose`
};

enum class JpegWay : uint8_t { kNone, kHardware, kHybrid, kCpu };

struct JpegImage {
  std::span<const std::byte> file;
  // What is known of it; `out` has room for its width and height, swapped if `orient` turns it. An
  // image of another size has an error in its result.
  ImageInfo info;
  uint8_t* out = nullptr;  // device
  size_t pitch_bytes = 0;  // at least what a row has
  // Of the pixels in `out`, those that are needed; empty: all.
  PixelRegion region = {};
  // The part of the image, with the region in it, that `out` has room for, whose rows are
  // pitch_bytes apart: RoomFor. Empty: all of it. Not with `orient`.
  PixelRegion room = {};
  // DecodeOptions::min_width and min_height of the region. Where `choose` lets the CPU decode all,
  // it does that at the scale for them.
  uint32_t min_width = 0, min_height = 0;
  // By which the image is known when it comes again: the engines are not offered again what they
  // refused.
  std::optional<uint64_t> id = std::nullopt;
};

// What is known of an image, from `info` or else its headers. InvalidArgument if it has no pixels,
// ResourceExhausted if it has too many, DataLoss.
absl::StatusOr<ImageInfo> CheckImage(std::span<const std::byte> file, const ImageInfo& info,
                                     uint64_t max_pixels);

// Pixels in a row of an image, and its rows: as stored, or as it is meant to be seen.
struct JpegSize {
  uint32_t width = 0, height = 0;
};
JpegSize SizeOf(const ImageInfo& info, bool orient);

// What nvJPEG decodes of an image of which the region is needed: a little more, since before 13.2
// it does not interpolate the chroma of a part's outermost pixels as that of the whole image
// (release notes of CUDA 13.3), and whole blocks. Empty: the whole image.
PixelRegion RoomFor(const ImageInfo& info, const PixelRegion& region);
// What `out` has room for, and how much that is.
PixelRegion PartOf(const JpegImage& image);
size_t OutBytesOf(const JpegImage& image);

struct JpegResult {
  absl::Status status;
  JpegWay way = JpegWay::kNone;
  // Only the region was decoded. It lies at the beginning of `out`, its rows without gaps; damage
  // of a JPEG after it was not found.
  bool packed = false;
  DecodedImage decoded = {};  // packed: what lies there, without its pixels
};

struct JpegDecoderStats {
  uint64_t hardware = 0, hybrid = 0, cpu = 0, failed = 0;  // images
  uint64_t batches = 0;                                    // by the engines
  uint64_t failed_batches = 0;  // of which the engines refused some or all
  uint64_t skipped = 0;         // images that the engines said they had decoded, and had not
  uint64_t refused = 0;         // JPEGs that nvJPEG refused and the CPU decoded
  uint64_t without_nvjpeg = 0;  // JPEGs that nvJPEG would take, on a thread that has none
  uint64_t pageable = 0;        // of cpu: copied from memory that is not page-locked
  // Wall time an image, of all engines and of one thread, as last measured; 0: not measured.
  double engine_us = 0, lane_us = 0;
  uint64_t regions = 0;  // of hardware and hybrid: of which only a part was decoded
  // Why nvJPEG, or a way of it, decodes no parts, though some were asked for.
  std::string why_whole;
  std::string first_refusal;  // why the first of the batches or JPEGs was refused
  std::string choice;         // DecodeChoice::Describe
  // That nvJPEG has now, and times that it was refused some; 0 with one that uses its own.
  uint64_t nvjpeg_bytes = 0, nvjpeg_pinned_bytes = 0, nvjpeg_refusals = 0;
};

class JpegDecoder {
 public:
  // Without functions everything is decoded on the CPU.
  JpegDecoder(const NvjpegFunctions* functions, Device& device, const JpegDecoderOptions& options);
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  // Waits for what is under way, unless stopped: then nothing may be under way.
  ~JpegDecoder();

  // One result an image. Work is enqueued on the stream; the host waits only for earlier work whose
  // memory is needed again, and with `choose`, while that measures, for this batch. Nothing that is
  // enqueued anywhere may still use the outputs: the engines write to them at once.
  absl::Status Decode(std::span<const JpegImage> images, Stream stream,
                      std::span<JpegResult> results);

  // Whether the images of the next batch should have a room: not where nvJPEG decodes whole images.
  // Before the first ones that do, TryRegions finds that out with such images, whose outputs are
  // not used; Decode does it too, but whose room is then for a part the CPU decodes.
  bool takes_rooms() const;
  absl::Status TryRegions(std::span<const JpegImage> images, Stream stream);

  // Decodes an image on the CPU of which some bytes, at these offsets from its first one, are still
  // kUnpainted although the engines said they had decoded it; unless the image is of that colour
  // there. The result is then not touched. As much of it is decoded as by the engines.
  absl::Status DecodeSkipped(const JpegImage& image, std::span<const size_t> unpainted,
                             Stream stream, JpegResult* result, bool* skipped);

  // Whether all work has run that was enqueued, by calls that failed too. If not, it must not be
  // destroyed.
  bool WaitUntilIdle(std::chrono::milliseconds patience) const;

  // Whether the engines are asked now: they rest after failures.
  bool has_hardware() const;
  // Whether the next batch may go to them: not once `choose` has chosen another way.
  bool may_use_hardware() const;
  bool has_hybrid() const;
  // "hardware: 7 engines; hybrid: yes" or why not.
  std::string backends() const;
  JpegDecoderStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardpack

#endif  // SHARDPACK_CUDA_JPEG_JPEG_DECODER_H_
