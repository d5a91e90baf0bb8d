// How a DeviceLoader begins: shapes, streams, buffers, and whether the kernel runs here.
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuda/loading/device_loader_core.h"
#include "formats/io/status_macros.h"

namespace shardpack {
namespace {

// Slots of the uploader: one copy runs while the next one waits behind it. More would only keep
// more of the Loader's memory.
constexpr size_t kUploads = 2;

}  // namespace

absl::Status DeviceLoader::Core::LearnShapes(const HostBatch& batch) {
  slots_ = static_cast<uint32_t>(batch.size());
  decoded_ = batch.pixels() != nullptr;
  if (options_.decode) return LearnToDecode(batch);
  raw_ = !decoded_ || batch.fields() > 1;
  if (!decoded_) {
    return options_.preprocess ? absl::InvalidArgumentError(
                                     "preprocessing on the device needs a Loader that decodes")
                               : absl::OkStatus();
  }
  const PixelBatch& pixels = *batch.pixels();
  if (options_.preprocess &&
      (pixels.type != PixelType::kU8 || pixels.layout != PixelLayout::kNhwc)) {
    return absl::InvalidArgumentError(
        "preprocessing on the device takes 8-bit pixels in NHWC from the Loader");
  }
  decoded_bytes_ = slots_ * pixels.sample_bytes;
  decoded_format_ = {.type = pixels.type, .layout = pixels.layout};
  width_ = pixels.width;
  height_ = pixels.height;
  channels_ = pixels.channels;
  preprocess_ = options_.preprocess.has_value();
  if (!preprocess_) return absl::OkStatus();
  output_.emplace(options_.preprocess->output, channels_);
  host_samples_.assign(slots_,
                       {.pixels = nullptr,
                        .width = width_,
                        .height = height_,
                        .stride_bytes = width_ * channels_,
                        .box = {0, 0, static_cast<double>(width_), static_cast<double>(height_)},
                        .mirror = false});
  return absl::OkStatus();
}

// Images of any size, to be decoded here, each with its own parameters.
absl::Status DeviceLoader::Core::LearnToDecode(const HostBatch& batch) {
  if (decoded_) return absl::InvalidArgumentError("the Loader decodes, so the device need not");
  if (batch.image_infos().empty()) {
    return absl::InvalidArgumentError(
        "decoding for the device needs a Loader with LoaderOptions::image_infos");
  }
  while (image_field_ < batch.fields() && batch.field_name(image_field_) != kImageField) {
    ++image_field_;
  }
  if (image_field_ == batch.fields()) {
    return absl::InvalidArgumentError(absl::StrCat("decoding for the device needs the field ",
                                                   std::string(kImageField), " of the Loader"));
  }
  const CropOptions& crop = options_.decode->crop;
  RETURN_IF_ERROR(CheckCropOptions(crop));
  if (!options_.preprocess || (options_.preprocess->width != 0 && out_width() != crop.width) ||
      (options_.preprocess->height != 0 && out_height() != crop.height)) {
    return absl::InvalidArgumentError(
        "decoding for the device needs its preprocessing too, to the size of the crop");
  }
  decoded_ = preprocess_ = true;
  raw_ = batch.fields() > 1;
  width_ = crop.width;
  height_ = crop.height;
  channels_ = options_.decode->channels;
  output_.emplace(options_.preprocess->output, channels_);
  host_samples_.assign(slots_, {});
  return absl::OkStatus();
}

size_t DeviceLoader::Core::pixel_bytes() const {
  if (!decoded_) return 0;
  if (!output_) return decoded_bytes_;
  return slots_ * output_->Bytes(out_width(), out_height());
}

PreprocessLaunch DeviceLoader::Core::LaunchOf(const DeviceBuffer& buffer) const {
  const DevicePreprocess& wanted = *options_.preprocess;
  return {.samples = buffer.samples,
          .count = slots_,
          .channels = channels_,
          .out_width = out_width(),
          .out_height = out_height(),
          .filter = wanted.filter,
          .output = *output_,
          .out = buffer.output};
}

DeviceTensor DeviceLoader::Core::PixelsOf(const DeviceBuffer& buffer) const {
  if (!output_) {
    return PixelTensor(api_, buffer.output, decoded_format_, slots_, height_, width_, channels_);
  }
  const DevicePreprocess& wanted = *options_.preprocess;
  return PixelTensor(api_, buffer.output, wanted.output, slots_, out_height(), out_width(),
                     channels_);
}

// The places never change, so neither do the parameters: written once. Of images that are decoded
// here: none yet, to try the kernel.
absl::Status DeviceLoader::Core::WriteSamples() {
  for (const auto& buffer : buffers_->all()) {
    const std::vector<PreprocessSample>& samples =
        options_.decode ? host_samples_ : SamplesAt(buffer->pixels, nullptr);
    absl::Status status =
        Checked(api_,
                api_.copy_to_device(api_.self, buffer->samples, samples.data(),
                                    samples.size() * sizeof(PreprocessSample), work_stream_),
                "copying parameters to the device");
    if (status.ok()) {
      status = Checked(api_, api_.stream_synchronize(api_.self, work_stream_),
                       "waiting for the copy of parameters");
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Once, on zeros: a kernel that was not built for this device says so now.
absl::Status DeviceLoader::Core::TryKernel() {
  const DeviceBuffer& buffer = *buffers_->all().front();
  absl::Status status = Checked(
      api_, api_.fill(api_.self, buffer.pixels, 0, buffers_->spec().pixel_bytes, work_stream_),
      "clearing a batch");
  if (!status.ok()) return status;
  status = Checked(api_, api_.preprocess(api_.self, LaunchOf(buffer), work_stream_),
                   "starting the preprocessing");
  absl::Status done = Checked(api_, api_.stream_synchronize(api_.self, work_stream_),
                              "waiting for the preprocessing");
  return status.ok() ? done : status;
}

absl::Status DeviceLoader::Core::MakeStreams() {
  absl::Status status =
      Checked(api_, api_.stream_create(api_.self, &work_stream_), "making a stream");
  has_work_stream_ = status.ok();
  return status;
}

absl::Status DeviceLoader::Core::MakeBuffers(size_t raw_bytes) {
  ASSIGN_OR_RETURN(std::shared_ptr<DeviceBuffers> buffers,
                   DeviceBuffers::Create(
                       api_, {.buffers = options_.prefetch_batches + DeviceBuffers::kMinBuffers,
                              .slots = slots_,
                              .pixel_bytes = on_host_ ? pixel_bytes() : decoded_bytes_,
                              .output_bytes = preprocess_ ? pixel_bytes() : 0,
                              .raw_bytes = raw_bytes,
                              .samples = preprocess_}));
  buffers->set_patience(options_.stop_patience);
  buffers_ = std::move(buffers);
  return absl::OkStatus();
}

absl::Status DeviceLoader::Core::Open(const Interrupted& interrupted) {
  if (!InOwnProcess()) return absl::FailedPreconditionError("opened across a fork");
  first_ = TakeFromLoader(interrupted);
  if (!first_->batch.ok()) return first_->batch.status();
  if (!first_->batch->has_value()) {
    exhausted_ = true;
    return absl::OkStatus();
  }
  const HostBatch& batch = **first_->batch;
  absl::Status status = LearnShapes(batch);
  if (status.ok()) status = MakeStreams();
  size_t raw_bytes = options_.raw_bytes;
  if (raw_ && raw_bytes == 0) {
    for (const Bytes slab : batch.slabs()) raw_bytes += DeviceAligned(slab.size());
    raw_bytes += raw_bytes / 4;
  }
  if (status.ok()) status = MakeBuffers(raw_ ? raw_bytes : 0);
  if (status.ok() && preprocess_) {
    status = WriteSamples();
    if (status.ok()) status = TryKernel();
    if (absl::IsUnimplemented(status)) {
      FellBack(absl::StrCat("preprocessing by the CPU: ", std::string(status.message())));
      preprocess_ = false;
      on_host_ = true;
      buffers_.reset();
      status = MakeBuffers(raw_ ? raw_bytes : 0);
    }
  }
  if (!status.ok()) return status;
  const Bytes memory = batch.pixels() != nullptr
                           ? batch.pixels()->bytes
                           : (batch.slabs().empty() ? Bytes() : batch.slabs()[0]);
  bool pinned = memory.empty();
  const DeviceStatus asked =
      pinned ? DeviceStatus() : api_.is_pinned(api_.self, memory.data(), &pinned);
  (void)Checked(api_, asked, "");
  stats_.pinned = pinned;
  if (!pinned) {
    FellBack("the Loader's memory is not page-locked: copies wait for it; use PinnedMemory");
  }
  // Labels, and behind them what the CPU preprocessed or parameters of a batch with padding.
  size_t side_bytes = DeviceAligned(slots_ * sizeof(int64_t));
  if (preprocess_) side_bytes += slots_ * sizeof(PreprocessSample);
  if (on_host_) side_bytes += pixel_bytes();
  ASSIGN_OR_RETURN(uploader_, Uploader::Create(api_, kUploads, side_bytes, side_memory_));
  uploader_->set_patience(options_.stop_patience);
  try {
    thread_ = std::thread([this] {
      Fail(UploadAll());
      EndDecoder();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start the thread of uploads: ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace shardpack
