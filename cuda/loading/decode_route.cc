// The routes of images that are decoded for the device.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cuda/device/host_device.h"
#include "cuda/device/leak.h"
#include "cuda/loading/batch_route.h"
#include "cuda/loading/cpu_augment.h"
#include "cuda/loading/device_augment.h"
#include "formats/io/status_macros.h"
#include "readers/order/order.h"

namespace shardpack {
namespace {

DeviceDecode WithThreads(DeviceDecode decode, int cores) {
  if (decode.threads <= 0) decode.threads = cores;
  return decode;
}

// Decodes each batch before its copies are enqueued.
class DecodeRoute : public BatchRoute {
 public:
  absl::Status Begin(Stream copy_stream) override;
  absl::Status Prepare(const HostBatch& batch, DeviceBuffer& buffer,
                       std::vector<BadSample>& bad) override;
  void FillStats(DeviceLoaderStats& stats) const override;
  void End() override;

 protected:
  // Puts the sample of another slot in the place of a bad one, which is noted. The slot.
  absl::StatusOr<size_t> Substitute(DeviceBuffer& buffer, size_t slot, std::vector<BadSample>& bad);
  void ReportCpuWork();
  // One a slot; nullopt is padding.
  std::vector<std::optional<SampleIdentity>> Identities(const BatchInfo& info) const {
    std::vector<std::optional<SampleIdentity>> identities;
    for (const uint64_t id : info.ids) {
      identities.push_back(id == kPaddingId
                               ? std::nullopt
                               : std::optional(SampleIdentity{
                                     .seed = decode_.augment_seed, .epoch = info.epoch, .id = id}));
    }
    return identities;
  }

  DecodeRoute(RouteContext context, Device& decodes_on, const DeviceDecode& decode)
      : BatchRoute(std::move(context)),
        decodes_on_(decodes_on),
        decode_(WithThreads(decode, context_.cores)),
        samples_(shape().Samples()),
        why_bad_(shape().slots) {}
  virtual Stream DecodeStream() const = 0;

  Device& decodes_on_;
  const DeviceDecode decode_;
  // Made and ended on the loader's thread, on which nvJPEG's device is current.
  std::unique_ptr<DeviceDecoder> decoder_;
  std::vector<PreprocessSample> samples_;
  std::vector<absl::Status> why_bad_;
  // Slots with the sample of another slot, and that slot: of the batches not settled, in order.
  using Substitutes = std::vector<std::pair<size_t, size_t>>;
  std::deque<Substitutes> substitutes_;
  JpegDecoderStats decoded_;

 private:
  absl::Status SubstituteBadImages(DeviceBuffer& buffer, std::vector<BadSample>& bad);
  absl::StatusOr<size_t> SubstituteFor(const BatchInfo& info, size_t slot, const std::string& why);

  uint64_t bad_images_ = 0;
  bool had_engines_ = false;
  JpegDecoderStats reported_;
};

// Decodes on the stream of the copies. What the engines skipped is decoded again, preprocessed and
// put in its place before the batch is given out.
class DecodeOnDevice final : public DecodeRoute {
 public:
  explicit DecodeOnDevice(RouteContext context)
      : DecodeRoute(context, context.device, *context.options.decode) {
    if (decode_.augment.empty()) return;
    programs_.emplace(RoundsOf(decode_.augment), shape().slots, shape().out_width,
                      shape().out_height);
  }

