// What a DeviceLoader does with images that are decoded for the device.
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuda/device/abandon.h"
#include "cuda/device/host_api.h"
#include "cuda/loading/device_loader_core.h"
#include "formats/io/status_macros.h"

namespace shardpack {

// What the device may still use is left to the end of the process.
void DeviceLoader::Core::EndDecoder() {
  if (decoder_ == nullptr) return;
  if (!on_host_ &&
      (IsLost(api_) || !WaitUntilIdle(api_, uploader_->stream(), options_.stop_patience))) {
    Abandon(std::move(decoder_));
  }
  decoder_.reset();
}

absl::Status DeviceLoader::Core::MakeDecoder() {
  DeviceDecode options = *options_.decode;
  if (on_host_) options.use_hardware = options.use_hybrid = false;
  ASSIGN_OR_RETURN(decoder_, DeviceDecoder::Create(on_host_ ? HostApi() : api_, options, &stop_));
  why_bad_.resize(slots_);
  had_engines_ = decoder_->has_hardware();
  const bool lacks = (options.use_hardware && !decoder_->has_hardware()) ||
                     (options.use_hybrid && !decoder_->has_hybrid());
  if (api_.kind == DeviceKind::kCuda && lacks) {
    const bool by_gpu = decoder_->has_hardware() || decoder_->has_hybrid();
    FellBack(absl::StrCat(
        by_gpu ? "the GPU decodes fewer images than it could: "
               : "no image is decoded by the GPU, the Loader's own decoding is faster: ",
        decoder_->backends()));
  }
  const std::lock_guard lock(mutex_);
  stats_.decode_backends = decoder_->backends();
  return absl::OkStatus();
}

// What the CPU does of what the GPU was asked for; each kind once.
void DeviceLoader::Core::TellOfCpu(const JpegDecoderStats& now) {
  const JpegDecoderStats& before = stats_.decode;  // which this thread alone writes
  const bool first_batch = before.hardware + before.hybrid + before.cpu == 0;
  const bool by_gpu = decoder_->has_hardware() || decoder_->has_hybrid();
  if (first_batch && by_gpu && now.cpu > 0 && now.hardware + now.hybrid == 0) {
    FellBack(
        absl::StrCat("the CPU decoded all images of the first batch, the GPU takes JPEG that is "
                     "gray or YCbCr and not turned by EXIF",
                     now.first_refusal.empty() ? "" : ": ", now.first_refusal));
  }
  if (before.failed_batches == 0 && now.failed_batches > 0)
    FellBack(absl::StrCat("the GPU's JPEG engines refused a batch: ", now.first_refusal));
  if (std::exchange(had_engines_, decoder_->has_hardware()) && !decoder_->has_hardware())
    FellBack(absl::StrCat("the GPU's JPEG engines are not asked again: ", decoder_->backends()));
  if (before.refused == 0 && now.refused > 0)
    FellBack(absl::StrCat("the CPU decodes what nvJPEG refused: ", now.first_refusal));
  if (before.without_nvjpeg == 0 && now.without_nvjpeg > 0 && decoder_->has_hybrid())
    FellBack("a thread got no nvJPEG decoder: the CPU decodes what it takes");
  if (before.pageable == 0 && now.pageable > 0)
    FellBack("images that the CPU decoded are copied slowly: no page-locked memory was given");
}

absl::Status DeviceLoader::Core::DecodeImages(const HostBatch& batch, DeviceBuffer& buffer,
                                              std::vector<BadSample>& bad) {
  {
    const std::lock_guard lock(mutex_);
    SetDoing(Doing::kDecode);
  }
  absl::Status status = decoder_->Prepare(batch, image_field_, why_bad_);
  if (absl::IsResourceExhausted(status)) {
    status = buffers_->FreeUnused();
    if (status.ok()) status = decoder_->Prepare(batch, image_field_, why_bad_);
  }
  if (status.ok()) status = decoder_->Decode(DecodeStream(), host_samples_, why_bad_);
  if (!status.ok()) return status;
  const JpegDecoderStats stats = decoder_->stats();
  TellOfCpu(stats);
  {
    const std::lock_guard lock(mutex_);
    SetDoing(Doing::kLoader);
    stats_.decode = stats;
    stats_.decode_backends = decoder_->backends();
    stats_.device_bytes = decoder_->memory_bytes();
    stats_.growths = decoder_->growths();
  }
  return MendBadImages(buffer, bad);
}

absl::Status DeviceLoader::Core::MendBadImages(DeviceBuffer& buffer, std::vector<BadSample>& bad) {
  BatchInfo& info = buffer.info;
  for (size_t slot = 0; slot < slots_; ++slot) {
    if (why_bad_[slot].ok()) continue;
    const uint64_t bad_id = info.ids[slot];
    const std::string why =
        absl::StrCat(loader_.Describe(bad_id), ": ", std::string(why_bad_[slot].message()));
    if (options_.bad_images.policy == BadSamples::kFail) return absl::DataLossError(why);
    if (bad_images_++ >= options_.bad_images.most) {
      return absl::DataLossError(
          absl::StrCat("more than ", options_.bad_images.most, " bad images; the last: ", why));
    }
    size_t other = (slot + 1) % slots_;
    while (other != slot && (!why_bad_[other].ok() || host_samples_[other].pixels == nullptr)) {
      other = (other + 1) % slots_;
    }
    if (other == slot) {
      return absl::DataLossError(
          absl::StrCat("no image of a batch can be decoded; one of them: ", why));
    }
    host_samples_[slot] = host_samples_[other];
    info.ids[slot] = info.ids[other];
    info.labels[slot] = info.labels[other];
    // The Loader may have put this one in the place of another.
    SampleStatus& status = info.status[slot];
    const bool again = status.state == SampleState::kSubstituted;
    status = {SampleState::kSubstituted, again ? status.wanted_id : bad_id, why};
    for (size_t field = 0; field * slots_ < buffer.fields.size(); ++field) {
      buffer.fields[field * slots_ + slot] = buffer.fields[field * slots_ + other];
    }
    bad.push_back({info.epoch, info.step, bad_id, why});
  }
  return absl::OkStatus();
}

}  // namespace shardpack
