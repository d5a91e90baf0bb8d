#include "cuda/loading/device_decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/resources.h"
#include "formats/io/status_macros.h"
#include "images/augment/pixel_pipeline.h"
#include "readers/order/order.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<DeviceDecoder>> DeviceDecoder::Create(
    Device& device, const DeviceDecode& options, const std::atomic<bool>* stop) {
  RETURN_IF_ERROR(CheckCropOptions(options.crop));
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError("channels are 1 or 3");
  }
  std::unique_ptr<DeviceDecoder> made(new DeviceDecoder(device, options, stop));
  const NvjpegFunctions* functions = options.nvjpeg;
  if (functions == nullptr && device.kind() == DeviceKind::kCuda &&
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
      functions, device,
      JpegDecoderOptions{.channels = options.channels,
                         .use_hardware = options.use_hardware,
                         .use_hybrid = options.use_hybrid,
                         .orient = false,  // the preprocessing does that
                         .threads = made->threads(),
                         .share = options.share,
                         .choose = options.choose,
                         .regions = (options.regions || options.choose) &&
                                    options.crop.kind == CropKind::kRandomResized,
                         .max_pixels = options.max_pixels,
                         .max_scans = options.max_scans,
                         .nvjpeg_bytes = options.nvjpeg_bytes,
                         .stop = stop});
  return made;
}

DeviceDecoder::~DeviceDecoder() {
  decoder_.reset();
  for (Piece& piece : pieces_) {
    if (piece.memory == nullptr || device_.lost()) continue;
    (void)device_.Free(piece.memory);
  }
}

std::string DeviceDecoder::backends() const {
  return why_no_library_.empty() ? decoder_->backends()
                                 : absl::StrCat("no nvJPEG: ", why_no_library_);
}

// Freeing memory waits for the device, the consumer's streams included; the host has already waited
// for what reads this piece.
absl::Status DeviceDecoder::Reserve(Piece& piece, size_t bytes) {
  if (bytes <= piece.bytes) return absl::OkStatus();
  if (piece.memory != nullptr) {
    ++growths_;
    piece.bytes = 0;
    piece.unpainted = false;
    RETURN_IF_ERROR(device_.Free(std::exchange(piece.memory, nullptr)));
  }
  // A quarter more, so that batches that differ a little do not each allocate; exactly what the
  // batch takes if that is too much.
  absl::StatusOr<void*> memory;
  for (const size_t room : {DeviceAligned(bytes + bytes / 4), bytes}) {
    memory = device_.Allocate(room, "a batch's decoded images");
    if (memory.ok()) {
      piece.memory = *memory;
      piece.bytes = room;
      return absl::OkStatus();
    }
    if (!absl::IsResourceExhausted(memory.status())) break;
  }
  return memory.status();
}

// Where the crop reads no pixel beyond its edges, the preprocessing is given the crop alone.
void DeviceDecoder::Take(const SampleIdentity& identity, DecodedSlot& slot,
                         JpegImage& image) const {
  const ImageInfo& info = image.info;
  // The kernel turns it.
  const Orientation turn = OrientationOf(options_.orient ? info.orientation : 1);
  const auto [width, height] = SizeOf(info, options_.orient);
  const Crop crop = ChooseCrop(options_.crop, width, height, identity);
  PreprocessSample& sample = slot.sample = {.pixels = nullptr,
                                            .width = width,
                                            .height = height,
                                            .stride_bytes = 0,
                                            .box = crop.box,
                                            .mirror = crop.flip,
                                            .turn = turn};
  slot.crop = ToStored(turn, crop.box, info.width, info.height);
  uint32_t out_width = options_.crop.width, out_height = options_.crop.height;
  if (turn.transpose) std::swap(out_width, out_height);
  PixelRegion& region = image.region = {0, 0, info.width, info.height};
  const auto set_least_size = [&] {
    const PixelBox& box = slot.crop;
    image.min_width = LeastDecodedSize(region.width, box.right - box.left, out_width);
    image.min_height = LeastDecodedSize(region.height, box.bottom - box.top, out_height);
  };
  if (crop.margin) return set_least_size();
  const auto left = static_cast<uint32_t>(std::floor(crop.box.left));
  const auto top = static_cast<uint32_t>(std::floor(crop.box.top));
  sample.width = std::min(static_cast<uint32_t>(std::ceil(crop.box.right)), width) - left;
  sample.height = std::min(static_cast<uint32_t>(std::ceil(crop.box.bottom)), height) - top;
  sample.box = {crop.box.left - left, crop.box.top - top, crop.box.right - left,
                crop.box.bottom - top};
  region =
      ToStored(turn, PixelRegion{left, top, sample.width, sample.height}, info.width, info.height);
  set_least_size();
  slot.part = true;
}

void DeviceDecoder::PointAt(const JpegImage& image, const JpegResult& result,
                            const DecodedSlot& slot, PreprocessSample& sample) const {
  sample = slot.sample;
  sample.pixels = image.out;
  size_t pitch_bytes = image.pitch_bytes;
  if (result.packed) {
    const DecodedImage& decoded = result.decoded;
    pitch_bytes = size_t{decoded.view.width} * options_.channels;
    if (decoded.scale > 1) {
      const uint32_t width = decoded.view.width, height = decoded.view.height;
      sample.box = ToShown(sample.turn, BoxIn(decoded, image.region, slot.crop), width, height);
      sample.width = sample.turn.transpose ? height : width;
      sample.height = sample.turn.transpose ? width : height;
    }
  } else {
    const PixelRegion part = PartOf(image);
    sample.pixels += (image.region.top - part.top) * pitch_bytes +
                     size_t{image.region.left - part.left} * options_.channels;
  }
  sample.stride_bytes = static_cast<uint32_t>(pitch_bytes);
}