  absl::Status Begin(Stream copy_stream) override;
  size_t payload_bytes() const override {
    return TablesAt() + (programs_ ? programs_->programs().size() : 0) * PixelProgram::kMaxTables *
                            sizeof(PixelTable);
  }
  absl::Status Stage(const HostBatch&, DeviceBuffer& buffer, std::byte* payload,
                     std::vector<UploadCopy>& copies, std::vector<BadSample>&) override {
    StageSamples(samples_, buffer, payload, copies);
    return programs_ ? StagePrograms(buffer, payload, copies) : absl::OkStatus();
  }
  // On a stream of its own, of high priority: the next batch's decoding neither waits for it nor
  // takes its place.
  absl::StatusOr<Stream> Launch(DeviceBuffer& buffer, Event copied) override {
    RETURN_IF_ERROR(device().StreamWait(context_.work_stream, copied));
    RETURN_IF_ERROR(Make(buffer, 0, shape().slots, context_.work_stream));
    RETURN_IF_ERROR(decoder_->Done(context_.work_stream));
    return context_.work_stream;
  }
  bool has_to_settle() const override { return decoder_->has_to_check(); }
  absl::Status Settle(DeviceBuffer& buffer, std::vector<BadSample>& bad) override;
  void End() override;

 private:
  // What lies where in the payload.
  size_t ProgramsAt() const { return DeviceAligned(shape().slots * sizeof(PreprocessSample)); }
  size_t TailsAt() const {
    return ProgramsAt() + (programs_ ? programs_->programs().size_bytes() : 0);
  }
  size_t TablesAt() const { return TailsAt() + (programs_ ? programs_->tails().size_bytes() : 0); }
  // Those of the samples that are there now.
  absl::Status StagePrograms(const DeviceBuffer& buffer, std::byte* payload,
                             std::vector<UploadCopy>& copies);
  absl::Status Make(const DeviceBuffer& buffer, size_t first, size_t count, Stream stream) {
    return EnqueueSlots(device(), shape(), context_.buffers, buffer, first, count, stream);
  }
  Stream DecodeStream() const override { return copy_stream_; }
  bool has_rounds() const { return context_.buffers.spec().tails > 0; }

  std::optional<DevicePrograms> programs_;  // of the batch that is staged
  SampleProgram drawn_;
  Event decoded_again_ = nullptr;
};

absl::Status DecodeOnDevice::Begin(Stream copy_stream) {
  RETURN_IF_ERROR(DecodeRoute::Begin(copy_stream));
  if (has_rounds()) {
    ASSIGN_OR_RETURN(decoded_again_, device().CreateEvent());
  }
  return absl::OkStatus();
}

void DecodeOnDevice::End() {
  DecodeRoute::End();
  if (decoded_again_ != nullptr && !device().lost()) (void)device().DestroyEvent(decoded_again_);
}

absl::Status DecodeOnDevice::StagePrograms(const DeviceBuffer& buffer, std::byte* payload,
                                           std::vector<UploadCopy>& copies) {
  const std::vector<std::optional<SampleIdentity>> identities = Identities(buffer.info);
  programs_->Clear();
  for (size_t slot = 0; slot < identities.size(); ++slot) {
    if (!identities[slot]) {
      programs_->SetPadding(slot);
      continue;
    }
    decode_.augment.Draw(*identities[slot], shape().out_width, shape().out_height, drawn_);
    RETURN_IF_ERROR(programs_->Set(slot, drawn_));
  }
  const auto stage = [&](size_t at, const auto& made, void* to) {
    std::memcpy(payload + at, made.data(), made.size_bytes());
    copies.push_back({payload + at, to, made.size_bytes()});
  };
  stage(ProgramsAt(), programs_->programs(), buffer.programs);
  if (has_rounds()) stage(TailsAt(), programs_->tails(), buffer.tails);
  if (!programs_->tables().empty()) stage(TablesAt(), programs_->tables(), buffer.pixel_tables);
  return absl::OkStatus();
}

DeviceDecode WithoutGpu(DeviceDecode decode) {
  decode.use_hardware = decode.use_hybrid = false;
  return decode;
}

class DecodeOnCpu final : public DecodeRoute {
 public:
  explicit DecodeOnCpu(RouteContext context)
      : DecodeRoute(context, HostDevice::Get(), WithoutGpu(*context.options.decode)) {
    if (!decode_.augment.empty()) augment_.emplace(decode_.augment, context_.cores);
  }

