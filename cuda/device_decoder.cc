#include "cuda/device_decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/io/resources.h"
#include "images/decode.h"
#include "readers/order.h"

namespace shardpack {

absl::StatusOr<std::unique_ptr<DeviceDecoder>> DeviceDecoder::Create(
    const DeviceApi& api, const DeviceDecode& options, const std::atomic<bool>* stop) {
  if (auto status = CheckCropOptions(options.crop); !status.ok()) return status;
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError("channels are 1 or 3");
  }
  std::unique_ptr<DeviceDecoder> made(new DeviceDecoder(api, options));
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
                         .stop = stop});
  return made;
}

DeviceDecoder::~DeviceDecoder() {
  decoder_.reset();
  if (memory_ != nullptr && !IsLost(api_)) (void)Checked(api_, api_.free(api_.self, memory_), "");
}

std::string DeviceDecoder::backends() const {
  return why_no_library_.empty() ? decoder_->backends()
                                 : absl::StrCat("no nvJPEG: ", why_no_library_);
}

// Checks an image and adds the room that it takes; `out` is set when the memory is there.
absl::Status DeviceDecoder::Plan(Bytes file, const ImageInfo& info, size_t* bytes,
                                 JpegImage* image) const {
  if (file.data() == nullptr) return absl::DataLossError("the sample has no image");
  const auto known = KnownImageInfo(file, info, options_.max_pixels);
  if (!known.ok()) return known.status();
  if (known->width == 0 || known->height == 0) {
    return absl::InvalidArgumentError("an image without pixels");
  }
  if (uint64_t{known->width} * known->height > options_.max_pixels) {
    return absl::ResourceExhaustedError(absl::StrCat(
        known->width, "x", known->height, " is more than ", options_.max_pixels, " pixels"));
  }
  const auto [width, height] = SizeOf(*known, options_.orient);
  const size_t pitch_bytes = size_t{width} * options_.channels;
  *image = {.file = file, .info = *known, .out = nullptr, .pitch_bytes = pitch_bytes};
  *bytes += DeviceAligned(pitch_bytes * height);
  return absl::OkStatus();
}

// What still reads the memory is waited for by the call that frees it.
absl::Status DeviceDecoder::Reserve(size_t bytes) {
  if (bytes <= memory_bytes_) return absl::OkStatus();
  absl::Status status;
  if (memory_ != nullptr) {
    status = Checked(api_, api_.free(api_.self, std::exchange(memory_, nullptr)),
                     "freeing memory of decoded images");
    memory_bytes_ = 0;
  }
  if (!status.ok()) return status;
  // A quarter more, so that batches that differ a little do not each come here; if that is too
  // much, what it takes.
  for (const size_t room : {DeviceAligned(bytes + bytes / 4), bytes}) {
    status = Checked(
        api_, api_.allocate(api_.self, &memory_, room),
        absl::StrCat("allocating ", room, " bytes on the device for a batch's decoded images"));
    if (status.ok()) {
      memory_bytes_ = room;
      return status;
    }
    memory_ = nullptr;
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

absl::Status DeviceDecoder::Decode(const HostBatch& batch, size_t field, Stream stream,
                                   std::span<PreprocessSample> samples,
                                   std::span<absl::Status> why) {
  images_.clear();
  slots_.clear();
  places_.clear();
  size_t bytes = 0;
  for (size_t slot = 0; slot < batch.size(); ++slot) {
    samples[slot] = {};
    why[slot] = absl::OkStatus();
    if (batch.ids()[slot] == kPaddingId) continue;
    const size_t place = bytes;
    JpegImage image;
    why[slot] = Plan(batch.bytes(field, slot), batch.image_infos()[slot], &bytes, &image);
    if (!why[slot].ok()) continue;
    images_.push_back(image);
    slots_.push_back(slot);
    places_.push_back(place);
  }
  absl::Status status = Reserve(bytes);
  if (!status.ok()) return status;
  for (size_t i = 0; i < images_.size(); ++i) {
    images_[i].out = static_cast<uint8_t*>(memory_) + places_[i];
  }
  results_.assign(images_.size(), {});
  status = decoder_->Decode(images_, stream, results_);
  if (!status.ok()) return status;
  for (size_t i = 0; i < images_.size(); ++i) {
    const size_t slot = slots_[i];
    why[slot] = std::move(results_[i].status);
    if (!why[slot].ok()) continue;
    samples[slot] =
        SampleOf(images_[i],
                 {.seed = options_.augment_seed, .epoch = batch.epoch(), .id = batch.ids()[slot]});
  }
  return absl::OkStatus();
}

}  // namespace shardpack
