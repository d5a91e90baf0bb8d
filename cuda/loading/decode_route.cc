// The routes of images that are decoded for the device.
#include <algorithm>
#include <array>
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
      : DecodeRoute(context, context.device, *context.options.decode),
        augments_(!decode_.augment.empty()),
        rounds_(augments_ ? RoundsOf(decode_.augment) : 0) {}

  absl::Status Begin(Stream copy_stream) override;
  size_t payload_bytes() const override {
    return TailsAt() + rounds_ * shape().slots * sizeof(RoundTail);
  }
  absl::Status Stage(const HostBatch&, DeviceBuffer& buffer, std::byte* payload,
                     std::vector<UploadCopy>& copies) override {
    StageSamples(samples_, buffer, payload, copies);
    if (augments_) StagePrograms(buffer, payload, copies);
    return absl::OkStatus();
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
  void FillStats(DeviceLoaderStats& stats) const override {
    DecodeRoute::FillStats(stats);
    stats.device_bytes += scratch_bytes_;
  }
  void End() override;

 private:
  size_t ProgramsAt() const { return DeviceAligned(shape().slots * sizeof(PreprocessSample)); }
  size_t TailsAt() const {
    return ProgramsAt() + (augments_ ? (rounds_ + 1) * shape().slots * sizeof(PixelProgram) : 0);
  }
  // Those of the samples that are there now.
  void StagePrograms(const DeviceBuffer& buffer, std::byte* payload,
                     std::vector<UploadCopy>& copies) const;
  // Enqueues what makes these slots of the result: the preprocessing, and the rounds after it.
  absl::Status Make(const DeviceBuffer& buffer, size_t first, size_t count, Stream stream);
  Stream DecodeStream() const override { return copy_stream_; }

  const bool augments_;
  const size_t rounds_;
  // Of the rounds, which come one after the other on the work stream.
  void* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
  std::array<uint8_t*, 2> levels_ = {};
  RoundStatistics* statistics_ = nullptr;
  RoundTables* tables_ = nullptr;
  Event decoded_again_ = nullptr;
};

absl::Status DecodeOnDevice::Begin(Stream copy_stream) {
  RETURN_IF_ERROR(DecodeRoute::Begin(copy_stream));
  if (rounds_ == 0) return absl::OkStatus();
  const size_t slots = shape().slots;
  const size_t levels =
      DeviceAligned(slots * shape().out_width * shape().out_height * shape().channels);
  const size_t statistics = DeviceAligned(slots * sizeof(RoundStatistics));
  const size_t bytes = 2 * levels + statistics + slots * sizeof(RoundTables);
  ASSIGN_OR_RETURN(scratch_, device().Allocate(bytes, "augmentation"));
  scratch_bytes_ = bytes;
  auto* const at = static_cast<uint8_t*>(scratch_);
  levels_ = {at, at + levels};
  if (NeedsStatistics(decode_.augment)) {
    statistics_ = reinterpret_cast<RoundStatistics*>(at + 2 * levels);
    tables_ = reinterpret_cast<RoundTables*>(at + 2 * levels + statistics);
  }
  ASSIGN_OR_RETURN(decoded_again_, device().CreateEvent());
  return absl::OkStatus();
}

void DecodeOnDevice::End() {
  DecodeRoute::End();
  const std::chrono::milliseconds patience = context_.options.stop_patience;
  if (scratch_ == nullptr || device().lost() || !device().WaitUntilIdle(copy_stream_, patience) ||
      !device().WaitUntilIdle(context_.work_stream, patience)) {
    return;  // there is nothing, or the device may still use it
  }
  (void)device().Free(scratch_);
  if (decoded_again_ != nullptr && !device().lost()) (void)device().DestroyEvent(decoded_again_);
}

void DecodeOnDevice::StagePrograms(const DeviceBuffer& buffer, std::byte* payload,
                                   std::vector<UploadCopy>& copies) const {
  const std::vector<std::optional<SampleIdentity>> identities = Identities(buffer.info);
  const size_t slots = identities.size();
  for (size_t slot = 0; slot < slots; ++slot) {
    SampleProgram drawn;
    if (identities[slot])
      decode_.augment.Draw(*identities[slot], shape().out_width, shape().out_height, drawn);
    DeviceProgram program = DeviceProgramOf(drawn, rounds_, shape().out_width, shape().out_height);
    if (!identities[slot] && rounds_ > 0) program.tails.back().kind = TailKind::kPadding;
    for (size_t round = 0; round <= rounds_; ++round) {
      std::memcpy(payload + ProgramsAt() + (round * slots + slot) * sizeof(PixelProgram),
                  &program.programs[round], sizeof(PixelProgram));
    }
    for (size_t round = 0; round < rounds_; ++round) {
      std::memcpy(payload + TailsAt() + (round * slots + slot) * sizeof(RoundTail),
                  &program.tails[round], sizeof(RoundTail));
    }
  }
  copies.push_back({payload + ProgramsAt(), buffer.programs, TailsAt() - ProgramsAt()});
  copies.push_back({payload + TailsAt(), buffer.tails, rounds_ * slots * sizeof(RoundTail)});
}

