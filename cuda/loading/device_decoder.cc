#include "cuda/loading/device_decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"
#include "readers/order/order.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<DeviceDecoder>> DeviceDecoder::Create(
    const DeviceApi& api, const DeviceDecode& options, const std::atomic<bool>* stop) {
  if (auto status = CheckCropOptions(options.crop); !status.ok()) return status;
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError("channels are 1 or 3");
  }
  std::unique_ptr<DeviceDecoder> made(new DeviceDecoder(api, options, stop));
  const NvjpegFunctions* functions = options.nvjpeg;
  if (functions == nullptr && api.kind == DeviceKind::kCuda &&
      (options.use_hardware || options.use_hybrid)) {
    absl::StatusOr<NvjpegLibrary> library = NvjpegLibrary::Open();
    if (library.ok()) {
      made->library_.emplace(*std::move(library));
      functions = &made->library_->functions();
    } else {
      made->why_no_library_ = std::string(library.status().message());
    }
  }
  made->decoder_ = std::make_unique<JpegDecoder>(
      functions, api,
      JpegDecoderOptions{.channels = options.channels,
                         .use_hardware = options.use_hardware,
                         .use_hybrid = options.use_hybrid,
                         .orient = options.orient,
                         .threads = options.threads > 0 ? options.threads : AvailableCores(),
                         .max_pixels = options.max_pixels,
                         .max_scans = options.max_scans,
                         .stop = stop});
  return made;
}

DeviceDecoder::~DeviceDecoder() {
  decoder_.reset();
  for (Piece& piece : pieces_) {
    if (piece.memory == nullptr || IsLost(api_)) continue;
    (void)Checked(api_, api_.free(api_.self, piece.memory), "");
  }
}

std::string DeviceDecoder::backends() const {
  return why_no_library_.empty() ? decoder_->backends()
                                 : absl::StrCat("no nvJPEG: ", why_no_library_);
}

// What frees memory waits for the device, consumer's streams included; the host has waited before
// for what reads this piece.
absl::Status DeviceDecoder::Reserve(Piece& piece, size_t bytes) {
  if (bytes <= piece.bytes) return absl::OkStatus();
  absl::Status status;
  if (piece.memory != nullptr) {
    ++growths_;
    piece.bytes = 0;
    status = Checked(api_, api_.free(api_.self, std::exchange(piece.memory, nullptr)),
                     "freeing memory of decoded images");
    if (!status.ok()) return status;
  }
  // A quarter more, so that batches that differ a little do not each come here; if that is too
  // much, what it takes.
  for (const size_t room : {DeviceAligned(bytes + bytes / 4), bytes}) {
    status = Checked(
        api_, api_.allocate(api_.self, &piece.memory, room),
        absl::StrCat("allocating ", room, " bytes on the device for a batch's decoded images"));
    if (status.ok()) {
      piece.bytes = room;
      return status;
    }
    piece.memory = nullptr;
    if (!absl::IsResourceExhausted(status)) return status;
  }
  return status;
}

// A crop that takes nothing from around it is all that the preprocessing gets to see.
PreprocessSample DeviceDecoder::SampleOf(const JpegImage& image,
                                         const SampleIdentity& identity) const {
  const auto [width, height] = SizeOf(image.info, options_.orient);
  const Crop crop = ChooseCrop(options_.crop, width, height, identity);
  PreprocessSample sample = {.pixels = image.out,
                             .width = width,
                             .height = height,
                             .stride_bytes = static_cast<uint32_t>(image.pitch_bytes),
                             .box = crop.box,
                             .mirror = crop.flip};
  if (crop.margin) return sample;
  const auto left = static_cast<uint32_t>(std::floor(crop.box.left));
  const auto top = static_cast<uint32_t>(std::floor(crop.box.top));
  sample.pixels += top * image.pitch_bytes + size_t{left} * options_.channels;
  sample.width = std::min(static_cast<uint32_t>(std::ceil(crop.box.right)), width) - left;
  sample.height = std::min(static_cast<uint32_t>(std::ceil(crop.box.bottom)), height) - top;
  sample.box = {crop.box.left - left, crop.box.top - top, crop.box.right - left,
                crop.box.bottom - top};
  return sample;
}

absl::Status DeviceDecoder::Prepare(const HostBatch& batch, size_t field,
                                    std::span<absl::Status> why) {
  images_.clear();
  places_.clear();
  epoch_ = batch.epoch();
  size_t bytes = 0;
  for (size_t slot = 0; slot < batch.size(); ++slot) {
    why[slot] = absl::OkStatus();
    if (batch.ids()[slot] == kPaddingId) continue;
    const Bytes file = batch.bytes(field, slot);
    if (file.data() == nullptr) {
      why[slot] = absl::DataLossError("the sample has no image");
      continue;
    }
    const absl::StatusOr<ImageInfo> info =
        CheckImage(file, batch.image_infos()[slot], options_.max_pixels);
    if (!info.ok()) {
      why[slot] = info.status();
      continue;
    }
    const auto [width, height] = SizeOf(*info, options_.orient);
    const size_t pitch_bytes = size_t{width} * options_.channels;
    images_.push_back({.file = file, .info = *info, .out = nullptr, .pitch_bytes = pitch_bytes});
    places_.push_back({.slot = slot, .offset = bytes, .id = batch.ids()[slot]});
    bytes += DeviceAligned(pitch_bytes * height);
  }
  Piece& piece = pieces_[piece_];
  absl::Status status = piece.read.Wait();
  if (status.ok()) status = Reserve(piece, bytes);
  // Both at first, when the device has the most memory left.
  Piece& other = pieces_[(piece_ + 1) % pieces_.size()];
  if (status.ok() && other.memory == nullptr) status = Reserve(other, bytes);
  return status;
}

absl::Status DeviceDecoder::Decode(Stream stream, std::span<PreprocessSample> samples,
                                   std::span<absl::Status> why) {
  for (size_t i = 0; i < images_.size(); ++i) {
    images_[i].out = static_cast<uint8_t*>(pieces_[piece_].memory) + places_[i].offset;
  }
  results_.assign(images_.size(), {});
  RETURN_IF_ERROR(decoder_->Decode(images_, stream, results_));
  std::fill(samples.begin(), samples.end(), PreprocessSample());
  for (size_t i = 0; i < images_.size(); ++i) {
    const Place& place = places_[i];
    why[place.slot] = std::move(results_[i].status);
    if (!why[place.slot].ok()) continue;
    samples[place.slot] =
        SampleOf(images_[i], {.seed = options_.augment_seed, .epoch = epoch_, .id = place.id});
  }
  return absl::OkStatus();
}

absl::Status DeviceDecoder::Done(Stream stream) {
  Piece& piece = pieces_[piece_];
  piece_ = (piece_ + 1) % pieces_.size();
  return piece.read.Record(stream);
}

}  // namespace shardpack