absl::Status DeviceDecoder::Arrange(size_t slots) {
  const bool rooms = decoder_->takes_rooms();
  size_t bytes = 0;
  for (size_t i = 0; i < images_.size(); ++i) {
    JpegImage& image = images_[i];
    image.room = rooms && slots_[i].part ? RoomFor(image.info, image.region) : PixelRegion();
    image.pitch_bytes = size_t{PartOf(image).width} * options_.channels;
    slots_[i].offset = bytes;
    bytes += DeviceAligned(OutBytesOf(image));
  }
  Piece& piece = pieces_[piece_];
  absl::Status status = piece.read.Wait();
  if (status.ok()) status = Reserve(piece, bytes);
  // Both at first, when the device has the most memory left.
  Piece& other = pieces_[(piece_ + 1) % pieces_.size()];
  if (status.ok() && other.memory == nullptr) status = Reserve(other, bytes);
  for (Piece* each : {&piece, &other}) {
    if (status.ok() && decoder_->may_use_hardware()) status = each->skipped.Reserve(slots);
  }
  return status;
}

absl::Status DeviceDecoder::Prepare(const HostBatch& batch, size_t field, Stream stream,
                                    std::span<absl::Status> why) {
  images_.clear();
  slots_.clear();
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
    const uint64_t id = batch.ids()[slot];
    JpegImage& image = images_.emplace_back();
    image.file = file;
    image.info = *info;
    image.id = id;
    DecodedSlot& taken = slots_.emplace_back();
    taken.slot = slot;
    Take({.seed = options_.augment_seed, .epoch = batch.epoch(), .id = id}, taken, image);
  }
  RETURN_IF_ERROR(Arrange(batch.size()));
  if (!decoder_->takes_rooms()) return absl::OkStatus();
  RETURN_IF_ERROR(decoder_->TryRegions(images_, stream));
  return decoder_->takes_rooms() ? absl::OkStatus() : Arrange(batch.size());
}

absl::Status DeviceDecoder::Decode(Stream stream, std::span<PreprocessSample> samples,
                                   std::span<absl::Status> why) {
  for (size_t i = 0; i < images_.size(); ++i) {
    images_[i].out = static_cast<uint8_t*>(pieces_[piece_].memory) + slots_[i].offset;
  }
  results_.assign(images_.size(), {});
  Piece& piece = pieces_[piece_];
  if (decoder_->may_use_hardware() && !piece.unpainted) {
    // Memory that is new; the engines do not wait for the stream.
    RETURN_IF_ERROR(Unpaint(piece, stream));
    RETURN_IF_ERROR(piece.read.Wait());
  }
  piece.unpainted = false;
  RETURN_IF_ERROR(decoder_->Decode(images_, stream, results_));
  std::vector<SlotImage> by_engines;
  for (size_t i = 0; i < images_.size(); ++i) {
    if (results_[i].way == JpegWay::kHardware) by_engines.push_back({images_[i], slots_[i].slot});
  }
  has_to_check_ = !by_engines.empty();
  if (has_to_check_) {
    RETURN_IF_ERROR(piece.skipped.Look(piece.memory, std::move(by_engines), stream));
    checks_.push_back(piece_);
  }
  std::fill(samples.begin(), samples.end(), PreprocessSample());
  for (size_t i = 0; i < images_.size(); ++i) {
    const DecodedSlot& at = slots_[i];
    why[at.slot] = std::move(results_[i].status);
    if (!why[at.slot].ok()) continue;
    PointAt(images_[i], results_[i], at, samples[at.slot]);
  }
  return absl::OkStatus();
}

absl::Status DeviceDecoder::Done(Stream stream) {
  Piece& piece = pieces_[piece_];
  piece_ = (piece_ + 1) % pieces_.size();
  return MakeReady(piece, stream);
}

absl::Status DeviceDecoder::MakeReady(Piece& piece, Stream stream) {
  return decoder_->may_use_hardware() ? Unpaint(piece, stream) : piece.read.Record(stream);
}

// By the time that the host waits for the piece to be read it is filled: engines do not wait.
absl::Status DeviceDecoder::Unpaint(Piece& piece, Stream stream) {
  if (piece.bytes > 0) RETURN_IF_ERROR(device_.Fill(piece.memory, kUnpainted, piece.bytes, stream));
  piece.unpainted = true;
  return piece.read.Record(stream);
}

absl::StatusOr<std::vector<size_t>> DeviceDecoder::Check(Stream stream,
                                                         std::span<absl::Status> why) {
  std::vector<size_t> again;
  checked_ = checks_.front();
  checks_.pop_front();
  ASSIGN_OR_RETURN(const std::vector<SkippedImage> found, pieces_[checked_].skipped.Find());
  for (const SkippedImage& one : found) {
    JpegResult result;
    bool skipped = false;
    RETURN_IF_ERROR(
        decoder_->DecodeSkipped(one.at.image, one.unpainted, stream, &result, &skipped));
    if (!skipped) continue;
    why[one.at.slot] = std::move(result.status);
    again.push_back(one.at.slot);
  }
  return again;
}

absl::Status DeviceDecoder::CheckDone(Stream stream) {
  return MakeReady(pieces_[checked_], stream);
}

}  // namespace shardpack