absl::Status DecodeOnDevice::Make(const DeviceBuffer& buffer, size_t first, size_t count,
                                  Stream stream) {
  const PreprocessLaunch all = shape().LaunchOf(buffer);
  const size_t image_bytes = all.output.Bytes(all.out_width, all.out_height);
  auto* const out = static_cast<uint8_t*>(all.out) + first * image_bytes;
  PreprocessLaunch launch = all;
  launch.samples = all.samples + first;
  if (augments_) launch.programs = all.programs + first;
  launch.count = static_cast<uint32_t>(count);
  launch.out = out;
  if (rounds_ > 0) {
    launch.output = PixelOutput({}, all.channels);
    launch.out = levels_[0];
  }
  RETURN_IF_ERROR(device().Preprocess(launch, stream));
  for (size_t round = 0; round < rounds_; ++round) {
    const bool last = round + 1 == rounds_;
    RoundLaunch next{.tails = buffer.tails + round * shape().slots + first,
                     .programs = buffer.programs + (round + 1) * shape().slots + first,
                     .from = levels_[round % 2],
                     .count = static_cast<uint32_t>(count),
                     .channels = all.channels,
                     .width = all.out_width,
                     .height = all.out_height,
                     .statistics = statistics_,
                     .tables = tables_};
    if (last) next.output = all.output;
    next.out = last ? static_cast<void*>(out) : levels_[(round + 1) % 2];
    RETURN_IF_ERROR(device().AugmentRound(next, stream));
  }
  return absl::OkStatus();
}

DeviceDecode WithoutGpu(DeviceDecode decode) {
  decode.use_hardware = decode.use_hybrid = false;
  return decode;
}

class DecodeOnCpu final : public DecodeRoute {
 public:
  explicit DecodeOnCpu(RouteContext context)
      : DecodeRoute(context, HostDevice::Get(), WithoutGpu(*context.options.decode)) {}

  size_t payload_bytes() const override { return shape().pixel_bytes; }
  absl::Status Stage(const HostBatch&, DeviceBuffer& buffer, std::byte* payload,
                     std::vector<UploadCopy>& copies) override {
    if (decode_.augment.empty()) return StagePreprocessed(samples_, buffer, payload, copies);
    const std::vector<std::optional<SampleIdentity>> identities = Identities(buffer.info);
    return StagePreprocessed(samples_, buffer, payload, copies,
                             [&](const PreprocessLaunch& launch, int threads) {
                               return PreprocessAugmented(launch, decode_.augment, identities,
                                                          context_.describe, threads);
                             });
  }
  absl::StatusOr<Stream> Launch(DeviceBuffer&, Event) override {
    RETURN_IF_ERROR(decoder_->Done(DecodeStream()));
    return copy_stream_;
  }

 private:
  Stream DecodeStream() const override { return nullptr; }
};

absl::Status DecodeOnDevice::Settle(DeviceBuffer& buffer, std::vector<BadSample>& bad) {
  std::fill(why_bad_.begin(), why_bad_.end(), absl::OkStatus());
  Substitutes copies = std::move(substitutes_.front());
  substitutes_.pop_front();
  // What is decoded again comes after the launch that has read the old pixels and has then filled
  // their place for the next batch. Its event is recorded anew below.
  RETURN_IF_ERROR(device().StreamWait(copy_stream_, buffer.ready));
  ASSIGN_OR_RETURN(const std::vector<size_t> again, decoder_->Check(copy_stream_, why_bad_));
  if (again.empty()) return absl::OkStatus();
  decoded_ = decoder_->stats();
  ReportCpuWork();
  Stream stream = copy_stream_;
  if (rounds_ > 0) {  // their memory is the work stream's
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
  if (first_batch && by_gpu && now.cpu > 0 && now.hardware + now.hybrid == 0) {
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
  absl::Status prepared = decoder_->Prepare(batch, field, why_bad_);
  if (absl::IsResourceExhausted(prepared)) {
    RETURN_IF_ERROR(context_.buffers.FreeUnused());
    prepared = decoder_->Prepare(batch, field, why_bad_);
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
  return absl::DataLossError(
      absl::StrCat("no image of a batch can be decoded; one of them: ", why));
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