  size_t payload_bytes() const override { return shape().pixel_bytes; }
  absl::Status Stage(const HostBatch&, DeviceBuffer& buffer, std::byte* payload,
                     std::vector<UploadCopy>& copies, std::vector<BadSample>& bad) override {
    if (!augment_) return StagePreprocessed(samples_, buffer, payload, copies);
    const std::vector<std::optional<SampleIdentity>> identities = Identities(buffer.info);
    RETURN_IF_ERROR(StagePreprocessed(samples_, buffer, payload, copies,
                                      [&](const PreprocessLaunch& launch, int) {
                                        return augment_->Preprocess(launch, identities, why_bad_);
                                      }));
    return SubstituteFinished(buffer, payload, bad);
  }
  absl::StatusOr<Stream> Launch(DeviceBuffer&, Event) override {
    RETURN_IF_ERROR(decoder_->Done(DecodeStream()));
    return copy_stream_;
  }

 private:
  Stream DecodeStream() const override { return nullptr; }
  // Of samples whose operations failed, as a Loader does.
  absl::Status SubstituteFinished(DeviceBuffer& buffer, std::byte* pixels,
                                  std::vector<BadSample>& bad) {
    const size_t image_bytes = shape().pixel_bytes / shape().slots;
    for (size_t slot = 0; slot < why_bad_.size(); ++slot) {
      if (why_bad_[slot].ok()) continue;
      ASSIGN_OR_RETURN(const size_t other, Substitute(buffer, slot, bad));
      std::memcpy(pixels + slot * image_bytes, pixels + other * image_bytes, image_bytes);
    }
    return absl::OkStatus();
  }

  std::optional<CpuAugment> augment_;
};

absl::Status DecodeOnDevice::Settle(DeviceBuffer& buffer, std::vector<BadSample>& bad) {
  std::fill(why_bad_.begin(), why_bad_.end(), absl::OkStatus());
  Substitutes copies = std::move(substitutes_.front());
  substitutes_.pop_front();
  // What is decoded again comes after the launch that has read the old pixels and has then filled
  // their place for the next batch. Its event is recorded again below.
  RETURN_IF_ERROR(device().StreamWait(copy_stream_, buffer.ready));
  ASSIGN_OR_RETURN(const std::vector<size_t> again, decoder_->Check(copy_stream_, why_bad_));
  if (again.empty()) return absl::OkStatus();
  decoded_ = decoder_->stats();
  ReportCpuWork();
  Stream stream = copy_stream_;
  if (has_rounds()) {  // their memory is the work stream's
    stream = context_.work_stream;
    RETURN_IF_ERROR(device().RecordEvent(decoded_again_, copy_stream_));
    RETURN_IF_ERROR(device().StreamWait(stream, decoded_again_));
  }
  const size_t image_bytes = shape().output->Bytes(shape().out_width, shape().out_height);
  uint8_t* const out = buffer.output;
  for (const size_t slot : again) {
    if (why_bad_[slot].ok()) RETURN_IF_ERROR(Make(buffer, slot, 1, stream));
  }
  const auto is_new = [&](const std::pair<size_t, size_t>& copy) {
    return std::find(again.begin(), again.end(), copy.second) != again.end();
  };
  copies.erase(std::remove_if(copies.begin(), copies.end(), std::not_fn(is_new)), copies.end());
  // Slots with the pixels of one that is bad after all cannot stand in for it.
  for (const auto& [slot, other] : copies) {
    if (!why_bad_[other].ok()) why_bad_[slot] = why_bad_[other];
  }
  // First what they are copied from.
  for (const size_t slot : again) {
    if (why_bad_[slot].ok()) continue;
    ASSIGN_OR_RETURN(const size_t other, Substitute(buffer, slot, bad));
    copies.insert(copies.begin(), {slot, other});
  }
  for (const auto& [slot, other] : copies) {
    buffer.info.ids[slot] = buffer.info.ids[other];
    buffer.info.labels[slot] = buffer.info.labels[other];
    RETURN_IF_ERROR(device().CopyWithin(out + slot * image_bytes, out + other * image_bytes,
                                        image_bytes, stream));
    RETURN_IF_ERROR(
        device().CopyWithin(buffer.labels + slot, buffer.labels + other, sizeof(int64_t), stream));
  }
  RETURN_IF_ERROR(device().RecordEvent(buffer.ready, stream));
  return decoder_->CheckDone(stream);
}

absl::Status DecodeRoute::Begin(Stream copy_stream) {
  RETURN_IF_ERROR(BatchRoute::Begin(copy_stream));
  ASSIGN_OR_RETURN(decoder_, DeviceDecoder::Create(decodes_on_, decode_, &context_.stop));
  had_engines_ = decoder_->has_hardware();
  const bool lacks = (decode_.use_hardware && !decoder_->has_hardware()) ||
                     (decode_.use_hybrid && !decoder_->has_hybrid());
  if (device().kind() == DeviceKind::kCuda && lacks) {
    const bool by_gpu = decoder_->has_hardware() || decoder_->has_hybrid();
    context_.fell_back(absl::StrCat(
        by_gpu ? "the GPU decodes fewer images than it could: "
               : "no image is decoded by the GPU, the Loader's own decoding is faster: ",
        decoder_->backends()));
  }
  return absl::OkStatus();
}

// What the device may still use is left to the end of the process.
void DecodeRoute::End() {
  if (decoder_ == nullptr) return;
  const std::chrono::milliseconds patience = context_.options.stop_patience;
  if (decodes_on_.lost() || !decodes_on_.WaitUntilIdle(DecodeStream(), patience) ||
      !decoder_->WaitUntilIdle(patience) ||
      !device().WaitUntilIdle(context_.work_stream, patience)) {
    Leak(std::move(decoder_));
  }
  decoder_.reset();
}

void DecodeRoute::FillStats(DeviceLoaderStats& stats) const {
  if (decoder_ == nullptr) return;
  stats.decode = decoded_;
  stats.decode_backends = decoder_->backends();
  stats.decode_threads = decoder_->threads();
  stats.device_bytes = decoder_->memory_bytes();
  stats.growths = decoder_->growths();
}

// What the CPU does of what the GPU was asked for; each kind once.
void DecodeRoute::ReportCpuWork() {
  const JpegDecoderStats before = std::exchange(reported_, decoded_);
  const JpegDecoderStats& now = decoded_;
  if (before.choice.empty() && !now.choice.empty() && context_.options.log != nullptr)
    context_.options.log(absl::StrCat("images are decoded by ", now.choice));
  const bool first_batch = before.hardware + before.hybrid + before.cpu == 0;
  const bool by_gpu = decoder_->has_hardware() || decoder_->has_hybrid();
  if (before.why_whole.empty() && !now.why_whole.empty()) {
    context_.fell_back(
        absl::StrCat("the GPU decodes whole images where parts would do: ", now.why_whole));
  } else if (first_batch && by_gpu && now.cpu > 0 && now.hardware + now.hybrid == 0) {
    context_.fell_back(
        absl::StrCat("the CPU decoded all images of the first batch, the GPU takes JPEG that is "
                     "gray or YCbCr",
                     now.first_refusal.empty() ? "" : ": ", now.first_refusal));
  }
  if (before.failed_batches == 0 && now.failed_batches > 0) {
    context_.fell_back(absl::StrCat("the GPU's JPEG engines refused a batch: ", now.first_refusal));
  }
  if (std::exchange(had_engines_, decoder_->has_hardware()) && !decoder_->has_hardware()) {
    context_.fell_back(
        absl::StrCat("the GPU's JPEG engines are not asked again: ", decoder_->backends()));
  }
  if (before.skipped == 0 && now.skipped > 0) {
    context_.fell_back(
        "the GPU's JPEG engines said that they had decoded an image and had not; the CPU decodes "
        "those");
  }
  if (before.refused == 0 && now.refused > 0)
    context_.fell_back(absl::StrCat("the CPU decodes what nvJPEG refused: ", now.first_refusal));
  if (before.without_nvjpeg == 0 && now.without_nvjpeg > 0 && decoder_->has_hybrid())
    context_.fell_back("a thread got no nvJPEG decoder: the CPU decodes what it takes");
  if (before.pageable == 0 && now.pageable > 0) {
    context_.fell_back(
        "images that the CPU decoded are copied slowly: no page-locked memory was given");
  }
}

absl::Status DecodeRoute::Prepare(const HostBatch& batch, DeviceBuffer& buffer,
                                  std::vector<BadSample>& bad) {
  const size_t field = *shape().decoded_field;
  absl::Status prepared = decoder_->Prepare(batch, field, DecodeStream(), why_bad_);
  if (absl::IsResourceExhausted(prepared)) {
    RETURN_IF_ERROR(context_.buffers.FreeUnused());
    prepared = decoder_->Prepare(batch, field, DecodeStream(), why_bad_);
  }
  RETURN_IF_ERROR(prepared);
  RETURN_IF_ERROR(decoder_->Decode(DecodeStream(), samples_, why_bad_));
  decoded_ = decoder_->stats();
  ReportCpuWork();
  return SubstituteBadImages(buffer, bad);
}

// The next slot with an image that could be decoded.
absl::StatusOr<size_t> DecodeRoute::SubstituteFor(const BatchInfo& info, size_t slot,
                                                  const std::string& why) {
  const DeviceBadImages& options = context_.options.bad_images;
  if (options.policy == BadSamples::kFail) return absl::DataLossError(why);
  if (bad_images_++ >= options.most) {
    return absl::DataLossError(
        absl::StrCat("more than ", options.most, " bad images; the last: ", why));
  }
  for (size_t next = 1; next < why_bad_.size(); ++next) {
    const size_t other = (slot + next) % why_bad_.size();
    if (why_bad_[other].ok() && info.ids[other] != kPaddingId) return other;
  }
  return absl::DataLossError(absl::StrCat("no image of a batch can be used; one of them: ", why));
}

absl::StatusOr<size_t> DecodeRoute::Substitute(DeviceBuffer& buffer, size_t slot,
                                               std::vector<BadSample>& bad) {
  BatchInfo& info = buffer.info;
  const size_t slots = why_bad_.size();
  const uint64_t bad_id = info.ids[slot];
  const std::string why =
      absl::StrCat(context_.describe(bad_id), ": ", std::string(why_bad_[slot].message()));
  ASSIGN_OR_RETURN(const size_t other, SubstituteFor(info, slot, why));
  info.ids[slot] = info.ids[other];
  info.labels[slot] = info.labels[other];
  // The Loader may have put this one in the place of another.
  SampleStatus& status = info.status[slot];
  const bool again = status.state == SampleState::kSubstituted;
  status = {SampleState::kSubstituted, again ? status.wanted_id : bad_id, why};
  for (size_t field = 0; field * slots < buffer.fields.size(); ++field) {
    buffer.fields[field * slots + slot] = buffer.fields[field * slots + other];
  }
  bad.push_back({info.epoch, info.step, bad_id, why});
  return other;
}

absl::Status DecodeRoute::SubstituteBadImages(DeviceBuffer& buffer, std::vector<BadSample>& bad) {
  Substitutes substitutes;
  for (size_t slot = 0; slot < why_bad_.size(); ++slot) {
    if (why_bad_[slot].ok()) continue;
    ASSIGN_OR_RETURN(const size_t other, Substitute(buffer, slot, bad));
    samples_[slot] = samples_[other];
    substitutes.emplace_back(slot, other);
  }
  if (decoder_->has_to_check()) substitutes_.push_back(std::move(substitutes));
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<BatchRoute> MakeDecodeRoute(RouteContext context, bool has_kernel) {
  if (has_kernel) return std::make_unique<DecodeOnDevice>(std::move(context));
  return std::make_unique<DecodeOnCpu>(std::move(context));
}

}  // namespace shardpack
